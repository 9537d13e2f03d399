"""Whether a batch size fits a device that isn't here, and how long an iteration takes there."""

import pytest

from skyline_lsp.prediction import (
    DeviceSpec,
    Estimate,
    FoundPeak,
    Refusal,
    ScaledTime,
    exact_peak,
    parse_device,
    peak_there,
    time_there,
)
from skyline_lsp.prediction.elsewhere import ALLOCATOR_SHARE, CONTEXT_BYTES
from tests.features.building import PEAKS, profile_of

GIB = 2**30


def device_of(gib: float) -> DeviceSpec:
    """A device of which the memory alone is known."""
    found = parse_device(f"{gib}GiB")
    assert isinstance(found, DeviceSpec)
    return found


@pytest.mark.parametrize(
    ("peak_gib", "fits"),
    [(5, True), (6.8, True), (7, None), (8, None), (8.01, False)],
)
def test_what_may_not_fit_is_not_said_to_fit(peak_gib: float, fits: bool | None) -> None:
    """The allowance decides between yes and maybe, the bare storages between maybe and no."""
    there = peak_there(exact_peak(4, peak_gib * GIB), device_of(8))
    assert there.fits is fits
    assert there.peak_bytes.high == pytest.approx(peak_gib * GIB * (1 + ALLOCATOR_SHARE) + CONTEXT_BYTES)
    assert there.peak_bytes.low == there.peak_bytes.value == peak_gib * GIB


def test_a_wide_prediction_stays_wide() -> None:
    """A peak that was extrapolated keeps its own interval where that is wider than the allowance."""
    found = FoundPeak(batch_size=4, peak_bytes=Estimate(value=4 * GIB, low=3 * GIB, high=20 * GIB), allocated=True)
    there = peak_there(found, device_of(8))
    assert (there.peak_bytes.low, there.peak_bytes.high, there.fits) == (3 * GIB, 20 * GIB, None)


def test_time_needs_the_peaks_of_both_devices() -> None:
    """Without them there is a reason; with them, the line's bound there within its interval."""
    tree = "train.py:11 step 8 2 flop=10000000000 moved=1MiB"
    a100 = parse_device("A100-80GB SXM")
    assert isinstance(a100, DeviceSpec)
    assert isinstance(time_there(profile_of(tree), a100), Refusal)
    assert isinstance(time_there(profile_of(tree, peaks=PEAKS), device_of(8)), Refusal)
    time = time_there(profile_of(tree, peaks=PEAKS), a100)
    assert isinstance(time, ScaledTime)
    assert time.run_time_ms.low >= 90 + 1000 * 1e10 / 19.5e12
    assert time.run_time_ms.low < time.run_time_ms.value < time.run_time_ms.high
