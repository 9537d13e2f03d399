"""Which folder and which interpreter a program belongs to."""

import sys
from pathlib import Path

import pytest

from skyline_lsp.cli.project import open_project


def check_root(start: Path, expected: Path, root: Path | None = None) -> None:
    project = open_project(str(start), root=None if root is None else str(root), python=None)
    assert Path(project.root) == expected


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "setup.py"])
def test_the_root_is_the_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    """A repository or a package around the program is its project."""
    inner = tmp_path / "outer" / "project" / "models"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    if mark == ".git":
        (inner.parent / mark).mkdir()
    else:
        (inner.parent / mark).write_text("")
    check_root(inner, inner.parent)


def test_a_lone_folder_is_its_own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is marked, the program's folder is the project; a marked home folder is none."""
    home = tmp_path / "home"
    (home / ".git").mkdir(parents=True)
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    check_root(home / "work", home / "work")


def test_the_user_may_say_which_folder(tmp_path: Path) -> None:
    """`--root` counts, whatever is marked."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text("")
    check_root(tmp_path / "project", tmp_path, root=tmp_path)


def test_the_user_may_say_which_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--python` is taken from where the command is given, not from the root."""
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").symlink_to(sys.executable)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "env")
    interpreter = open_project(str(tmp_path / "project"), root=None, python="./python").interpreter
    assert (interpreter.path, interpreter.reason) == (str(tmp_path / "env" / "python"), "--python")


def test_settings_come_from_the_project(tmp_path: Path) -> None:
    """`[tool.skyline]` counts on the command line too, except for what decides what is executed."""
    (tmp_path / "pyproject.toml").write_text('[tool.skyline]\nhints.thresholdPercent = 5\npython = "evil"\n')
    project = open_project(str(tmp_path), root=None, python=None)
    assert project.settings.hints_threshold_percent == 5
    assert project.interpreter.path != "evil"
