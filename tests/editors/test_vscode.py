"""VS Code with the packaged extension, in a real extension host and a real browser.

The workbench is code-server's. A second extension, the probe, looks from within at what the editor holds; the browser
looks at what is on the screen. A third stands in for the Python extension, which can't be installed here: it has the
part of its interface that tells the selected interpreter.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.driving import ROOT, SETTINGS, Project, check_profiled, check_retuned, results

HERE = Path(__file__).with_name("vscode")
EXTENSION = ROOT / "clients" / "vscode"
USER_SETTINGS = {
    "security.workspace.trust.startupPrompt": "never",
    "skyline.importStrategy": "useBundled",
    "skyline.measure.timeBudgetSeconds": 1,
    "skyline.predictionBudgetSeconds": 30,
    "editor.minimap.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": True,
}


@pytest.fixture
def vscode() -> Path:
    """The folder that scripts/editors/vscode.sh prints. Skips where it was not installed."""
    home = os.environ.get("SKYLINE_VSCODE")
    if not home:
        pytest.skip("VS Code is not installed; `make test-vscode` does that")
    return Path(home)


@pytest.fixture
def node(vscode: Path, environment: dict[str, str]) -> dict[str, str]:
    """Variables for code-server and the browser's driver: their own Node, and no `skyline-lsp` on PATH."""
    others = [folder for folder in environment["PATH"].split(os.pathsep) if folder != str(Path(sys.executable).parent)]
    return {**environment, "PATH": os.pathsep.join([str(vscode / "node" / "bin"), *others])}


def test_vscode(project: Project, node: dict[str, str], vscode: Path) -> None:
    """Trust, profile, costs on the screen and retuning with one undo work in VS Code, by the extension's own server."""
    data, extensions = project.scratch / "data", project.scratch / "extensions"
    settings = data / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(USER_SETTINGS))
    result = project.scratch / "result.json"
    # A folder to keep pictures of the workbench in, for whoever wants to look.
    pictures = {"SKYLINE_SCREENSHOTS": os.environ["SKYLINE_SCREENSHOTS"]} if "SKYLINE_SCREENSHOTS" in os.environ else {}
    environment = {
        **node,
        **pictures,
        "SKYLINE_RESULT": str(result),
        "SKYLINE_VSCODE": str(vscode),
        "SKYLINE_SELECTED_PYTHON": str(SETTINGS["python"]),
    }
    program = vscode / "node_modules" / ".bin" / "code-server"
    code_server = [str(program), "--user-data-dir", str(data), "--extensions-dir", str(extensions)]
    helpers = (packed(HERE / name, project.scratch, node) for name in ("probe", "python"))
    for extension in (EXTENSION / "skyline-lsp.vsix", *helpers):
        subprocess.run([*code_server, "--install-extension", str(extension)], env=environment, check=True)
    before = project.providers.read_text()

    with served(code_server, project, environment) as url:
        driver = subprocess.run(
            ["node", str(HERE / "drive.mjs")],
            env={**environment, "SKYLINE_URL": url},
            capture_output=True,
            text=True,
            timeout=850,
            check=False,
        )
    screen = results(result.with_suffix(".json.screen"), driver.stdout + driver.stderr)
    found = results(result, driver.stdout + driver.stderr)

    assert found["trustedAtFirst"] is False
    assert any("batch size 8" in lens["text"] for lens in found["untrustedLenses"])
    assert "Trust the workspace" in screen["untrustedQuestion"]
    check_profiled(project, found)
    check_retuned(project, found, before)
    assert (found["after_action"], found["undone_action"]) == (found["after"], before)
    assert any("samples/s" in lens for lens in screen["lenses"]), screen
    assert "samples/s" in screen["status"]
    assert any("fwd" in line and "bwd" in line for line in screen["lines"]), screen
    assert screen["marks"], screen
    assert "samples/s" in screen["panel"]
    assert ("samples/s" in screen["pick"]) == ("samples/s" in screen["prediction"]), screen


def packed(source: Path, folder: Path, environment: dict[str, str]) -> Path:
    """An extension of the tests as an installable file."""
    target = folder / f"{source.name}.vsix"
    vsce = EXTENSION / "node_modules" / ".bin" / "vsce"
    options = ["--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", str(target)]
    subprocess.run([str(vsce), "package", *options], cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)
    return target


@contextlib.contextmanager
def served(code_server: list[str], project: Project, environment: dict[str, str]) -> Iterator[str]:
    """code-server on a port of the loopback interface; gives the address that opens the project."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    log = (project.scratch / "code-server.log").open("w")
    process = subprocess.Popen(
        [*code_server, *options], env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        while process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                break
        assert process.poll() is None, (project.scratch / "code-server.log").read_text()
        yield f"http://127.0.0.1:{port}/?folder={project.root}"
    finally:
        # Its extension host and our server are children of it.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
        log.close()
