"""A program on a device that isn't here: whether a batch size fits, and about how long an iteration takes there.

Memory is what was found here, without allocating or by real runs, with an allowance for what a device adds to it. Time
is that of a profile made here, scaled by the roofline, and no measurement. Pure functions.
"""

from dataclasses import dataclass

from skyline_lsp.prediction.devices import DeviceSpec
from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.prediction.refusal import Refusal
from skyline_lsp.prediction.scaling import LineWork, ScaledTime, scale_time
from skyline_lsp.protocol import Profile

CONTEXT_BYTES = 512 * 2**20
"""What an accelerator's context and its libraries' workspaces are allowed; some hundred MiB are usual."""
ALLOCATOR_SHARE = 0.1
"""What an allocator is allowed beyond storages, for rounding and fragmentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPeak:
    """The peak of live storages at a batch size, as it was found here."""

    batch_size: int
    peak_bytes: Estimate
    """As wide as nothing where the program was run at that batch size, with data or without."""
    allocated: bool
    """Whether it was found by real runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakThere:
    """A batch size's memory on a device."""

    batch_size: int
    peak_bytes: Estimate
    """From what the storages take to that with the allowance."""
    fits: bool | None
    """None where it may or may not."""
    allocated: bool
    """Whether it was found by real runs."""


def exact_peak(batch_size: int, peak_bytes: float) -> FoundPeak:
    """A peak that was found without allocating."""
    return FoundPeak(
        batch_size=batch_size,
        peak_bytes=Estimate(value=peak_bytes, low=peak_bytes, high=peak_bytes),
        allocated=False,
    )


def peak_there(found: FoundPeak, device: DeviceSpec) -> PeakThere:
    """What was found here, with what a device adds to it, against what the device has."""
    here = found.peak_bytes
    with_allowance = here.value * (1 + ALLOCATOR_SHARE) + CONTEXT_BYTES
    there = Estimate(value=here.value, low=here.low, high=max(here.high, with_allowance))
    fits = True if there.high <= device.memory_bytes else False if there.low > device.memory_bytes else None
    return PeakThere(batch_size=found.batch_size, peak_bytes=there, fits=fits, allocated=found.allocated)


def time_there(profile: Profile, device: DeviceSpec) -> ScaledTime | Refusal:
    """An iteration of the profiled batch size on the device."""
    if profile.peaks is None:
        return Refusal(reason="What this device can do at most is not known, so time can't be scaled.")
    here = DeviceSpec(
        name=profile.device.name,
        memory_bytes=profile.device.memory_bytes or 0,
        flop_per_second=profile.peaks.flop_per_second,
        bytes_per_second=profile.peaks.bytes_per_second,
        source="measured",
    )
    lines = [
        LineWork(
            run_time_ms=line.self_forward_ms + line.self_backward_ms,
            flops=float(line.self_flop),
            bytes=float(line.self_bytes_moved),
            data_type=line.flop_type or "float32",
        )
        for line in profile.lines
    ]
    return scale_time(lines, max(0.0, profile.untracked_ms), here, device, profile.device.kind != "cpu")
