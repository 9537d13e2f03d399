"""The iteration as a whole, in a line, a paragraph and tables; used by lens, diagnostic, hover and command line."""

from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.features.cost import percent, scale_for
from skyline_lsp.features.snapshot import Index, Preview
from skyline_lsp.features.table import Cell, Table, code
from skyline_lsp.features.units import (
    count,
    format_bytes,
    format_ms,
    format_ms_with_spread,
    format_percent,
    format_range,
    format_throughput,
)
from skyline_lsp.features.work import bound_of, step_sentences
from skyline_lsp.protocol import LineCost, PhaseKind, Profile

_PHASES = {
    PhaseKind.DATA_LOADING: "data loading",
    PhaseKind.HOST_TO_DEVICE: "host to device",
    PhaseKind.FORWARD: "forward",
    PhaseKind.LOSS: "loss",
    PhaseKind.BACKWARD: "backward",
    PhaseKind.OPTIMIZER: "optimizer",
    PhaseKind.OTHER: "other",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A profile's tables, each of which may be empty of rows."""

    memory: Table
    """What is alive at the peak, by class."""
    phases: Table
    """The iteration's wall time by what it does."""
    lines: Table
    """The lines with the largest self times, and what no line accounts for."""


def headline_parts(profile: Profile, preview: Preview | None = None) -> tuple[str, ...]:
    """Iteration time, throughput, peak memory: ("71 ms/iteration (+-3)", "225 samples/s", "peak 1.2 GiB of ...")."""
    parts = [_time_part(profile, preview)]
    samples_per_second = (
        profile.iteration.samples_per_second if preview is None else preview.prediction.samples_per_second.value
    )
    if samples_per_second > 0:
        parts.append(format_throughput(samples_per_second))
    parts.append(f"peak {_peak_of_capacity(profile, preview)}")
    return tuple(parts)


def paragraph(profile: Profile, preview: Preview | None = None) -> str:
    """The same in sentences, with how it was measured."""
    device = profile.device.name or profile.device.kind
    batch_size = profile.batch_size if preview is None else preview.batch_size
    batch = f" of batch size {batch_size}" if batch_size is not None else ""
    if profile.micro_batches > 1:
        batch += f" x {profile.micro_batches} micro-batches"
    if preview is not None:
        estimate = preview.prediction.run_time_ms
        interval = format_range(estimate.low, estimate.high, format_ms)
        sentences = [
            f"Predicted: an iteration{batch} takes {format_ms(estimate.value)} ({interval}, 90 % interval) on {device}."
        ]
    else:
        iteration = profile.iteration
        time, spread = format_ms_with_spread(iteration.run_time_ms, iteration.spread_ms)
        how = f"median of {iteration.iterations}" if iteration.iterations != 1 else "one timed"
        sentences = [f"An iteration{batch} takes {time} ({spread}, {how}) on {device}."]
    parts = headline_parts(profile, preview)
    if len(parts) == 3:
        sentences.append(f"That is {parts[1]}.")
    sentences.append(f"Memory peaks at {_peak_of_capacity(profile, preview)}.")
    if profile.untracked_ms > 0 and preview is None:
        share = format_percent(percent(profile.untracked_ms, profile.iteration.run_time_ms))
        sentences.append(f"No project line accounts for {format_ms(profile.untracked_ms)} ({share}) of the time.")
    if preview is None:
        sentences += step_sentences(profile)
    return " ".join(sentences)


def breakdown(index: Index, preview: Preview | None = None, most_lines: int = 8) -> Breakdown:
    """The tables of a profile, as measured or as a preview has them."""
    return Breakdown(
        memory=memory_table(index.profile, preview),
        phases=phase_table(index.profile),
        lines=hottest_table(index, most_lines),
    )


def memory_table(profile: Profile, preview: Preview | None = None) -> Table:
    """What is alive at the peak. Under a preview activations scale, and "other" is what is left of the peak."""
    scale = scale_for(profile, preview)
    memory = profile.memory
    activations = memory.activations_bytes * scale.activations
    lasting = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    other = memory.other_bytes if preview is None else max(0.0, scale.peak_bytes - lasting - activations)
    rows = (
        ("weights", memory.weights_bytes),
        ("gradients", memory.gradients_bytes),
        ("optimizer", memory.optimizer_bytes),
        ("activations", activations),
        ("other", other),
        ("peak", scale.peak_bytes),
    )
    return Table(
        header=("memory at the peak" if preview is None else "memory at the peak, predicted", "bytes", "share"),
        rows=tuple(
            (name, format_bytes(size), format_percent(percent(size, scale.peak_bytes)))
            for name, size in rows
            if size > 0 or name == "peak"
        ),
    )


def phase_table(profile: Profile) -> Table:
    """Wall time of the phases, in the order of the profile."""
    whole = profile.iteration.run_time_ms
    return Table(
        header=("phase", "time", "share"),
        rows=tuple(
            (_PHASES[phase.kind], format_ms(phase.run_time_ms), format_percent(percent(phase.run_time_ms, whole)))
            for phase in profile.phases
            if phase.run_time_ms > 0
        ),
    )


def hottest_table(index: Index, most_lines: int = 8) -> Table:
    """The lines with the largest self times and, last, what no line accounts for: shares of one whole."""
    profile = index.profile
    whole = profile.iteration.run_time_ms
    rows: list[tuple[str | Cell, ...]] = []
    for cost in hottest_lines(index, most_lines):
        place = f"{cost.path}:{cost.line}"
        rows.append(
            (
                Cell(plain=place, markdown=code(place)),
                format_ms(cost.self_forward_ms),
                format_ms(cost.self_backward_ms),
                format_ms(cost.self_forward_ms + cost.self_backward_ms),
                format_percent(percent(cost.self_forward_ms + cost.self_backward_ms, whole)),
                format_bytes(cost.self_activation_bytes) if cost.self_activation_bytes else "",
                bound_of(profile, cost),
            )
        )
    rest = len(index.profile.lines) - len(rows)
    if rest > 0:
        others = index.hottest[len(rows) :]
        forward_ms = sum(cost.self_forward_ms for cost in others)
        backward_ms = sum(cost.self_backward_ms for cost in others)
        saved = sum(cost.self_activation_bytes for cost in others)
        rows.append(
            (
                f"{rest} more" if rows else count(rest, "line"),
                format_ms(forward_ms),
                format_ms(backward_ms),
                format_ms(forward_ms + backward_ms),
                format_percent(percent(forward_ms + backward_ms, whole)),
                format_bytes(saved) if saved else "",
                "",
            )
        )
    if profile.untracked_ms > 0:
        share = format_percent(percent(profile.untracked_ms, whole))
        rows.append(("on no line", "", "", format_ms(profile.untracked_ms), share, "", ""))
    header = ("line itself", "forward", "backward", "time", "share", "activations", "bound by")
    if profile.peaks is None:
        return Table(header=header[:-1], rows=tuple(row[:-1] for row in rows))
    return Table(header=header, rows=tuple(rows))


def hottest_lines(index: Index, most: int, least_percent: float = 0.5) -> Sequence[LineCost]:
    """Up to `most` lines with the largest self times, of those that take at least a share of the iteration."""
    whole = index.profile.iteration.run_time_ms
    return [
        cost
        for cost in index.hottest[:most]
        if percent(cost.self_forward_ms + cost.self_backward_ms, whole) >= least_percent
    ]


def _time_part(profile: Profile, preview: Preview | None) -> str:
    if preview is not None:
        estimate = preview.prediction.run_time_ms
        interval = format_range(estimate.low, estimate.high, format_ms)
        return f"{format_ms(estimate.value)}/iteration ({interval})"
    time, spread = format_ms_with_spread(profile.iteration.run_time_ms, profile.iteration.spread_ms)
    return f"{time}/iteration ({spread})" if profile.iteration.iterations > 1 else f"{time}/iteration"


def _peak_of_capacity(profile: Profile, preview: Preview | None) -> str:
    peak = scale_for(profile, preview).peak_bytes
    capacity = profile.device.memory_bytes
    if not capacity:
        return format_bytes(peak)
    return f"{format_bytes(peak)} of {format_bytes(capacity)} ({format_percent(percent(peak, capacity))})"
