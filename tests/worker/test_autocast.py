"""A run in mixed precision, as the program would be with `torch.autocast` around its step."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp.protocol import Goal
from tests.worker.programs import measure_program

PROGRAM = """
import torch

types = set()
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
weights = []

def iteration():
    y = net(torch.ones(4, 8))
    types.add(y.dtype)
    optimizer.zero_grad()
    y.float().square().mean().backward()
    optimizer.step()
    weights.append(net.weight.detach().clone())
    assert len(weights) == 1 or not torch.equal(weights[-1], weights[-2]), "the cast weights are stale"
    assert types == EXPECTED
"""


@pytest.mark.parametrize(("autocast", "dtype"), [("bfloat16", "torch.bfloat16"), (None, "torch.float32")])
def test_products_are_in_the_data_type_that_is_asked_for(tmp_path: Path, autocast: str | None, dtype: str) -> None:
    """Every iteration computes in that type, the weights stay and change in theirs, and afterwards all is as before."""
    program = PROGRAM.replace("EXPECTED", f"{{{dtype}}}")
    measurement = measure_program(tmp_path, program, Goal.SAMPLE, autocast=autocast)
    _, sample, _ = measurement.result()
    assert sample is not None
    assert sample.run_time_ms > 0
    assert not torch.is_autocast_enabled("cpu")
