"""Wishes in words become retunings."""

import pytest

from skyline_lsp.prediction import Refusal, Retune, fit
from skyline_lsp.prediction.wish import Goal, Wish, fulfil, parse_wish
from skyline_lsp.protocol import Sample

GIB = 2**30
MODEL = fit(
    [
        Sample(
            batch_size=size, run_time_ms=10 + 2 * size, spread_ms=0.1, iterations=9, peak_bytes=GIB + size * GIB // 16
        )
        for size in (2, 4, 8, 16, 32)
    ]
)


@pytest.mark.parametrize(
    ("goal", "value", "wish"),
    [
        ("throughput", 900, Wish(goal=Goal.THROUGHPUT, amount=900)),
        ("throughput", "900", Wish(goal=Goal.THROUGHPUT, amount=900)),
        ("memory", "6GiB", Wish(goal=Goal.MEMORY, amount=6 * GIB)),
        ("memory", "80%", Wish(goal=Goal.MEMORY, amount=0.8)),
        ("memory", "100 %", Wish(goal=Goal.MEMORY, amount=1.0)),
        ("memory", 5e9, Wish(goal=Goal.MEMORY, amount=5e9)),
        ("maxThroughput", None, Wish(goal=Goal.MAX_THROUGHPUT)),
        ("fit", None, Wish(goal=Goal.FIT)),
    ],
)
def test_words_are_understood(goal: str, value: str | float | None, wish: Wish) -> None:
    """A goal and its value, in the forms of commands and of the command line, are a wish."""
    assert parse_wish(goal, value) == wish


@pytest.mark.parametrize(
    ("goal", "value"),
    [
        ("speed", 1),
        ("throughput", None),
        ("throughput", "fast"),
        ("throughput", -1),
        ("memory", "120%"),
        ("memory", "x"),
    ],
)
def test_nonsense_is_refused(goal: str, value: str | float | None) -> None:
    """What can't be meant is refused, with what to write instead."""
    refusal = parse_wish(goal, value)
    assert isinstance(refusal, Refusal)
    assert refusal.reason.endswith(".")


@pytest.mark.parametrize("goal", [Wish(goal=Goal.MEMORY, amount=0.5), Wish(goal=Goal.MEMORY, amount=2.0 * GIB)])
def test_a_memory_wish_is_kept(goal: Wish) -> None:
    """The peak stays within the wish, given as a share or in bytes."""
    retune = fulfil(MODEL, goal, 4 * GIB)
    assert isinstance(retune, Retune)
    assert retune.prediction.peak_bytes is not None
    assert retune.prediction.peak_bytes.high <= 2 * GIB


def test_a_share_of_unknown_memory_is_refused() -> None:
    """Without the device's capacity a share means nothing."""
    assert isinstance(fulfil(MODEL, Wish(goal=Goal.MEMORY, amount=0.5), None), Refusal)
    assert isinstance(fulfil(MODEL, Wish(goal=Goal.FIT), None), Refusal)


def test_a_throughput_wish_is_kept() -> None:
    """The predicted throughput reaches the wish."""
    retune = fulfil(MODEL, Wish(goal=Goal.THROUGHPUT, amount=400), None)
    assert isinstance(retune, Retune)
    assert retune.prediction.samples_per_second.value >= 400
