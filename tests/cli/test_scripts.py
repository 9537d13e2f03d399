"""The commands on training scripts as they are."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source.corpus import SCRIPTS

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def run_in(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one command as a shell would."""
    return subprocess.run(
        [sys.executable, "-m", "skyline_lsp", *arguments], cwd=folder, capture_output=True, text=True, timeout=150
    )


def test_training_and_evaluation_sizes_are_told_apart(tmp_path: Path) -> None:
    """Of the two sizes of a script the one that the model trains with is proven, and the other is without effect."""
    shutil.copy(SCRIPTS / "mnist_style.py", tmp_path)
    done = run_in(tmp_path, "sites", "mnist_style.py", "--prove", "--json")
    assert done.returncode == 0, done.stderr
    training, evaluation = json.loads(done.stdout)
    assert (training["line"], training["evaluation"], training["proven"]) == (42, False, True)
    assert (evaluation["evaluation"], evaluation["proven"]) == (True, False)


def test_a_script_runs_where_the_command_is_given(tmp_path: Path) -> None:
    """Relative paths mean to a script what they mean to Python: a path below the folder that the user is in."""
    (tmp_path / "pyproject.toml").write_text("[tool.skyline]\nmeasure.timeBudgetSeconds = 0.05\n")
    below = tmp_path / "trainer"
    below.mkdir()
    (below / "size.txt").write_text("6")
    (below / "train.py").write_text(
        "import sys, torch\n"
        "size = int(open(sys.argv[1]).read())\n"
        "net = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "while True:\n"
        "    net(torch.randn(size, 3)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    done = run_in(below, "profile", "train.py", "--json", "--", "size.txt")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["batch_size"] == 6


def test_a_module_is_run_by_its_name(tmp_path: Path) -> None:
    """With -m the program is a module's, as for Python: relative imports work, and its site is proven."""
    shutil.copytree(SCRIPTS / "run_as_module", tmp_path, dirs_exist_ok=True)
    done = run_in(tmp_path, "sites", "-m", "experiment", "--prove", "--json")
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)[0]
    assert (best["path"], best["proven"]) == ("experiment/settings.py", True)


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    """A name that leads to no file is a fault of usage."""
    done = run_in(tmp_path, "profile", "-m", "no.such")
    assert done.returncode == 2
    assert "no.such" in done.stderr
