"""What the tests of all editors share: the project they open, and what they expect an editor to hold at the end."""

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {"python": sys.executable, "measure": {"timeBudgetSeconds": 1}, "predictionBudgetSeconds": 30}
"""Of the server, in every editor: the tests' own torch, and no longer measuring than needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with a training step to profile."""

    root: Path
    scratch: Path
    """A folder beside it, for what the test and the editor exchange."""

    @property
    def providers(self) -> Path:
        """The file that says what to profile, with the batch size."""
        return self.root / "providers.py"

    @property
    def model(self) -> Path:
        """The file with the model, most of whose lines cost something."""
        return self.root / "resnet.py"

    def line_of(self, path: Path, text: str) -> int:
        """Line, from 1, of the only one that holds a text."""
        lines = [number for number, line in enumerate(path.read_text().split("\n"), start=1) if text in line]
        assert len(lines) == 1, f"{text!r} is on lines {lines} of {path.name}"
        return lines[0]


def program(variable: str, name: str) -> str:
    """The editor's program, from a variable or from PATH. Skips where there is none."""
    found = os.environ.get(variable) or shutil.which(name)
    if not found:
        pytest.skip(f"there is no {name}; `make test-editors` installs it")
    return found


def results(path: Path, output: str) -> dict[str, Any]:
    """What the editor wrote about itself; fails with the editor's output where it came to no end."""
    assert path.exists(), f"the editor wrote no result:\n{output[-8000:]}"
    found: dict[str, Any] = json.loads(path.read_text())
    assert found.get("error") is None, f"{found['error']}\n{output[-8000:]}"
    return found


def check_profiled(project: Project, found: dict[str, Any]) -> None:
    """The editor holds hints in both files, lenses at the entry and the batch size, a hover and the summary.

    Lines count from 1.
    """
    body = [project.line_of(project.model, text) for text in ("x = self.stage2(x)", "x = self.stage5(x)")]
    for line in body:
        assert any(hint["line"] == line for hint in found["hints"]["resnet.py"]), found["hints"]
    for hints in found["hints"].values():
        assert all("fwd" in hint["text"] or "bwd" in hint["text"] for hint in hints), hints
    assert any("bwd" in hint["text"] and "%" in hint["text"] for hint in found["hints"]["resnet.py"])

    entry = project.line_of(project.providers, "def skyline_iteration_provider")
    batch_size = project.line_of(project.providers, "batch_size: int = 8")
    titles = {line: [lens["text"] for lens in found["lenses"] if lens["line"] == line] for line in (entry, batch_size)}
    assert any("samples/s" in title and "profile again" in title for title in titles[entry]), found["lenses"]
    assert any("batch size 8" in title for title in titles[batch_size]), found["lenses"]

    assert "forward" in found["hover"].lower(), found["hover"]
    assert "backward" in found["hover"].lower(), found["hover"]

    summaries = [diagnostic for diagnostic in found["diagnostics"] if "samples/s" in diagnostic["message"]]
    assert [summary["line"] for summary in summaries] == [entry], found["diagnostics"]


def check_retuned(project: Project, found: dict[str, Any], before: str) -> None:
    """A retune changed the digits of the batch size and nothing else, and one undo brought the text back."""
    assert found["after"] == before.replace("batch_size: int = 8", "batch_size: int = 4")
    assert found["undone"] == before


def run_in_terminal(command: list[str], *, folder: Path, environment: dict[str, str], timeout_s: float) -> str:
    """Run a program in a terminal of its own until it ends; returns what it drew. Ends it after the time limit."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 80, 200, 0, 0))
    drawn = bytearray()
    deadline = time.monotonic() + timeout_s
    try:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([terminal], [], [], left)[0]:
                break
            try:
                data = os.read(terminal, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not data:
                break
            drawn += data
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return drawn.decode(errors="replace")
