"""Time on a device that isn't there, by the roofline (Williams, Waterman, Patterson 2009).

A line of a program can't be faster than its FLOP at the peak rate, nor than its bytes at the peak bandwidth. It is
taken to keep as far from that bound on the other device as it does here, and the host to take the time it takes.
That is an estimate and no measurement: kernels are written for devices, and meet their bounds differently.

Depends on numbers only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skyline_lsp.prediction.devices import DeviceSpec
from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.prediction.refusal import Refusal

SAME_KIND = 1.6
"""Factor either way that a line may miss, from one accelerator to another. Habitat (Yu et al. 2021), which models each
kind of kernel, misses by 11.8 % on average; scaling by peaks alone is coarser."""
EFFICIENCIES = (0.15, 0.35, 0.8)
"""Lowest, middle and highest part of the roofline that lines reach on an accelerator, where measurements on a host's
processor tell nothing of it."""

_LARGE_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWork:
    """What a line does in one iteration, and the time that takes."""

    run_time_ms: float
    flops: float
    """Floating-point operations; with `bytes` both 0, the time is the host's and stays."""
    bytes: float
    """Read and written at least."""
    data_type: str = "float32"
    """Of the operations, as in `DeviceSpec.flop_per_second`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledTime:
    """Iteration time on another device."""

    run_time_ms: Estimate
    """Its interval is assumed, not measured."""
    compute_share: float
    """Part of the time in lines that the peak rate limits there."""
    bandwidth_share: float
    """Part in lines that the bandwidth limits."""
    host_share: float
    """Part that was kept."""
    caveats: tuple[str, ...]
    """What is not known, each a sentence for the user."""


def scale_time(
    lines: Sequence[LineWork], host_ms: float, here: DeviceSpec, there: DeviceSpec, here_is_accelerator: bool = True
) -> ScaledTime | Refusal:
    """Iteration time of `lines` and `host_ms` (the rest of the iteration) on `there`, measured on `here`."""
    work = [line for line in lines if line.flops or line.bytes]
    if not work:
        return Refusal(reason="No line's operations or bytes are known, so nothing can be scaled to another device.")
    for device in (here, there):
        if device.bytes_per_second is None:
            return Refusal(
                reason=f"The memory bandwidth of {device.name} is not known, so time can't be scaled. Name a device of "
                "the table."
            )
    kept = host_ms + sum(line.run_time_ms for line in lines if not (line.flops or line.bytes))
    value = low = high = 0.0
    compute = 0.0
    for line in work:
        bounds = _bound(line, here), _bound(line, there)
        if bounds[0] is None or bounds[1] is None:
            device = here if bounds[0] is None else there
            return Refusal(
                reason=f"The peak rate of {device.name} for {line.data_type} is not known, so time can't be scaled."
            )
        bound, by_compute = bounds[1]
        if here_is_accelerator:
            # A line faster than its bound here would be one counted too high; it is taken at the bound.
            scaled = bound * max(1.0, line.run_time_ms / bounds[0][0])
            least, most = max(bound, scaled / SAME_KIND), scaled * SAME_KIND
        else:
            most, scaled, least = (bound / part for part in EFFICIENCIES)
        value, low, high = value + scaled, low + least, high + most
        compute += scaled if by_compute else 0.0
    total = kept + value
    return ScaledTime(
        run_time_ms=Estimate(value=total, low=kept + low, high=kept + high),
        compute_share=compute / total,
        bandwidth_share=(value - compute) / total,
        host_share=kept / total,
        caveats=tuple(_caveats(lines, here, here_is_accelerator, kept / total)),
    )


def _bound(line: LineWork, device: DeviceSpec) -> tuple[float, bool] | None:
    """(the least time in ms, whether computing takes it); None where the device's rate is not known."""
    moving = 1000 * line.bytes / (device.bytes_per_second or 1.0)
    if not line.flops:
        return moving, False
    rate = device.flop_per_second.get(line.data_type)
    if rate is None:
        return None
    computing = 1000 * line.flops / rate
    return max(computing, moving), computing >= moving


def _caveats(
    lines: Sequence[LineWork], here: DeviceSpec, here_is_accelerator: bool, host_share: float
) -> Iterator[str]:
    if not here_is_accelerator:
        yield (
            f"{here.name} tells nothing of how close to its peaks an accelerator comes: {EFFICIENCIES[0]:.0%} to "
            f"{EFFICIENCIES[2]:.0%} is assumed, and the time to launch operations is not counted."
        )
    if host_share > _LARGE_SHARE:
        yield f"{host_share:.0%} of the time is the host's and is taken to be the same there."
    if any(line.data_type == "float32" and line.flops for line in lines):
        yield "Products of float32 are taken to be computed as such; TF32, where it is allowed, is faster."
