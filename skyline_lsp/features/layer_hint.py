"""What another value of a layer's argument would do: shown when hovering the argument, nowhere else."""

from collections.abc import Mapping

from skyline_lsp.features.cost import percent
from skyline_lsp.features.document import Block, heading, paragraph
from skyline_lsp.features.snapshot import Snapshot
from skyline_lsp.features.table import Cell, Table
from skyline_lsp.features.units import significant
from skyline_lsp.prediction.layer_cost import LayerStep, layer_steps
from skyline_lsp.prediction.roofline import Bound, line_roofline
from skyline_lsp.protocol import LineCost, Product
from skyline_lsp.source.torch_calls import PARAMETERS, Argument, TorchCall, TorchSource, torch_source

_DECISIVE = {"kernel_size", "stride", "num_layers", "bidirectional", "proj_size", "sparse", "num_heads"}
"""Arguments that change how the others count: unless they are written as numbers, nothing is said of those."""
_DEPENDENT = ("MaxPool", "AvgPool", "RNN", "LSTM", "GRU", "Embedding", "MultiheadAttention")

_NOTES: Mapping[tuple[str, str], str] = {
    ("Conv", "kernel_size"): "At the same size of the result, with padding as needed.",
    ("Embedding", "num_embeddings"): "Its gradient and the optimizer's update have a row for each.",
    (
        "MultiheadAttention",
        "num_heads",
    ): "FLOP stay; there are as many matrices of attention weights as heads.",
    ("MaxPool", "stride"): "What follows gets as many values fewer.",
    ("AvgPool", "stride"): "What follows gets as many values fewer.",
}


def argument_hint(snapshot: Snapshot, line: int, column: int) -> list[Block]:
    """What a step of the argument at a position does; nothing where that is no argument of a layer that ran."""
    if snapshot.profile is None or snapshot.preview is not None:
        return []
    source = torch_source(snapshot.source.text)
    for call in source.calls:
        if call.name not in PARAMETERS or not call.start.line <= line <= call.end.line:
            continue
        for argument in call.arguments:
            if argument.name and argument.holds(line, column):
                return _hint(snapshot, source, call, argument)
    return []


def _hint(snapshot: Snapshot, source: TorchSource, call: TorchCall, argument: Argument) -> list[Block]:
    unchanged = snapshot.line_of is None or all(
        number in snapshot.line_of.values() for number in range(call.start.line, call.end.line + 1)
    )
    if not unchanged:
        return []
    if call.short_name.startswith(_DEPENDENT) and any(
        other.value is None for other in call.arguments if other.name in _DECISIVE
    ):
        return []
    lines = _lines(snapshot, source, call)
    known = {other.name: int(other.value) for other in call.arguments if other.value is not None}
    rows: list[tuple[str | Cell, ...]] = []
    doubts: set[str] = set()
    for at in lines:
        cost = snapshot.costs[at]
        steps = layer_steps(call.short_name, argument.name, known, _products(snapshot, cost), cost)
        where = f"{cost.path}:{at}" if len(lines) > 1 else ""
        rows += [_row(snapshot, argument, step, cost, where, doubts) for step in steps]
    note = next(
        (text for (layer, name), text in _NOTES.items() if call.short_name.startswith(layer) and name == argument.name),
        None,
    )
    if not rows:
        return []
    blocks: list[Block] = [
        heading(f"{argument.name} of this {call.short_name}"),
        Table(header=(argument.name, "FLOP", "bytes, at least", "iteration", ""), rows=tuple(rows)),
    ]
    told = [f"Of line {', '.join(map(str, lines))}, which runs it."] if lines != (call.start.line,) else []
    told += [note] if note is not None else []
    told += sorted(doubts)
    if told:
        blocks.append(paragraph(" ".join(told)))
    return blocks


def _row(
    snapshot: Snapshot, argument: Argument, step: LayerStep, cost: LineCost, where: str, doubts: set[str]
) -> tuple[str | Cell, ...]:
    name = f"{round(100 * (step.factor - 1)):+d} %" if step.value is None else str(step.value)
    flop = percent(step.flop_change, cost.self_flop)
    moved = None if step.bytes_change is None else percent(step.bytes_change, cost.self_bytes_moved)
    return (
        name,
        _signed(flop) if cost.self_flop else "",
        "" if moved is None else _signed(moved),
        _of_iteration(snapshot, cost, flop, moved, doubts),
        where,
    )


def _of_iteration(snapshot: Snapshot, cost: LineCost, flop: float, moved: float | None, doubts: set[str]) -> str:
    """What the iteration takes more: the line's time moves as what bounds it."""
    profile = snapshot.profile
    assert profile is not None
    roofline = line_roofline(cost, profile.peaks) if profile.peaks is not None else None
    bound = Bound.UNKNOWN if roofline is None else roofline.bound
    change = {Bound.COMPUTE: flop, Bound.MEMORY: moved, Bound.LAUNCH: 0.0}.get(bound)
    if bound is Bound.UNKNOWN:
        change = flop if cost.self_flop else moved
        if change is not None:
            what = "FLOP" if cost.self_flop else "bytes"
            doubts.add(f"What bounds the line is not known; its time is taken to move with its {what}.")
    elif bound is Bound.LAUNCH:
        doubts.add("The line is launch-bound: its size changes little.")
    if change is None:
        return ""
    own = cost.self_forward_ms + cost.self_backward_ms
    shown = _signed(change * own / profile.iteration.run_time_ms)
    return f"about {shown}" if shown[0] in "+-" else shown


def _products(snapshot: Snapshot, cost: LineCost) -> list[Product]:
    profile = snapshot.profile
    assert profile is not None
    tree = profile.tree
    return [
        product
        for product in profile.products
        if (tree[product.node].path, tree[product.node].line) == (cost.path, cost.line)
    ]


def _lines(snapshot: Snapshot, source: TorchSource, call: TorchCall) -> tuple[int, ...]:
    """Lines of the file, as they are now, that run this layer and no other with products."""
    if call.sequence is not None:
        lines = [line for line in range(call.start.line, call.end.line + 1) if line in snapshot.costs]
        alone = sum(other.start.line == call.start.line for other in source.calls if other.sequence is not None) == 1
        return tuple(lines[:1]) if alone else ()
    if call.attribute is None or call.class_name is None:
        return ()
    layers = {
        (other.class_name, other.attribute)
        for other in source.calls
        if other.attribute is not None and other.name in PARAMETERS
    }
    used = [line for layer, lines in source.uses.items() if layer in layers for line in lines]
    own = source.uses.get((call.class_name, call.attribute), ())
    return tuple(line for line in dict.fromkeys(own) if used.count(line) == 1 and line in snapshot.costs)


def _signed(change_percent: float) -> str:
    """ "+12 %", "-1.1 %"."""
    if abs(change_percent) < 0.05:
        return "<0.1 %" if change_percent else "0 %"
    return f"{'+' if change_percent > 0 else ''}{significant(change_percent, 2)} %"
