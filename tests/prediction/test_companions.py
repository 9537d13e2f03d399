"""What is offered beside another batch size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.prediction import accumulation, learning_rate_rules


@pytest.mark.parametrize(
    ("old", "new", "steps", "expected"),
    [(32, 16, 1, 2), (32, 64, 4, 2), (32, 64, 1, 1), (8, 32, 4, 1), (32, 24, 3, 4)],
)
def test_accumulation_keeps_the_effective_batch(old: int, new: int, steps: int, expected: int) -> None:
    """Fewer samples a batch, more batches a step."""
    result = accumulation(old, new, steps)
    assert result.steps == expected
    assert result.effective_before == old * steps
    assert result.exact == (old * steps == new * expected)


@given(old=st.integers(1, 1000), new=st.integers(1, 1000), steps=st.integers(1, 64))
def test_no_other_number_of_steps_is_nearer(old: int, new: int, steps: int) -> None:
    """Where it can't be kept exactly, it is kept as near as may be."""
    result = accumulation(old, new, steps)
    distance = abs(result.effective_after - result.effective_before)
    assert all(distance <= abs(other * new - old * steps) for other in (result.steps - 1, result.steps + 1) if other)


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_nothing_is_below_one(numbers: tuple[int, int, int]) -> None:
    """Numbers below 1 are a caller's mistake."""
    with pytest.raises(ValueError, match="at least 1"):
        accumulation(*numbers)


def test_both_rules_for_the_learning_rate_name_their_source() -> None:
    """Four times the batch: four times, or twice, the learning rate."""
    linear, root = learning_rate_rules(64, 256, learning_rate=0.1)
    assert (linear.factor, root.factor) == (4, 2)
    assert linear.learning_rate == pytest.approx(0.4)
    assert root.learning_rate == pytest.approx(0.2)
    assert "1706.02677" in linear.source
    assert "1404.5997" in root.source
    assert "1705.08741" in root.source


def test_the_same_effective_batch_needs_no_rule() -> None:
    """With accumulation that keeps it, nothing about the learning rate is offered."""
    assert learning_rate_rules(64, 64, 0.1) == ()
    assert learning_rate_rules(64, 32)[0].learning_rate is None
