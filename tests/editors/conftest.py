"""A real project for a real editor: the ResNet example in a folder of its own, and an environment of its own.

These tests take minutes and need the editors, so they run only where they are asked for: `make test-editors`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.driving import ROOT, Project

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out unless their marker is asked for."""
    ours = [item for item in items if FOLDER in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.editors)
        item.add_marker(pytest.mark.timeout(900))
        if "editors" not in config.getoption("markexpr"):
            item.add_marker(pytest.mark.skip(reason="drives a real editor; run `make test-editors`"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The ResNet example on smaller images, in a git repository, as a user would have it open."""
    root = tmp_path / "resnet"
    shutil.copytree(ROOT / "examples" / "resnet50", root, ignore=shutil.ignore_patterns("__pycache__"))
    providers = root / "providers.py"
    text = providers.read_text()
    assert "IMAGE_SIZE = 64\n" in text
    providers.write_text(text.replace("IMAGE_SIZE = 64\n", "IMAGE_SIZE = 40\n"))
    subprocess.run(["git", "init", "--quiet", root], check=True)
    return Project(root=root, scratch=tmp_path)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables for an editor that finds nothing of this machine's user, and this checkout's server on PATH."""
    home = tmp_path / "home"
    home.mkdir()
    given = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PYTHON", "SKYLINE"))}
    folders = [str(Path(sys.executable).parent), given.get("PATH", "")]
    return {
        **given,
        "HOME": str(home),
        "PATH": os.pathsep.join(folders),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        # Threads that wait for a busy machine's other work make a step many times as long.
        "OMP_NUM_THREADS": "1",
    }
