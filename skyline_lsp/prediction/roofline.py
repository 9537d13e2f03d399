"""What bounds a line, and the step: the device's arithmetic, its memory, or the host that feeds it.

The roofline model (Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
architectures", 2009) says that work can't take less time than its FLOP at the peak FLOP/s, nor less than its bytes at
the peak bandwidth. To these two floors comes a third: its operations at what launching the smallest one takes. The
highest floor names the bound, where it accounts for a fair part of the time that was measured.

Peaks are what this device was measured to reach, not what its maker promises. Bytes are counted by operation, each
operand once: a lower bound of what the operations ask for, of which caches may serve a part, so that more than the
bandwidth of a large copy may be reached.
"""

import enum
from dataclasses import dataclass

from skyline_lsp.protocol import LineCost, Peaks, PhaseKind, Profile

EXPLAINED = 0.2
"""Least share of a line's time that its highest floor accounts for, if the floor is to name the bound.

Lines reach from half to nine tenths of a peak where a kernel is good, and a third where several kernels, their launches
and the gaps between them add up; an operation with its autograd part costs three to four bare launches. Below a fifth
most of the time is spent on something that no count tells of, such as Python, a kernel far from what the device can
do, or other programs: to name a bound then would be a guess.
"""


class Bound(enum.Enum):
    """What a line's time is spent on."""

    COMPUTE = "compute-bound"
    MEMORY = "memory-bound"
    LAUNCH = "launch-bound"
    """The host gives operations to the device more slowly than the device could do them."""
    UNKNOWN = "unknown"


class StepBound(enum.Enum):
    """What the step as a whole is spent on, for the most part."""

    DATA = "data-bound"
    HOST = "host-bound"
    DEVICE = "device-bound"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRoofline:
    """One line's own work against the device's peaks. Shares are of 1, and may exceed it."""

    run_time_ms: float
    flop: int
    flop_type: str | None
    bytes_moved: int
    operations: int
    intensity: float | None
    """FLOP for each byte; None where no bytes are moved."""
    flop_per_second: float
    bytes_per_second: float
    """At least."""
    utilisation: float | None
    """Of the peak FLOP/s of its data type; None without FLOP, or where that peak is not known."""
    bandwidth_share: float
    """Of the peak bandwidth, at least."""
    launch_share: float
    """What bare launches of its operations would take, of its time."""
    bound: Bound
    reason: str
    """One sentence with the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRoofline:
    """The iteration against the device's peaks. The times sum to the iteration's."""

    flop: int
    bytes_moved: int
    flop_per_second: float
    bytes_per_second: float
    """At least."""
    utilisation: float | None
    """Model FLOP utilisation: time that the FLOP would take at the peaks of their types, of the iteration's."""
    compute_ms: float
    """On compute-bound lines."""
    memory_ms: float
    """On memory-bound lines."""
    launch_ms: float
    """On launch-bound lines."""
    loading_ms: float
    """In data loaders."""
    unexplained_ms: float
    bound: StepBound
    reason: str
    """One sentence with the numbers."""


def line_roofline(cost: LineCost, peaks: Peaks) -> LineRoofline | None:
    """A line's own work and what bounds it; None where it takes no time or nothing of it was counted."""
    run_time_ms = cost.self_forward_ms + cost.self_backward_ms
    if run_time_ms <= 0 or not (cost.self_operations or cost.self_flop or cost.self_bytes_moved):
        return None
    seconds = run_time_ms / 1000
    peak_flop = peaks.flop_per_second.get(cost.flop_type) if cost.flop_type is not None else None
    floors = {
        Bound.COMPUTE: 1000 * cost.self_flop / peak_flop if peak_flop else 0.0,
        Bound.MEMORY: 1000 * cost.self_bytes_moved / peaks.bytes_per_second if peaks.bytes_per_second > 0 else 0.0,
        Bound.LAUNCH: cost.self_operations * peaks.launch_ms,
    }
    # A compiled region moves fewer bytes and launches fewer operations than were counted without the compiler.
    fused = cost.label is not None
    bound, reason = _verdict(cost, run_time_ms, floors, peak_known=peak_flop is not None, fused=fused)
    return LineRoofline(
        run_time_ms=run_time_ms,
        flop=cost.self_flop,
        flop_type=cost.flop_type,
        bytes_moved=cost.self_bytes_moved,
        operations=cost.self_operations,
        intensity=cost.self_flop / cost.self_bytes_moved if cost.self_bytes_moved else None,
        flop_per_second=cost.self_flop / seconds,
        bytes_per_second=cost.self_bytes_moved / seconds,
        utilisation=floors[Bound.COMPUTE] / run_time_ms if peak_flop and cost.self_flop else None,
        bandwidth_share=floors[Bound.MEMORY] / run_time_ms,
        launch_share=floors[Bound.LAUNCH] / run_time_ms,
        bound=bound,
        reason=reason,
    )


def step_roofline(profile: Profile) -> StepRoofline | None:
    """The iteration's work and what bounds it; None without peaks, lines or counts."""
    peaks, whole_ms = profile.peaks, profile.iteration.run_time_ms
    if peaks is None or whole_ms <= 0:
        return None
    lines = [roofline for cost in profile.lines if (roofline := line_roofline(cost, peaks)) is not None]
    if not lines:
        return None
    on = {bound: sum(line.run_time_ms for line in lines if line.bound is bound) for bound in Bound}
    loading_ms = sum(phase.run_time_ms for phase in profile.phases if phase.kind is PhaseKind.DATA_LOADING)
    rest_ms = whole_ms - on[Bound.COMPUTE] - on[Bound.MEMORY] - on[Bound.LAUNCH]
    # A data loader's time is also its line's, of which the counts explain nothing.
    loading_ms = max(0.0, min(loading_ms, rest_ms))
    unexplained_ms = rest_ms - loading_ms
    parts = {
        StepBound.DATA: loading_ms,
        StepBound.HOST: on[Bound.LAUNCH],
        StepBound.DEVICE: on[Bound.COMPUTE] + on[Bound.MEMORY],
        StepBound.UNKNOWN: unexplained_ms,
    }
    shares = (
        ("compute-bound lines", on[Bound.COMPUTE]),
        ("memory-bound lines", on[Bound.MEMORY]),
        ("launch-bound lines", on[Bound.LAUNCH]),
        ("data loaders", loading_ms),
        ("what no count explains", unexplained_ms),
    )
    told = ", ".join(f"{_percent(part / whole_ms)} in {name}" for name, part in shares if part >= whole_ms / 200)
    flop = sum(line.flop for line in lines)
    bytes_moved = sum(line.bytes_moved for line in lines)
    return StepRoofline(
        flop=flop,
        bytes_moved=bytes_moved,
        flop_per_second=1000 * flop / whole_ms,
        bytes_per_second=1000 * bytes_moved / whole_ms,
        utilisation=_model_utilisation(profile, peaks),
        compute_ms=on[Bound.COMPUTE],
        memory_ms=on[Bound.MEMORY],
        launch_ms=on[Bound.LAUNCH],
        loading_ms=loading_ms,
        unexplained_ms=unexplained_ms,
        bound=max(parts, key=lambda part: parts[part]),
        reason=f"Of its time it spends {told}.",
    )


def ridge_intensity(peaks: Peaks, dtype: str) -> float | None:
    """FLOP for each byte from which on the arithmetic, not the memory, sets the floor; None where not known."""
    peak = peaks.flop_per_second.get(dtype)
    return peak / peaks.bytes_per_second if peak and peaks.bytes_per_second > 0 else None


def _verdict(
    cost: LineCost, run_time_ms: float, floors: dict[Bound, float], *, peak_known: bool, fused: bool
) -> tuple[Bound, str]:
    if fused:
        floors = {Bound.COMPUTE: floors[Bound.COMPUTE]}
    highest = max(floors, key=lambda bound: floors[bound])
    least_told = min(run_time_ms, floors[highest]) / 100
    told = [f"{_ms(floor)} {_FOR[bound]}" for bound, floor in floors.items() if floor > 0 and floor >= least_told]
    if cost.self_flop and not peak_known:
        return Bound.UNKNOWN, f"What the device does of {cost.flop_type or 'this data type'} at best is not measured."
    if not told:
        return Bound.UNKNOWN, "What a compiled region moves and launches is not known."
    measured = f"the device's best would be {', '.join(told)}; measured are {_ms(run_time_ms)}"
    share = floors[highest] / run_time_ms
    if share < EXPLAINED:
        return Bound.UNKNOWN, f"No count explains its time: {measured}."
    if highest is Bound.MEMORY and share > 1:
        measured += ", since caches serve a part"
    return highest, f"{measured[0].upper()}{measured[1:]}."


_FOR = {
    Bound.COMPUTE: "for its FLOP",
    Bound.MEMORY: "for its bytes",
    Bound.LAUNCH: "to launch its operations",
}


def _model_utilisation(profile: Profile, peaks: Peaks) -> float | None:
    floor_s = 0.0
    for node in profile.tree:
        if node.self_flop:
            peak = peaks.flop_per_second.get(node.flop_type or "")
            if not peak:
                return None
            floor_s += node.self_flop / peak
    return 1000 * floor_s / profile.iteration.run_time_ms if floor_s else None


def _ms(value_ms: float) -> str:
    if value_ms >= 1000:
        return f"{value_ms / 1000:.3g} s"
    return f"{value_ms:.2g} ms" if value_ms < 100 else f"{value_ms:.0f} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"
