"""The project's interpreter is the user's wherever one can be found."""

import os
from collections.abc import Mapping
from pathlib import Path

from skyline_lsp.server.interpreter import expand, find_interpreter

OWN = "/own/python"


def make(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


def check_found(root: Path, expected: str, reason: str, *, environ: Mapping[str, str] | None = None, **more) -> None:
    found = find_interpreter(root=str(root), environ=environ or {}, own=OWN, **more)
    assert (found.path, found.problem) == (expected, None)
    assert reason in found.reason


def test_the_setting_outweighs_everything(tmp_path: Path) -> None:
    """Relative to the root, with the editor's variable, or a command on the path."""
    make(tmp_path / ".venv/bin/python")
    chosen = make(tmp_path / "other/bin/python")
    check_found(tmp_path, chosen, "setting", setting="other/bin/python")
    check_found(tmp_path, chosen, "setting", setting="${workspaceFolder}/other/bin/python")
    found = find_interpreter(root=str(tmp_path), setting="sh", environ={}, own=OWN)
    assert os.path.basename(found.path) == "sh"
    assert found.problem is None


def test_a_setting_that_names_nothing_is_said(tmp_path: Path) -> None:
    """Rather than quietly running another interpreter."""
    found = find_interpreter(root=str(tmp_path), setting="nowhere/python", environ={}, own=OWN)
    assert found.problem is not None
    assert "nowhere/python" in found.problem


def test_a_setting_for_another_machine_is_not_looked_at(tmp_path: Path) -> None:
    """`workerCommand` may lead elsewhere."""
    check_found(tmp_path, "/opt/far/python", "setting", setting="/opt/far/python", remote=True)


def test_the_projects_environment_comes_before_the_active_one(tmp_path: Path) -> None:
    """The one nearest to the program first."""
    active = {"VIRTUAL_ENV": str(tmp_path / "active")}
    make(tmp_path / "active/bin/python")
    check_found(tmp_path, str(tmp_path / "active/bin/python"), "VIRTUAL_ENV", environ=active)
    outer = make(tmp_path / "venv/bin/python")
    check_found(tmp_path, outer, "venv", environ=active)
    inner = make(tmp_path / "app/.venv/bin/python")
    check_found(tmp_path, inner, ".venv", environ=active, near=str(tmp_path / "app"))


def test_conda_and_windows_layouts(tmp_path: Path) -> None:
    """Scripts\\python.exe in a venv, python.exe at the top of a conda environment."""
    conda = {"CONDA_PREFIX": str(tmp_path / "conda")}
    top = make(tmp_path / "conda/python.exe")
    check_found(tmp_path, top, "CONDA_PREFIX", environ=conda, windows=True)
    scripts = make(tmp_path / ".venv/Scripts/python.exe")
    check_found(tmp_path, scripts, ".venv", environ=conda, windows=True)
    check_found(tmp_path, make(tmp_path / "conda/bin/python"), "CONDA_PREFIX", environ=conda)


def test_without_any_the_servers_own_is_used(tmp_path: Path) -> None:
    """And a stale variable does not mislead."""
    check_found(tmp_path, OWN, "skyline-lsp itself", environ={"VIRTUAL_ENV": "/gone"})


def test_paths_of_settings_are_taken_from_the_root() -> None:
    """Relative, absolute, and by the home folder."""
    assert expand("a/../b", "/root") == os.path.normpath("/root/b")
    assert expand("/abs", "/root") == os.path.normpath("/abs")
    assert expand("~/x", "/root") == os.path.normpath(os.path.expanduser("~/x"))
