"""Which folder a program belongs to."""

from pathlib import Path

import pytest

from skyline_lsp.cli.project import find_root


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
    assert find_root(str(inner)) == str(inner.parent)


def test_a_lone_folder_is_its_own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is marked, the program's folder is the project; a marked home folder is none."""
    home = tmp_path / "home"
    (home / ".git").mkdir(parents=True)
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert find_root(str(home / "work")) == str(home / "work")
    assert find_root(str(home)) == str(home)
