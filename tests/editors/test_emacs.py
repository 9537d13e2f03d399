"""Emacs with its package, under Eglot and lsp-mode: what it holds after a profile, and what its commands do."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.editors.driving import (
    ROOT,
    SETTINGS,
    Project,
    check_profiled,
    check_retuned,
    program,
    results,
    run_in_terminal,
)

PACKAGE = ROOT / "clients" / "emacs" / "skyline-lsp.el"

COMMON = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil
      skyline-lsp-settings (json-parse-string {settings} :object-type 'plist :false-object :json-false))
(add-to-list 'load-path {folder})
(require 'skyline-lsp)
"""

EGLOT = """
(add-hook 'python-base-mode-hook #'skyline-lsp)
"""

# As users set it up, but with nothing that asks a question; its parts, which a package's autoloads would bring.
LSP_MODE = """
(dolist (part '(lsp-mode lsp-lens lsp-diagnostics lsp-completion lsp-headerline lsp-modeline)) (require part))
(skyline-lsp-register)
(setq lsp-enabled-clients '(skyline-lsp) lsp-auto-guess-root t lsp-warn-no-matched-clients nil
      lsp-diagnostics-provider :flymake lsp-enable-suggest-server-download nil lsp-enable-snippet nil)
(add-hook 'python-base-mode-hook #'lsp)
"""


@pytest.fixture
def emacs() -> str:
    return program("EMACS", "emacs")


def run_emacs(emacs: str, client: str, options: list[str], project: Project, environment: dict[str, str]) -> str:
    """Run the main job in Emacs with a client's configuration; returns what was drawn on the terminal."""
    init = project.scratch / "init.el"
    settings, folder = json.dumps(json.dumps(SETTINGS)), json.dumps(str(PACKAGE.parent))
    script = json.dumps(str(Path(__file__).with_name("emacs.el")))
    init.write_text(COMMON.format(settings=settings, folder=folder) + client + f"(load {script})")
    return run_in_terminal(
        [emacs, "-Q", "-nw", *options, "-l", str(init)], folder=project.root, environment=environment, timeout_s=800
    )


def check_main_job(project: Project, found: dict[str, Any], before: str) -> None:
    """What Emacs holds, and what came of the commands, whatever the client."""
    check_profiled(project, found)
    check_retuned(project, found, before)
    assert (found["after_action"], found["undone_action"]) == (found["after"], before)
    assert "predict" in found["prediction"] or "measured" in found["prediction"]
    assert "ready" in found["status"]
    assert found["panel"].startswith("http://127.0.0.1:")


def test_eglot(project: Project, environment: dict[str, str], emacs: str) -> None:
    """Profile, costs, lenses, prediction, retune with one undo, status and cancel work in Emacs under Eglot."""
    result = project.scratch / "result.json"
    before = project.providers.read_text()
    drawn = run_emacs(emacs, EGLOT, [], project, {**environment, "SKYLINE_RESULT": str(result)})
    check_main_job(project, results(result, drawn), before)
    # What is on the screen, not only in Emacs' memory: a lens and a hint.
    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    assert "Profile this training step" in screen
    assert "bwd" in screen


def test_lsp_mode(project: Project, environment: dict[str, str], emacs: str) -> None:
    """The same works in Emacs under lsp-mode, from the packages below $SKYLINE_LSP_MODE."""
    packages = os.environ.get("SKYLINE_LSP_MODE")
    if not packages:
        pytest.skip("there is no lsp-mode; scripts/editors/test.sh lsp_mode brings it")
    result = project.scratch / "result.json"
    before = project.providers.read_text()
    options = [option for folder in sorted(Path(packages).iterdir()) for option in ("-L", str(folder))]
    given = {**environment, "SKYLINE_RESULT": str(result), "SKYLINE_CLIENT": "lsp-mode"}
    drawn = run_emacs(emacs, LSP_MODE, options, project, given)
    check_main_job(project, results(result, drawn), before)


def test_the_package_compiles_without_a_warning(tmp_path: Path, emacs: str) -> None:
    """The byte compiler and checkdoc have nothing to say about the package."""
    copy = tmp_path / PACKAGE.name
    copy.write_text(PACKAGE.read_text())
    compiled = subprocess.run(
        [emacs, "-Q", "--batch", "--eval", "(setq byte-compile-error-on-warn t)", "-f", "batch-byte-compile", copy],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (compiled.returncode, compiled.stderr) == (0, "")
    checked = subprocess.run(
        [emacs, "-Q", "--batch", "--eval", f'(progn (require (quote checkdoc)) (checkdoc-file "{copy}"))'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
