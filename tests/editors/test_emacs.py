"""Emacs with its package, under Eglot: what it holds after `skyline-lsp-profile`, and what its commands do."""

import json
import re
import subprocess
from pathlib import Path

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

INIT = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil
      skyline-lsp-settings (json-parse-string {settings} :object-type 'plist :false-object :json-false))
(add-to-list 'load-path {folder})
(require 'skyline-lsp)
(add-hook 'python-base-mode-hook #'skyline-lsp)
(load {script})
"""


@pytest.fixture
def emacs() -> str:
    return program("EMACS", "emacs")


def test_emacs(project: Project, environment: dict[str, str], emacs: str) -> None:
    """Profile, costs, lenses, prediction, retune with one undo, status and cancel work in Emacs under Eglot."""
    init = project.scratch / "init.el"
    script = Path(__file__).with_name("emacs.el")
    init.write_text(
        INIT.format(
            settings=json.dumps(json.dumps(SETTINGS)),
            folder=json.dumps(str(PACKAGE.parent)),
            script=json.dumps(str(script)),
        )
    )
    result = project.scratch / "result.json"
    before = project.providers.read_text()
    drawn = run_in_terminal(
        [emacs, "-Q", "-nw", "-l", str(init)],
        folder=project.root,
        environment={**environment, "SKYLINE_RESULT": str(result)},
        timeout_s=800,
    )
    found = results(result, drawn)

    check_profiled(project, found)
    check_retuned(project, found, before)
    assert (found["after_action"], found["undone_action"]) == (found["after"], before)
    assert "predict" in found["prediction"] or "measured" in found["prediction"]
    assert "ready" in found["status"]
    assert found["panel"].startswith("http://127.0.0.1:")
    # What is on the screen, not only in Emacs' memory: a lens and a hint.
    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    assert "Profile this training step" in screen
    assert "bwd" in screen


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
