"""Which sizes are measured, in which order, and when it is enough."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyline_lsp.prediction import Known, Spent, expected_seconds, fit, next_batch_size, next_batch_size_for
from skyline_lsp.prediction.sampling import RANGE
from tests.prediction.curves import CURVES, NOISES, Curve, Machine, Noise, exact, recorded, sample

GIB = 2**30
MIB = 2**20
EXACT = Noise(quartiles=0.0, drift=0.0)


def run(
    known: Known,
    curve: Curve = CURVES["line"],
    *,
    noise: Noise = EXACT,
    lines: Sequence[tuple[int, int]] = ((GIB, 0), (GIB // 2, 32 * MIB)),
    memory_bytes: int | None = None,
    fails: Sequence[int] = (),
    overhead_s: float = 3.0,
) -> tuple[list[int], Known]:
    """Measure what is asked for until nothing is; gives the sizes in order, and what is known then."""
    machine = Machine(noise, seed=0)
    asked: list[int] = []
    while (size := next_batch_size(known)) is not None:
        assert size not in asked
        asked.append(size)
        needed = recorded(size, lines)
        if size in fails:
            known = replace(known, failed=(*known.failed, size))
            continue
        if memory_bytes is not None and needed.peak_bytes > memory_bytes:
            known = replace(known, out_of_memory=(*known.out_of_memory, size))
            continue
        one = replace(machine.measure(curve, size), peak_bytes=needed.peak_bytes, live_bytes=needed.live_bytes)
        seconds = overhead_s + known.iterations * one.run_time_ms / 1000
        left = None if known.seconds_left is None else known.seconds_left - seconds
        spent = (*known.spent, Spent(batch_size=size, seconds=seconds))
        known = replace(known, samples=(*known.samples, one), spent=spent, seconds_left=left)
    return asked, known


# -- the plan ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("current", [1, 2, 4, 8, 16, 20, 32, 64, 100, 128, 512])
@pytest.mark.parametrize("noise", ["accelerator", "laptop"])
def test_a_few_sizes_far_apart(current: int, noise: str) -> None:
    """Four to eight sizes that span eight times or more, the current one first."""
    asked, known = run(Known(current=current), noise=NOISES[noise])
    assert asked[0] == current
    assert 4 <= len(asked) <= 8
    assert max(asked) >= 8 * min(asked)
    assert max(asked) <= max(16, 4 * current)
    assert fit(known.samples).time is not None


@pytest.mark.parametrize("current", [16, 32, 64, 256])
def test_one_size_is_no_multiple_of_eight(current: int) -> None:
    """What devices do in blocks is looked at once: once is enough."""
    asked, _ = run(Known(current=current), noise=NOISES["laptop"])
    assert len([size for size in asked if size > 8 and size % 8]) == 1


def test_the_order_is_no_slope() -> None:
    """A machine that gets slower over the minutes is not taken for a program that gets slower over the sizes."""
    asked, _ = run(Known(current=32), noise=NOISES["laptop"])
    assert asked != sorted(asked)
    assert asked != sorted(asked, reverse=True)


def test_the_same_is_known_the_same_is_asked() -> None:
    """The choice is a function of what is known, and of nothing else."""
    known = run(Known(current=32), noise=NOISES["laptop"])[1]
    for count in range(len(known.samples)):
        part = replace(known, samples=known.samples[:count])
        assert next_batch_size(part) == next_batch_size(part)


def test_a_clean_curve_needs_less_than_a_noisy_one() -> None:
    """Measuring ends when predictions are as good as was wished."""
    clean, _ = run(Known(current=32))
    noisy, _ = run(Known(current=32), noise=NOISES["busy"])
    assert len(clean) < len(noisy)
    strict, _ = run(Known(current=32, wished_error=0.005))
    assert len(strict) > len(clean)


def test_predictions_are_as_good_as_wished_on_a_clean_curve() -> None:
    """Over a quarter to four times the current size, intervals are about as narrow as asked for."""
    _, known = run(Known(current=32, wished_error=0.05))
    model = fit(known.samples).time
    assert model is not None
    widths = [estimate.high / estimate.low for estimate in model.predict_many([8, 16, 48, 64, 96])]
    assert max(widths) < 1.1


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_budget_is_kept() -> None:
    """No measurement is begun that is expected not to end in time."""
    asked, known = run(Known(current=32, seconds_left=60.0), lambda b: 300 + 100 * b)
    assert known.seconds_left is not None
    assert known.seconds_left >= 0
    assert 2 <= len(asked) < 6


def test_slow_sizes_are_left_for_later() -> None:
    """When iterations take seconds, cheap small sizes tell most per second."""
    asked, _ = run(Known(current=32), lambda b: 300 + 100 * b)
    assert max(asked[1:3]) < 32


def test_expected_seconds_come_from_what_was_spent() -> None:
    """Starting the program, and its iterations."""
    samples = tuple(sample(size, 100.0 * size) for size in (4, 8))
    spent = tuple(Spent(batch_size=size, seconds=5 + 8 * 0.1 * size) for size in (4, 8))
    known = Known(current=8, samples=samples, spent=spent, iterations=8)
    assert expected_seconds(known, 16) == pytest.approx(5 + 8 * 1.6)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_nothing_is_measured_that_will_not_fit() -> None:
    """With the device's memory known, no measurement runs out of it."""
    asked, known = run(Known(current=32, memory_bytes=2 * GIB), memory_bytes=2 * GIB)
    assert known.out_of_memory == ()
    assert max(asked) > 32


def test_the_second_sample_out_of_memory_bounds_the_rest() -> None:
    """Running out of memory is a result: the search goes on below, with few further accidents."""
    samples = (recorded(32, [(GIB, 0)], run_time_ms=116.0),)
    asked, known = run(
        Known(current=32, samples=samples, out_of_memory=(64,)), lines=[(0, 32 * MIB)], memory_bytes=50 * 32 * MIB
    )
    assert max(asked) < 64
    assert len(known.out_of_memory) <= 2
    assert len(known.samples) >= 3


def test_a_current_size_out_of_memory_is_halved() -> None:
    """Where the program's own size doesn't run, smaller ones are tried until one does."""
    asked, known = run(Known(current=64), lines=[(0, 32 * MIB)], memory_bytes=20 * 32 * MIB)
    assert asked[:3] == [64, 32, 16]
    assert len(known.samples) >= 3
    assert len(known.out_of_memory) <= 4


def test_no_size_runs() -> None:
    """When even one sample is too much, there is nothing to measure."""
    asked, known = run(Known(current=8), lines=[(GIB, 0)], memory_bytes=GIB // 2)
    assert known.samples == ()
    assert asked == [8, 4, 2, 1]


# -- programs with a will of their own ---------------------------------------------------------------------------------


def test_a_program_for_one_size_is_not_tried_for_ever() -> None:
    """A hard-coded reshape fails at every other size: a few failures are enough."""
    asked, known = run(Known(current=32), fails=[size for size in range(1, 200) if size != 32])
    assert len(known.failed) == len(asked) - 1 <= 3


def test_one_failure_is_passed_over() -> None:
    """A size that fails, such as 1 under batch normalisation, is left out, and the rest measured."""
    asked, known = run(Known(current=8), fails=[1, 2], noise=NOISES["laptop"])
    assert len(known.samples) >= 4
    assert len(asked) <= 9


def test_a_maximum_is_kept() -> None:
    """No size is larger than what can be set."""
    asked, _ = run(Known(current=32, maximum=50), noise=NOISES["laptop"])
    assert 32 < max(asked) <= 50


def test_constant_time_is_followed_upwards() -> None:
    """Where time doesn't grow, larger sizes are measured until it does."""
    asked, known = run(Known(current=8), lambda b: max(40.0, 0.3 * b))
    assert max(asked) >= 256
    model = fit(known.samples).time
    assert model is not None
    assert not model.flat


@settings(deadline=None, max_examples=50)
@given(
    current=st.integers(1, 1000),
    curve=st.sampled_from(sorted(CURVES)),
    noise=st.sampled_from(sorted(NOISES)),
    memory=st.one_of(st.none(), st.integers(GIB // 2, 64 * GIB)),
    maximum=st.one_of(st.none(), st.integers(1, 2000)),
    seconds=st.one_of(st.none(), st.floats(1, 300)),
    fails=st.sets(st.integers(1, 64), max_size=5),
)
def test_it_ends(
    current: int,
    curve: str,
    noise: str,
    memory: int | None,
    maximum: int | None,
    seconds: float | None,
    fails: set[int],
) -> None:
    """Whatever the program does, there are few measurements, each of another size, all of sizes that can be set."""
    known = Known(current=current, memory_bytes=memory, maximum=maximum, seconds_left=seconds)
    asked, _ = run(known, CURVES[curve], noise=NOISES[noise], memory_bytes=memory, fails=sorted(fails))
    assert len(asked) <= 20
    assert all(1 <= size <= max(maximum or size, min(current, maximum or current)) for size in asked)


@pytest.mark.parametrize("wanted", [1, 3, 500, 4000])
def test_sizes_far_from_the_current_one_are_measured_around(wanted: int) -> None:
    """What is asked for ends within RANGE of a measured size, however far from the current one it is."""
    known = Known(current=32)
    while (size := next_batch_size_for(known, (wanted,))) is not None:
        known = replace(known, samples=(*known.samples, *exact(CURVES["line"], (size,))))
    assert any(wanted <= RANGE * one.batch_size and one.batch_size <= RANGE * wanted for one in known.samples)
