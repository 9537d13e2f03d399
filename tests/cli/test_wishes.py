"""Retuning by wish, and predicting for a device that isn't here, from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = """\
import torch
from torch import nn


def skyline_model_provider():
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))


def skyline_input_provider(batch_size=16):
    return torch.randn(batch_size, 256), torch.zeros(batch_size, dtype=torch.long)


def skyline_iteration_provider(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def iteration(inputs, targets):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return iteration
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "providers.py"
    path.write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.skyline]\npredictionBudgetSeconds = 8\n", encoding="utf-8")
    return path


def skyline(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "skyline_lsp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)


def test_a_memory_wish_becomes_an_edit(program: Path) -> None:
    """The patch sets a batch size, and what is predicted of it is told."""
    done = skyline("retune", str(program), "--memory", "1GiB")
    assert done.returncode == 0, done.stderr
    assert "+def skyline_input_provider(batch_size=" in done.stdout
    assert "samples/s" in done.stderr


@pytest.mark.parametrize("wish", [("--memory", "lots"), ("--throughput", "-3"), ("--fit", "--batch-size", "3"), ()])
def test_senseless_wishes_are_usage_errors(program: Path, wish: tuple[str, ...]) -> None:
    """What can't be meant ends with code 2 before anything is run."""
    assert skyline("retune", str(program), *wish).returncode == 2


def test_memory_on_another_device_is_found_without_allocating(program: Path) -> None:
    """A batch that this machine could not hold is answered for, with the device's source."""
    done = skyline("predict", str(program), "--batch-size", "16,50000000", "--device", "A100-40GB", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    small, huge = answer["predictions"]
    assert (small["fits"], small["allocated"]) == (True, False)
    assert huge["fits"] is False
    # Inputs and two activations of 512 floats, at least.
    assert huge["peak_bytes"] > 50_000_000 * (256 + 2 * 512) * 4 * 0.5
    assert answer["device"]["source"]


def test_an_unknown_device_is_refused(program: Path) -> None:
    """A name that is in no table is answered with what to give."""
    done = skyline("predict", str(program), "--batch-size", "16", "--device", "X9000")
    assert done.returncode == 1
    assert "GiB" in done.stderr
