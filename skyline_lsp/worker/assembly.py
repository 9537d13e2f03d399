"""From what was measured to the protocol's profile: pure functions, no clock, no torch calls that compute."""

import platform
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from skyline_lsp import protocol
from skyline_lsp.protocol import PhaseKind, RunSpec
from skyline_lsp.worker import compilation
from skyline_lsp.worker.call_tree import ROOT, CallTree
from skyline_lsp.worker.line_tracer import BACKWARD, FORWARD, RECOMPUTE, IterationTrace, LeafUse
from skyline_lsp.worker.live_storages import Recording, StorageClass
from skyline_lsp.worker.optimizers import OptimizerState
from skyline_lsp.worker.work import Work

TIMELINE_POINTS = 2000
"""A memory time line is thinned to about this many points."""


@dataclass(slots=True)
class Timing:
    """The plainly timed iterations."""

    times_ms: list[float]
    allocator_peak_bytes: int | None
    """None where the device's allocator keeps no statistics."""

    @property
    def median_ms(self) -> float:
        """Median; 0 where nothing was timed."""
        return statistics.median(self.times_ms) if self.times_ms else 0.0

    @property
    def spread_ms(self) -> float:
        """Interquartile range."""
        if len(self.times_ms) < 2:
            return 0.0
        lower, _, upper = statistics.quantiles(self.times_ms, n=4, method="inclusive")
        return upper - lower


@dataclass(slots=True, kw_only=True)
class Measured:
    """Everything that a run has measured so far."""

    spec: RunSpec
    device: protocol.Device
    batch_size: int | None
    micro_batches: int
    timing: Timing
    traces: Sequence[IterationTrace]
    recording: Recording | None
    work: Mapping[int, Work]
    """By tree node; empty while not counted."""
    peaks: protocol.Peaks | None
    tree: CallTree
    parameters: Sequence[protocol.ParameterCost]
    files: dict[str, str]
    remarks: tuple[protocol.Remark, ...]
    warnings: tuple[str, ...]
    optimizers: Mapping[int, OptimizerState] = field(default_factory=dict)
    """By identity, those that are alive."""
    leaf_gradients: Sequence[LeafUse] = ()
    layout_trials: tuple[protocol.LayoutTrial, ...] = ()
    processors: int = 1
    """How many the program may use."""

    @property
    def peak_bytes(self) -> int:
        """The allocator's peak where it keeps one, else the recording's; 0 while neither is known."""
        if self.timing.allocator_peak_bytes is not None:
            return self.timing.allocator_peak_bytes
        return self.recording.peak()[0] if self.recording is not None else 0

    @property
    def traced_ms(self) -> float:
        """Mean time of a traced iteration; 0 where none was."""
        return statistics.fmean(trace.total_ns for trace in self.traces) / 1e6 if self.traces else 0.0


def sample(measured: Measured) -> protocol.Sample:
    """The sample for predictions. The batch size must be known."""
    if measured.batch_size is None:
        raise ValueError("a sample needs a batch size")
    recorded = measured.recording is not None and measured.spec.measure.record_live_bytes
    return protocol.Sample(
        batch_size=measured.batch_size,
        run_time_ms=measured.timing.median_ms,
        spread_ms=measured.timing.spread_ms,
        iterations=len(measured.timing.times_ms),
        peak_bytes=measured.peak_bytes,
        live_bytes=tuple(measured.recording.operations) if recorded and measured.recording else (),
    )


def profile(measured: Measured, relative: Callable[[str], str]) -> protocol.Profile:
    """The profile, as far as it is known. `relative` gives a file's path relative to the project's root."""
    run_time_ms, traced_ms = measured.timing.median_ms, measured.traced_ms
    tree, positions = _call_nodes(measured, run_time_ms / traced_ms if traced_ms else 0.0, relative)
    tracked_ms = sum(node.self_forward_ms + node.self_backward_ms for node in tree)
    samples = (measured.batch_size or 0) * measured.micro_batches
    entry = measured.spec.entry
    return protocol.Profile(
        device=measured.device,
        workload=protocol.Workload(kind=entry.kind.value, path=relative(entry.path)),
        batch_size=measured.batch_size,
        micro_batches=measured.micro_batches,
        iteration=protocol.Iteration(
            run_time_ms=run_time_ms,
            spread_ms=measured.timing.spread_ms,
            iterations=len(measured.timing.times_ms),
            samples_per_second=1000.0 * samples / run_time_ms if run_time_ms else 0.0,
            peak_bytes=measured.peak_bytes,
            times_ms=tuple(measured.timing.times_ms),
        ),
        untracked_ms=run_time_ms - tracked_ms,
        memory=_memory(measured),
        phases=_phases(measured),
        lines=protocol.line_costs(tree),
        tree=tree,
        parameters=tuple(measured.parameters),
        timeline=_timeline(measured.recording),
        segments=_segments(measured, positions),
        peaks=measured.peaks,
        products=_products(measured, positions),
        loaders=_loaders(measured, relative),
        optimizers=_optimizers(measured, relative),
        leaf_gradients=_leaf_gradients(measured, relative),
        layout_trials=measured.layout_trials,
        frozen_norms=sum(work.frozen_norms for work in measured.work.values()),
        slowdown=_slowdown(measured),
        torch_version=str(torch.__version__),
        python_version=platform.python_version(),
        files=measured.files,
        remarks=measured.remarks,
        warnings=measured.warnings,
    )


def _call_nodes(
    measured: Measured, scale: float, relative: Callable[[str], str]
) -> tuple[tuple[protocol.CallNode, ...], dict[int, int]]:
    """The call tree with its costs, without the root and without what cost nothing; and where each node stands."""
    tree, traces = measured.tree, measured.traces
    times: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    calls: dict[int, float] = defaultdict(float)
    host_ms: dict[int, float] = defaultdict(float)
    for trace in traces:
        for key, spent_ns in trace.times_ns.items():
            times[key >> 2][key & 3] += spent_ns / 1e6 * scale / len(traces)
        for node, count in trace.invocations.items():
            calls[node] += count / len(traces)
        for node, spent_ns in trace.host_ns.items():
            host_ms[node] += spent_ns / 1e6 / len(traces)
    saved, at_peak = _bytes_by_node(measured.recording)
    kept = {node for node in (*times, *calls, *saved, *at_peak, *measured.work) if node != ROOT}
    for node in tuple(kept):
        parent = tree.nodes[node].parent
        while parent != ROOT and parent not in kept:
            kept.add(parent)
            parent = tree.nodes[parent].parent
    order = sorted(kept)
    positions = {node: position for position, node in enumerate(order)}
    rows = []
    for node in order:
        place = tree.nodes[node]
        spent = times[node]
        work = measured.work.get(node) or Work()
        rows.append(
            protocol.CallNode(
                parent=positions.get(place.parent, -1),
                path=relative(place.filename),
                line=place.line,
                function=place.function,
                module=place.module,
                self_forward_ms=spent[FORWARD],
                self_backward_ms=spent[BACKWARD] + spent[RECOMPUTE],
                self_activation_bytes=saved.get(node, 0),
                peak_bytes=at_peak.get(node, 0),
                invocations=round(calls[node]),
                recompute_ms=spent[RECOMPUTE],
                label=_label(tree, node),
                self_flop=sum(work.flop.values()),
                self_bytes_moved=work.bytes_moved,
                self_operations=work.operations,
                flop_type=max(work.flop, key=lambda dtype: work.flop[dtype]) if work.flop else None,
                self_host_ms=host_ms[node],
                self_host_reads=work.host_reads,
                self_pageable_bytes=work.pageable_bytes,
            )
        )
    return tuple(rows), positions


def _products(measured: Measured, positions: Mapping[int, int]) -> tuple[protocol.Product, ...]:
    return tuple(
        protocol.Product(
            node=positions[node],
            operation=shape.operation,
            shapes=shape.shapes,
            result=shape.result,
            dtype=shape.dtype,
            channels_last=shape.channels_last,
            count=product.count,
            flop=product.flop,
        )
        for node, work in sorted(measured.work.items())
        if node in positions
        for shape, product in work.products.items()
    )


def _loaders(measured: Measured, relative: Callable[[str], str]) -> tuple[protocol.LoaderUse, ...]:
    uses = dict.fromkeys(use for trace in measured.traces for use in trace.loading_ns)
    # The median: starting worker processes anew, once an epoch, is not what an iteration waits for.
    times = {use: statistics.median(trace.loading_ns.get(use, 0) for trace in measured.traces) / 1e6 for use in uses}
    places = measured.tree.nodes
    return tuple(
        protocol.LoaderUse(
            path=relative(places[node].filename),
            line=places[node].line,
            workers=workers,
            pinned=pinned,
            run_time_ms=run_time_ms,
            processors=measured.processors,
        )
        for (node, workers, pinned), run_time_ms in sorted(times.items())
        if node != ROOT
    )


def _optimizers(measured: Measured, relative: Callable[[str], str]) -> tuple[protocol.OptimizerUse, ...]:
    steps = measured.traces[-1].steps if measured.traces else {}
    found = []
    for (identity, node), count in steps.items():
        state, place = measured.optimizers.get(identity), measured.tree.nodes[node]
        if state is not None and node != ROOT:
            found.append(state.use(relative(place.filename), place.line, count))
    return tuple(sorted(found, key=lambda use: (use.path, use.line, use.name)))


def _leaf_gradients(measured: Measured, relative: Callable[[str], str]) -> tuple[protocol.LeafGradient, ...]:
    places = measured.tree.nodes
    return tuple(
        protocol.LeafGradient(
            path=relative(places[leaf.node].filename),
            line=places[leaf.node].line,
            shape=leaf.shape,
            gradient_bytes=leaf.nbytes,
        )
        for leaf in measured.leaf_gradients
        if leaf.node != ROOT
    )


def _segments(measured: Measured, positions: Mapping[int, int]) -> tuple[protocol.Segment, ...]:
    if not measured.traces:
        return ()
    return tuple(
        protocol.Segment(
            node=positions.get(key >> 2, -1),
            kind=_PASSES[key & 3],
            start_ms=start_ns / 1e6,
            duration_ms=spent_ns / 1e6,
        )
        for key, start_ns, spent_ns in measured.traces[-1].segments_ns
    )


_PASSES = {FORWARD: protocol.Pass.FORWARD, BACKWARD: protocol.Pass.BACKWARD, RECOMPUTE: protocol.Pass.RECOMPUTE}


def _label(tree: CallTree, node: int) -> str | None:
    code = tree.codes[node]
    return compilation.REGION_LABEL if code is not None and compilation.is_compiled(code) else None


def _slowdown(measured: Measured) -> float:
    if not measured.traces or not measured.timing.times_ms:
        return 1.0
    return statistics.median(trace.wall_ns for trace in measured.traces) / 1e6 / measured.timing.median_ms


def _bytes_by_node(recording: Recording | None) -> tuple[dict[int, int], dict[int, int]]:
    """For each tree node: bytes saved for backward, and bytes made there that are alive at the peak."""
    saved: dict[int, int] = defaultdict(int)
    at_peak: dict[int, int] = defaultdict(int)
    if recording is not None:
        _, alive = recording.peak()
        for index, storage in enumerate(recording.storages):
            if storage.saved_at is not None and storage.kind is StorageClass.ACTIVATION:
                saved[storage.saved_at] += storage.nbytes
            if index in alive:
                at_peak[storage.node] += storage.nbytes
    return saved, at_peak


def _phases(measured: Measured) -> tuple[protocol.Phase, ...]:
    totals: dict[PhaseKind, float] = defaultdict(float)
    for trace in measured.traces:
        for kind, spent_ns in trace.phases_ns.items():
            totals[kind] += spent_ns
    whole = sum(totals.values())
    if not whole:
        return ()
    factor = measured.timing.median_ms / whole
    return tuple(protocol.Phase(kind=kind, run_time_ms=totals[kind] * factor) for kind in PhaseKind if totals[kind])


def _memory(measured: Measured) -> protocol.Memory:
    sizes: dict[StorageClass, int] = defaultdict(int)
    live = 0
    if measured.recording is not None:
        live, alive = measured.recording.peak()
        for index in alive:
            storage = measured.recording.storages[index]
            sizes[storage.kind] += storage.nbytes
    # What an allocator held beyond storages: rounding, workspaces.
    sizes[StorageClass.OTHER] += measured.peak_bytes - live
    return protocol.Memory(
        weights_bytes=sizes[StorageClass.WEIGHT],
        gradients_bytes=sizes[StorageClass.GRADIENT],
        optimizer_bytes=sizes[StorageClass.OPTIMIZER],
        activations_bytes=sizes[StorageClass.ACTIVATION],
        other_bytes=sizes[StorageClass.OTHER],
    )


def _timeline(recording: Recording | None) -> tuple[protocol.MemoryEvent, ...]:
    if recording is None:
        return ()
    events = [protocol.MemoryEvent(time_ms=now_ns / 1e6, live_bytes=live) for now_ns, live in recording.live_bytes()]
    return _thinned(events, TIMELINE_POINTS)


def _thinned(events: Sequence[protocol.MemoryEvent], points: int) -> tuple[protocol.MemoryEvent, ...]:
    """Keep the lowest and the highest event of each of `points / 2` stretches, so that no peak is lost."""
    if len(events) <= points:
        return tuple(events)
    kept: list[protocol.MemoryEvent] = []
    stretches = points // 2
    for stretch in range(stretches):
        part = events[stretch * len(events) // stretches : (stretch + 1) * len(events) // stretches]
        lowest = min(part, key=lambda event: event.live_bytes)
        highest = max(part, key=lambda event: event.live_bytes)
        kept.extend(sorted({lowest, highest}, key=lambda event: event.time_ms))
    return tuple(kept)
