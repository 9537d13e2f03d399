"""Advice on optimizers."""

from collections.abc import Mapping
from typing import Any

import pytest

from skyline_lsp.features.advice import AdviceCode
from tests.features.advice.cases import ADAM, advice_of, followed, sole, stepping


def test_an_optimizer_that_could_be_one_kernel() -> None:
    """An optimizer with a good part of the step tells what it moves now, and what one kernel would."""
    one = sole(stepping(), ADAM)
    assert (one.code, one.line) == (AdviceCode.FUSED_OPTIMIZER, 2)
    assert "100 tensors by 1200 operations" in one.message
    assert "at least 280 MiB: 20 ms, 20 % of the iteration" in one.message
    assert "one kernel moves 70 MiB; by that, it may save up to 15 % of the iteration" in one.message
    assert "torch.optim.Adam(parameters, lr=1e-3, fused=True)" in followed(stepping(), ADAM, 2)


@pytest.mark.parametrize(
    "changes",
    [{"fused": True}, {"can_fuse": False}, {"steps": 4}],
    ids=["fused", "can't", "moves no fewer bytes"],
)
def test_an_optimizer_with_nothing_to_gain(changes: Mapping[str, Any]) -> None:
    """One that is fused, can't be, or moves as many bytes when it is, is left alone."""
    assert not advice_of(stepping(**changes), ADAM)


def test_an_optimizer_that_is_made_in_two_ways() -> None:
    """Where it can't be told which call made it, the advice stands at the step, without a fix."""
    one = sole(
        stepping(), ADAM.replace("optimizer.step", "torch.optim.Adam(others)\noptimizer.step").replace("\n\n", "")
    )
    assert (one.line, one.change) == (3, None)
