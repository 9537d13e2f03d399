"""The law of the peak: exact where operations are the same, and what is done where they aren't."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyline_lsp.prediction.peak_memory import (
    Calibration,
    PeakMemoryModel,
    fit_peak_memory,
    peak_law,
    refit_peak_memory,
)
from skyline_lsp.protocol import Sample, from_json, to_json
from tests.prediction.curves import Lines, recorded, sample

NETWORK: Lines = (
    *((4_000_000, 0), (4_000_000, 120_000), (4_000_000, 350_000), (9_000_000, 310_000), (12_000_000, 90_000)),
    (12_000_000, 0),
)
"""Weights, activations that grow over the forward pass, gradients that come as activations go, the optimizer."""


def peak(lines: Lines, batch_size: int) -> int:
    return max(fixed + each * batch_size for fixed, each in lines)


def check_model(samples: Sequence[Sample], problem: str | None = None) -> PeakMemoryModel:
    """There is a model, and it says what is wrong with it, or nothing."""
    model, problems = fit_peak_memory(samples)
    assert model is not None
    if problem is None:
        assert problems == ()
    else:
        assert any(problem in one for one in problems), problems
    return model


# -- the law -----------------------------------------------------------------------------------------------------------


def test_two_sizes_tell_every_other() -> None:
    """From 8 and 16, the peak of any size is exact, though different moments are the peak."""
    model = check_model([recorded(8, NETWORK), recorded(16, NETWORK)], problem="rests on two")
    for size in (1, 2, 31, 100, 1000):
        assert model.predict(size).value == pytest.approx(peak(NETWORK, size), rel=1e-12)


def test_a_third_size_checks_the_law() -> None:
    """A peak that was not used and agrees makes the interval narrow and the model without a doubt."""
    model = check_model([recorded(size, NETWORK) for size in (8, 16, 64)])
    estimate = model.predict(500)
    assert estimate.low <= peak(NETWORK, 500) <= estimate.high
    assert estimate.high / estimate.low < 1.01


def test_the_unsafe_side_is_wider() -> None:
    """To run out of memory is worse than to leave some."""
    estimate = check_model([recorded(size, NETWORK) for size in (8, 16, 64)]).predict(100)
    assert estimate.high - estimate.value > estimate.value - estimate.low > 0


LINES = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**8)), min_size=1, max_size=30)


@settings(deadline=None)
@given(lines=LINES, sizes=st.sets(st.integers(1, 512), min_size=2, max_size=2), asked=st.integers(1, 10_000))
def test_the_law_is_the_highest_of_all_lines(lines: Lines, sizes: set[int], asked: int) -> None:
    """Dropping the lines that are never the highest changes nothing."""
    first, second = sorted(sizes)
    live = [[fixed + each * size for fixed, each in lines] for size in (first, second)]
    law = peak_law(first, live[0], second, live[1])
    assert law.peak_bytes(asked) == pytest.approx(peak(lines, asked), rel=1e-9, abs=1)
    assert len(law.lines) <= len(lines)
    slopes = [each for _, each in law.lines]
    assert slopes == sorted(slopes)


@pytest.mark.parametrize(("second", "live"), [(8, (1, 2)), (16, (1, 2, 3)), (16, ())])
def test_no_law_without_the_same_operations(second: int, live: tuple[int, ...]) -> None:
    """Equal sizes, or another number of operations, are refused."""
    with pytest.raises(ValueError, match="same operations"):
        peak_law(8, (1, 2), second, live)


# -- allocators --------------------------------------------------------------------------------------------------------


def allocated(batch_size: int, offset: int = 50_000_000, slope: float = 1.03) -> Sample:
    """A sample on an accelerator, whose allocator rounds up and lends workspaces."""
    live = recorded(batch_size, NETWORK)
    return sample(batch_size, 10.0, peak_bytes=round(offset + slope * live.peak_bytes), live_bytes=live.live_bytes)


def test_the_law_is_calibrated_to_the_allocator() -> None:
    """What the allocator takes beyond storages is found from measured peaks, and predicted along."""
    model = check_model([allocated(size) for size in (8, 16, 64)])
    assert model.calibration.offset_bytes == pytest.approx(50_000_000, rel=1e-3)
    assert model.calibration.slope == pytest.approx(1.03, rel=1e-3)
    assert model.predict(300).value == pytest.approx(50_000_000 + 1.03 * peak(NETWORK, 300), rel=1e-4)


def test_a_calibration_can_be_given() -> None:
    """A known allocator needs no fit: two recordings do."""
    model, _ = fit_peak_memory(
        [allocated(8), allocated(16)], calibration=Calibration(offset_bytes=50_000_000, slope=1.03)
    )
    assert model is not None
    assert model.predict(64).value == pytest.approx(50_000_000 + 1.03 * peak(NETWORK, 64), rel=1e-6)


def test_workspaces_that_come_and_go_widen_the_interval() -> None:
    """Peaks that keep a per cent or two from the law are still within its interval."""
    samples = [allocated(size) for size in (8, 16, 32, 64)]
    samples[2] = sample(32, 10.0, peak_bytes=round(samples[2].peak_bytes * 1.015), live_bytes=samples[2].live_bytes)
    model = check_model(samples)
    estimate = model.predict(32)
    assert estimate.low <= samples[2].peak_bytes <= estimate.high
    assert estimate.high / estimate.low > 1.02


def test_a_law_found_without_running_is_held_against_peaks() -> None:
    """A law from elsewhere predicts by itself; a peak that contradicts it is named."""
    live = [recorded(size, NETWORK).live_bytes for size in (2, 4)]
    law = peak_law(2, live[0], 4, live[1])
    model, problems = fit_peak_memory([], law=law)
    assert model is not None
    assert model.predict(100).value == pytest.approx(peak(NETWORK, 100))
    assert problems == ()
    others = [sample(size, 10.0, peak_bytes=peak(NETWORK, size) * size) for size in (8, 16, 32)]
    contradicted, problems = fit_peak_memory(others, law=law)
    assert contradicted is not None
    assert contradicted.law is None
    assert "off what the program would need" in problems[0]


# -- other operations --------------------------------------------------------------------------------------------------


def test_a_batch_of_one_may_run_other_operations() -> None:
    """Where only the smallest size differs, the law of the others holds for them, and the difference is told."""
    lone = recorded(1, [*NETWORK[:-1], (60_000_000, 0)])
    model = check_model([lone, *(recorded(size, NETWORK) for size in (8, 16, 32))], problem="Below batch size 8")
    assert model.predict(100).value == pytest.approx(peak(NETWORK, 100))
    assert model.predict(1).value == pytest.approx(lone.peak_bytes)


def test_another_number_of_operations_at_one_size_is_passed_over() -> None:
    """A size with more operations gives no law, but if its peak agrees there is nothing to tell."""
    longer = recorded(1, [*NETWORK, (1000, 10)])
    check_model([longer, *(recorded(size, NETWORK) for size in (8, 16, 32))])


def test_operations_that_depend_on_the_size_are_told() -> None:
    """No two sizes with the same operations: peaks are interpolated, and the counts stand in the reason."""
    samples = [recorded(size, [*NETWORK, *[(0, 0)] * size]) for size in (4, 8, 16)]
    model = check_model(samples, problem="10 at 4, 14 at 8, 22 at 16")
    assert model.law is None


def test_a_contradicted_law_is_not_used() -> None:
    """The same number of operations, but not the same ones: the middle peak shows it."""
    samples = [recorded(8, NETWORK), recorded(16, [(0, 3_000_000)] * 6), recorded(32, NETWORK)]
    model = check_model(samples, problem="at batch size 16")
    assert model.law is None
    assert model.predict(16).value == samples[1].peak_bytes


# -- interpolation -----------------------------------------------------------------------------------------------------


def bare(*sizes: int) -> list[Sample]:
    """Samples of the network without its live bytes."""
    return [sample(size, 10.0, peak_bytes=peak(NETWORK, size)) for size in sizes]


@pytest.mark.parametrize("sizes", [(1, 8), (8, 16), (4, 16, 64), (1, 2, 8, 32, 128)])
def test_interpolated_intervals_hold_for_convex_peaks(sizes: tuple[int, ...]) -> None:
    """Between, below and beyond measured peaks the interval holds the true one, whatever line takes over."""
    model = check_model(bare(*sizes), problem="live bytes were not recorded")
    for size in (1, 3, 6, 12, 48, 100, 256, 1000):
        estimate = model.predict(size)
        assert estimate.low <= peak(NETWORK, size) <= estimate.high, size


def test_extrapolated_peaks_are_wide_on_the_unsafe_side() -> None:
    """A line through two peaks is the least that a convex curve can be."""
    estimate = check_model(bare(8, 16), problem="interpolated").predict(128)
    assert estimate.high - estimate.value > 2 * (estimate.value - estimate.low)


@settings(deadline=None)
@given(
    lines=st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**7)), min_size=1, max_size=8),
    sizes=st.sets(st.integers(1, 256), min_size=2, max_size=6),
    asked=st.integers(1, 1024),
)
def test_interpolation_bounds_every_convex_curve(lines: Lines, sizes: set[int], asked: int) -> None:
    """Whatever the lines, a peak that they give is within the interval."""
    samples = [sample(size, 10.0, peak_bytes=peak(lines, size)) for size in sizes]
    model, _ = fit_peak_memory(samples)
    assert model is not None
    estimate = model.predict(asked)
    assert estimate.low <= peak(lines, asked) <= estimate.high
    assert 0 < estimate.low <= estimate.value <= estimate.high


def test_one_size_says_nothing_of_others() -> None:
    """A single peak is no curve, recorded or not."""
    assert fit_peak_memory([recorded(8, NETWORK)])[0] is None
    assert fit_peak_memory([])[0] is None


# -- later -------------------------------------------------------------------------------------------------------------


def test_a_law_outlives_its_recordings() -> None:
    """Once known, the law is held against later peaks without live bytes."""
    model = check_model([recorded(size, NETWORK) for size in (8, 16, 64)])
    more = [sample(size, 10.0, peak_bytes=peak(NETWORK, size)) for size in (8, 16, 64, 256)]
    again, problems = refit_peak_memory(model, more)
    assert again is not None
    assert problems == ()
    assert again.law == model.law
    changed = [*more[:-1], sample(256, 10.0, peak_bytes=2 * peak(NETWORK, 256))]
    other, problems = refit_peak_memory(model, changed)
    assert other is not None
    assert other.law is None
    assert "off what was predicted" in problems[0]


def test_a_model_survives_json() -> None:
    """A model kept in a file predicts the same, and holds no time line."""
    lines = [(int(fixed), int(each)) for fixed, each in np.random.default_rng(0).integers(1, 10**6, (5000, 2))]
    model = check_model([recorded(size, lines) for size in (8, 16, 64)])
    text = json.dumps(to_json(model))
    assert len(text) < 10_000
    again = from_json(PeakMemoryModel, json.loads(text))
    assert again.predict(100) == model.predict(100)


# -- a real program ----------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_the_law_holds_for_a_real_network() -> None:
    """A convolutional network's peaks at sizes never recorded, against the storages of real iterations."""
    torch = pytest.importorskip("torch")
    from skyline_lsp.worker.live_storages import LiveStorages, Recording

    class Nowhere:
        node = 0
        loading_data = False
        recomputing = False

    def record(batch_size: int) -> Recording:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1),
            torch.nn.BatchNorm2d(16),
            torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(16, 32, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(32 * 7 * 7, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 10),
        )
        optimizer = torch.optim.AdamW(model.parameters())
        images, labels = torch.rand(batch_size, 3, 16, 16), torch.zeros(batch_size, dtype=torch.long)

        def iteration() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()

        iteration()
        storages = LiveStorages(Nowhere(), model.parameters(), model.buffers(), [optimizer], "cpu")
        storages.start()
        iteration()
        return storages.stop()

    def real(batch_size: int) -> Sample:
        recording = record(batch_size)
        return sample(
            batch_size, 10.0, peak_bytes=recording.peak()[0], live_bytes=tuple(map(int, recording.operations))
        )

    # What other tests leave alive in this process is alive at every size: it belongs to the law's fixed part.
    model, _ = fit_peak_memory([real(8), real(16)])
    assert model is not None
    assert model.law is not None
    assert len(model.law.lines) > 1
    for size in (2, 32, 100):
        assert model.predict(size).value == pytest.approx(real(size).peak_bytes, rel=0.005)
