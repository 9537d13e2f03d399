"""Helix with nothing but a configuration: what is on its screen after a profile, and what its commands do."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.editors.driving import SETTINGS, Project, program

LIMIT_S = 120.0
"""For what went wrong; a busy machine takes minutes for a run."""

LANGUAGES = """
[language-server.skyline]
command = "skyline-lsp"
config = {{ python = "{python}", measure = {{ timeBudgetSeconds = 1 }} }}

[[language]]
name = "python"
language-servers = ["skyline"]
"""

CONFIGURATION = """
[editor.lsp]
display-inlay-hints = true
display-messages = true
"""


class Screen:
    """An editor in a terminal of tmux."""

    def __init__(self, socket: str) -> None:
        self._tmux = ["tmux", "-L", socket]

    def type(self, *keys: str) -> None:
        """Press keys, by tmux' names for them."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def lines(self) -> list[str]:
        """What is on the screen."""
        shown = subprocess.run([*self._tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True)
        return shown.stdout.split("\n")

    def wait_for(self, what: str, found: Callable[[list[str]], object]) -> list[str]:
        """The screen once it shows something."""
        deadline = time.monotonic() + LIMIT_S
        while not found(lines := self.lines()):
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n" + "\n".join(lines)
            time.sleep(0.1)  # there is no message to wait for: a screen is looked at
        return lines

    def wait_for_text(self, text: str) -> list[str]:
        """The screen once it shows a text."""
        return self.wait_for(text, lambda lines: any(text in line for line in lines))

    def choose(self, title: str) -> None:
        """Open the menu of code actions and choose one."""
        answers = (title, "No configured language server")
        while True:
            self.type(" ", "a")
            lines = self.wait_for(title, lambda lines: any(answer in line for line in lines for answer in answers))
            if any(title in line for line in lines):
                break
            # The server is still starting. A moment, since an answer to these keys would be taken for one to the next.
            time.sleep(1)
        first = next(i for i, line in enumerate(lines) if "Set batch size to" in line)
        # The first item is marked to begin with.
        steps = next(i for i, line in enumerate(lines) if title in line) - first
        self.type(*["Tab"] * steps)
        self.type("Enter")


@contextmanager
def helix(hx: str, project: Project, environment: dict[str, str]) -> Iterator[Screen]:
    """Helix with the project's provider file."""
    folder = Path(environment["HOME"]) / ".config" / "helix"
    folder.mkdir(parents=True)
    (folder / "languages.toml").write_text(LANGUAGES.format(python=SETTINGS["python"]))
    (folder / "config.toml").write_text(CONFIGURATION)
    # Named for the test's own folder: a server of the user's may be running.
    socket = f"skyline-{project.scratch.parent.name}-{project.scratch.name}"
    command = [
        "tmux",
        "-L",
        socket,
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "180",
        "-y",
        "60",
        hx,
        "providers.py",
    ]
    subprocess.run(command, cwd=project.root, env=environment, check=True)
    try:
        yield Screen(socket)
    finally:
        subprocess.run(["tmux", "-L", socket, "kill-server"], check=False)


def test_helix(project: Project, environment: dict[str, str]) -> None:
    """Profile by code action, summary, hints, hover, prediction and retune with one undo work in Helix."""
    hx = program("HX", "hx")
    if shutil.which("tmux") is None:
        pytest.skip("Helix is driven through tmux, which is not installed")
    entry = project.line_of(project.providers, "def skyline_iteration_provider")
    site = project.line_of(project.providers, "batch_size: int = 8")
    with helix(hx, project, environment) as screen:
        screen.wait_for_text("def skyline_iteration_provider")
        screen.type(f":{entry}", "Enter")
        screen.choose("Profile this training step")
        # The summary is the one thing that Helix shows without being asked.
        screen.wait_for_text("/iteration (")

        screen.type(f":{site}", "Enter", " ", "k")
        screen.wait_for_text("Default of batch_size")
        screen.type("Escape")
        # Keys that follow an Escape at once are taken for Alt and a letter.
        screen.wait_for(
            "the end of the hover", lambda lines: not any("Default of batch_size" in line for line in lines)
        )
        screen.choose("Set batch size to 4")
        screen.wait_for_text("batch_size: int = 4")
        screen.type("u")
        screen.wait_for_text("batch_size: int = 8")

        screen.type(':lsp-workspace-command skyline.setBatchSize {"batchSize": 4}', "Enter")
        screen.wait_for_text("batch_size: int = 4")
        screen.type("u")
        screen.wait_for_text("batch_size: int = 8")

        screen.type(":open resnet.py", "Enter")
        screen.type(f":{project.line_of(project.model, 'x = self.stage5(x)')}", "Enter")
        screen.wait_for("hints", lambda lines: any("stage5(x)" in line and "bwd" in line for line in lines))
        # On a busy machine the measured times may be too noisy to predict from; the server then says so.
        screen.type(':lsp-workspace-command skyline.predict {"batchSize": 4, "show": true}', "Enter")
        screen.wait_for(
            "a prediction", lambda lines: any("Batch size 4" in line or "predict" in line for line in lines[-3:])
        )
