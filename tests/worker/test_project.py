"""Which files are the user's."""

import os
import sys
from pathlib import Path

import pytest

from skyline_lsp.worker.project import Project


def make(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


@pytest.mark.parametrize("name", ["train.py", "package/model.py", "env/gym.py", "venvs.py"])
def test_files_below_the_root(tmp_path: Path, name: str) -> None:
    """What lies below the root is the project's, under its path from there."""
    project = Project(str(tmp_path))
    file = make(tmp_path / name)
    assert project.is_project(file)
    assert project.relative(file) == name


@pytest.mark.parametrize(
    "name",
    [
        ".venv/lib/python3.11/site-packages/torch/nn.py",
        "venv/model.py",
        "libs/site-packages/package.py",
        "node_modules/tool/setup.py",
        ".git/hooks/hook.py",
    ],
)
def test_installed_files(tmp_path: Path, name: str) -> None:
    """What a tool put below the root is not the project's."""
    assert not Project(str(tmp_path)).is_project(make(tmp_path / name))


@pytest.mark.parametrize("name", ["", "<string>", "<frozen importlib._bootstrap>", "no-such-file.py"])
def test_no_files(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that was made from no file is not the project's."""
    monkeypatch.chdir(tmp_path)
    assert not Project(str(tmp_path)).is_project(name)


def test_environment_of_any_name(tmp_path: Path) -> None:
    """An environment is told by what is in it."""
    make(tmp_path / "torch2" / "pyvenv.cfg")
    assert not Project(str(tmp_path)).is_project(make(tmp_path / "torch2" / "lib" / "module.py"))


def test_running_interpreter_below_the_root() -> None:
    """The interpreter's own installation is not the project's, even where the root contains it."""
    project = Project(os.path.abspath(os.sep))
    assert not project.is_project(os.__file__)
    assert not project.is_project(str(Path(sys.prefix, "lib", "anything.py")))


def test_this_package_below_the_root() -> None:
    """Profiling from within this repository does not profile the profiler."""
    repository = Path(__file__).parents[2]
    project = Project(str(repository))
    assert not project.is_project(str(repository / "skyline_lsp" / "worker" / "host.py"))
    assert project.is_project(str(repository / "examples" / "gpt" / "transformer.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a right there")
def test_symbolic_links(tmp_path: Path) -> None:
    """A file belongs to the project by its name or by its target, and keeps the name from the root."""
    real = tmp_path / "data" / "project"
    file = make(real / "train.py")
    link = tmp_path / "home"
    link.symlink_to(real)
    for root, name in ((link, file), (real, str(link / "train.py")), (link, str(link / "train.py"))):
        project = Project(str(root))
        assert project.is_project(name)
        assert project.relative(name) == "train.py"
    outside = make(tmp_path / "elsewhere" / "layers.py")
    (real / "vendored").symlink_to(tmp_path / "elsewhere")
    assert Project(str(real)).relative(str(real / "vendored" / "layers.py")) == "vendored/layers.py"
    assert not Project(str(real)).is_project(outside)


def test_entry_file_elsewhere(tmp_path: Path) -> None:
    """The file that is started is the user's wherever it lies."""
    file = make(tmp_path / "scratch" / "train.py")
    root = tmp_path / "project"
    assert not Project(str(root)).is_project(file)
    project = Project(str(root), (file,))
    assert project.is_project(file)
    assert project.relative(file) == file.replace(os.sep, "/")


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code compiled under a relative name is the file's that it names."""
    make(tmp_path / "config" / "base.py")
    monkeypatch.chdir(tmp_path)
    assert Project(str(tmp_path)).relative("config/base.py") == "config/base.py"
