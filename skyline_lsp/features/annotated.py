"""Source with its costs beside it, as data: what draws it decides on widths and colours."""

from dataclasses import dataclass

from skyline_lsp.features.cost import ShownCost, percent, scale_for, shown_cost
from skyline_lsp.features.snapshot import Index, Snapshot
from skyline_lsp.features.units import format_bytes, format_ms, format_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedLine:
    """A line of a file and its cells; a cell is empty where the line has nothing to say there."""

    line: int
    source: str
    """As in the file, without its line end."""
    forward: str = ""
    """Inclusive, as the other cells are."""
    backward: str = ""
    share: str = ""
    """Of the iteration's time."""
    memory: str = ""
    """Activations."""
    invocations: str = ""
    heat: float = 0.0
    """0 to 1: share of the iteration that the line itself takes, relative to the file's hottest line."""
    cost: ShownCost | None = None
    """The numbers; None where the line has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCost:
    """A file of a profile."""

    path: str
    """As in the profile."""
    self_ms: float
    """Sum of its lines' self times."""
    share_percent: float
    """Of the iteration."""


def annotated_lines(snapshot: Snapshot) -> tuple[AnnotatedLine, ...]:
    """Every line of the file. Lines below the threshold have their numbers in `cost` and no cells."""
    if snapshot.profile is None:
        return tuple(AnnotatedLine(line=i, source=text) for i, text in enumerate(snapshot.source.lines, 1))
    scale = scale_for(snapshot.profile, snapshot.preview)
    costs = {line: shown_cost(cost, scale) for line, cost in snapshot.costs.items()}
    hottest = max((cost.self_percent for cost in costs.values()), default=0.0)
    return tuple(
        _annotate(snapshot, line, text, costs.get(line), hottest) for line, text in enumerate(snapshot.source.lines, 1)
    )


def near_costs(lines: tuple[AnnotatedLine, ...], context: int = 2) -> tuple[tuple[AnnotatedLine, ...], ...]:
    """The stretches of a file around the lines that have cells, with up to `context` lines on either side."""
    wanted: set[int] = set()
    for at, line in enumerate(lines):
        if line.share or line.memory:
            wanted.update(range(max(0, at - context), min(len(lines), at + context + 1)))
    stretches: list[list[AnnotatedLine]] = []
    for at in sorted(wanted):
        if at - 1 not in wanted:
            stretches.append([])
        stretches[-1].append(lines[at])
    return tuple(tuple(stretch) for stretch in stretches)


def files_by_cost(index: Index) -> tuple[FileCost, ...]:
    """The files of a profile, the costliest first."""
    whole = index.profile.iteration.run_time_ms
    found = []
    for path, costs in index.lines_by_path.items():
        self_ms = sum(cost.self_forward_ms + cost.self_backward_ms for cost in costs)
        found.append(FileCost(path=path, self_ms=self_ms, share_percent=percent(self_ms, whole)))
    return tuple(sorted(found, key=lambda file: (-file.self_ms, file.path)))


def _annotate(snapshot: Snapshot, line: int, source: str, cost: ShownCost | None, hottest: float) -> AnnotatedLine:
    if cost is None:
        return AnnotatedLine(line=line, source=source)
    threshold = snapshot.options.threshold_percent
    show_memory = snapshot.options.show_memory
    if max(cost.time_percent, cost.memory_percent if show_memory else 0.0) < threshold:
        return AnnotatedLine(line=line, source=source, cost=cost)
    return AnnotatedLine(
        line=line,
        source=source,
        forward=format_ms(cost.forward_ms) if cost.forward_ms > 0 else "",
        backward=format_ms(cost.backward_ms) if cost.backward_ms > 0 else "",
        share=format_percent(cost.time_percent) if cost.time_percent > 0 else "",
        memory=format_bytes(cost.activation_bytes) if show_memory and cost.activation_bytes > 0 else "",
        invocations=f"x{cost.invocations}" if cost.invocations > 1 else "",
        heat=max(0.0, min(1.0, cost.self_percent / hottest)) if hottest > 0 else 0.0,
        cost=cost,
    )
