"""Hints: what each costly line costs, at its end, such as `fwd 1.2 ms  bwd 2.4 ms  12 %  98 MiB`."""

import heapq
from dataclasses import dataclass

from skyline_lsp.features.command import Command
from skyline_lsp.features.cost import Scale, ShownCost, mark, scale_for, shown_cost
from skyline_lsp.features.snapshot import Snapshot
from skyline_lsp.features.table import escape
from skyline_lsp.features.units import count, format_bytes, format_ms, format_percent
from skyline_lsp.protocol import LineCost

_PART = 0.1
"""A part of a hint is nothing below this share of the threshold: it would not change the line's sum as shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Text at the end of a line."""

    line: int
    text: str
    """ASCII, one line."""
    tooltip: str
    """Markdown."""
    command: Command | None = None


def inlay_hints(snapshot: Snapshot, first_line: int, last_line: int) -> tuple[Hint, ...]:
    """Hints of the lines from `first_line` to `last_line`, in order of lines, at most one a line."""
    profile, options = snapshot.profile, snapshot.options
    if profile is None or not options.hints_enabled:
        return ()
    scale = scale_for(profile, snapshot.preview)
    # Which lines are the costliest of the file must not depend on the part of it that the editor asks for.
    chosen = _costliest(snapshot, scale)
    before = mark(snapshot)
    return tuple(
        Hint(
            line=line,
            text=before + _text(cost, options.threshold_percent, options.show_memory),
            tooltip=_tooltip(snapshot, line, cost),
        )
        for line, cost in chosen
        if first_line <= line <= last_line
    )


def _costliest(snapshot: Snapshot, scale: Scale) -> list[tuple[int, ShownCost]]:
    options = snapshot.options
    worth = []
    for line, cost in snapshot.costs.items():
        weight = _weight(cost, scale, options.show_memory)
        if weight > 0 and weight >= options.threshold_percent:
            worth.append((weight, line))
    if len(worth) > options.most_hints:
        worth = heapq.nlargest(options.most_hints, worth, key=lambda pair: (pair[0], -pair[1]))
    return [(line, shown_cost(snapshot.costs[line], scale)) for line in sorted(line for _, line in worth)]


def _weight(cost: LineCost, scale: Scale, show_memory: bool) -> float:
    """The larger of a line's shares of time and of memory, in percent."""
    time = (cost.forward_ms + cost.backward_ms) * scale.time / scale.run_time_ms if scale.run_time_ms > 0 else 0.0
    if not show_memory or scale.peak_bytes <= 0:
        return 100 * time
    return 100 * max(time, cost.activation_bytes * scale.activations / scale.peak_bytes)


def _text(cost: ShownCost, threshold_percent: float, show_memory: bool) -> str:
    least = threshold_percent * _PART
    time = cost.forward_ms + cost.backward_ms
    parts = []
    if time > 0 and cost.time_percent >= least:
        for name, part in (("fwd", cost.forward_ms), ("bwd", cost.backward_ms)):
            if part > 0 and cost.time_percent * part / time >= least:
                parts.append(f"{name} {format_ms(part)}")
        parts.append(format_percent(cost.time_percent))
    if show_memory and cost.activation_bytes > 0 and cost.memory_percent >= least:
        parts.append(format_bytes(cost.activation_bytes))
    if cost.invocations > 1:
        parts.append(f"x{cost.invocations}")
    return "  ".join(parts)


def _tooltip(snapshot: Snapshot, line: int, cost: ShownCost) -> str:
    own = cost.self_forward_ms + cost.self_backward_ms
    lines = [
        f"forward {format_ms(cost.forward_ms)}, backward {format_ms(cost.backward_ms)}: "
        f"{format_percent(cost.time_percent)} of the iteration, with what the line calls",
        f"of it the line itself: {format_ms(own)} ({format_percent(cost.self_percent)})",
    ]
    if cost.activation_bytes > 0:
        lines.append(
            f"saved for backward: {format_bytes(cost.activation_bytes)} "
            f"({format_percent(cost.memory_percent)} of the peak), "
            f"of it the line itself: {format_bytes(cost.self_activation_bytes)}"
        )
    if cost.invocations > 1:
        lines.append(f"runs {count(cost.invocations, 'time')} an iteration")
    if cost.label:
        lines.append(escape(cost.label))
    if snapshot.preview is not None:
        lines.append(f"predicted for batch size {snapshot.preview.batch_size}")
    if snapshot.outdated:
        lines.append("measured before the last changes of the source")
    return "  \n".join(lines)
