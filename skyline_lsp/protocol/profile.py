"""The profile of one training iteration: plain, frozen data.

Units stand in the names: `_ms` milliseconds, `_bytes` bytes. Every time and count is per iteration. Times of lines
are scaled to the iteration that was timed without instrumentation, so that

    sum of self_forward_ms + self_backward_ms over `lines`  +  untracked_ms  =  iteration.run_time_ms

"Forward" is all the time outside backward passes: the forward computation, and also the loss, the optimizer and the
input pipeline.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.protocol.observations import LayoutTrial, LeafGradient, LoaderUse, OptimizerUse, Product

SCHEMA = 1
"""Version of the JSON form of `Profile`; it changes when a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the iteration ran on."""

    kind: str
    """torch's device type: "cpu", "cuda", "xpu", "mps", ..."""
    name: str
    """Its marketing name, such as "NVIDIA H200", or the processor's."""
    memory_bytes: int | None
    """Memory capacity; on a CPU the machine's (or the container's) memory. None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The program that ran."""

    kind: str
    """"provider", "script" or "module"."""
    path: str
    """Its file, relative to the project's root, with forward slashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """The iteration as a whole, timed without instrumentation, after warm-up, device synchronised at both ends."""

    run_time_ms: float
    """Median."""
    spread_ms: float
    """Interquartile range."""
    iterations: int
    """How many were timed."""
    samples_per_second: float
    """batch size x micro-batches / run time."""
    peak_bytes: int
    """Peak memory: of the allocator on an accelerator, of live storages on CPU."""
    times_ms: tuple[float, ...] = ()
    """Each timed iteration, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is alive at the moment when memory is highest; the five sum to `Iteration.peak_bytes`."""

    weights_bytes: int
    """Parameters and buffers."""
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    """Saved for backward, each storage once, without parameters, buffers and inputs."""
    other_bytes: int
    """Inputs, temporaries, and on an accelerator what the allocator holds beyond storages."""


class PhaseKind(enum.Enum):
    """A part of the iteration's wall time; together they are the whole of it."""

    DATA_LOADING = "data_loading"
    HOST_TO_DEVICE = "host_to_device"
    FORWARD = "forward"
    """Calls of the outermost modules."""
    LOSS = "loss"
    """From the end of the last forward to the start of a backward pass, and calls of loss modules."""
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One row of the breakdown of an iteration by what it does."""

    kind: PhaseKind
    run_time_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """One line reached by one path of project lines. Work done in library code is its nearest project line's."""

    parent: int
    """Index in `Profile.tree` of the line that called; -1 at the top. A parent stands before its children."""
    path: str
    """File, relative to the project's root, with forward slashes."""
    line: int
    """1-based."""
    function: str
    """Qualified name of the function the line is in; "<module>" at the top of a file."""
    module: str | None = None
    """For work of a module that library code called: its name and type. Path and line are then those of the project
    line above it, whose own cost it is part of."""
    self_forward_ms: float = 0.0
    self_backward_ms: float = 0.0
    self_activation_bytes: int = 0
    """Storages saved for backward by operations of the line, each storage once, at the first that saved it."""
    peak_bytes: int = 0
    """Bytes that the line allocated and that are alive at the peak."""
    invocations: int = 0
    """How many times the line ran."""
    recompute_ms: float = 0.0
    """Part of self_backward_ms spent running forward code again, under activation checkpointing."""
    label: str | None = None
    """A remark to show, such as that the line is a compiled region."""
    self_flop: int = 0
    """Floating-point operations, forward and backward, of products, convolutions, attention, recurrent layers."""
    self_bytes_moved: int = 0
    """What the operations read and write at least."""
    self_operations: int = 0
    """Operations given to the device."""
    flop_type: str | None = None
    """Data type of most of the FLOP, such as "float32"; None where there are none."""
    self_host_ms: float = 0.0
    """On an accelerator: what the host spent at the line, waiting for the device included, as traced; else 0."""
    self_host_reads: int = 0
    """Operations that hand values of the device's tensors to Python, for which the host waits."""
    self_pageable_bytes: int = 0
    """Copied to the accelerator out of memory that is not pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCost:
    """One line of one project file over all the paths that lead to it. Inclusive counts what the line calls."""

    path: str
    line: int
    self_forward_ms: float
    self_backward_ms: float
    forward_ms: float
    """Inclusive."""
    backward_ms: float
    """Inclusive."""
    self_activation_bytes: int
    activation_bytes: int
    """Inclusive."""
    invocations: int
    label: str | None = None
    recompute_ms: float = 0.0
    """Part of self_backward_ms."""
    self_flop: int = 0
    flop: int = 0
    """Inclusive."""
    self_bytes_moved: int = 0
    bytes_moved: int = 0
    """Inclusive."""
    self_operations: int = 0
    flop_type: str | None = None
    """Data type of the line's own FLOP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a device was measured to reach at most."""

    flop_per_second: dict[str, float]
    """Data type, such as "float32" -> FLOP/s of large matrix products."""
    bytes_per_second: float
    """Reads and writes of a large copy."""
    launch_ms: float
    """What the smallest operation takes, back to back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCost:
    """One parameter of the model."""

    name: str
    weight_bytes: int
    gradient_bytes: int
    """Bytes of its gradient after a backward pass; 0 where it gets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvent:
    """A point of the memory time line of one iteration."""

    time_ms: float
    """Since the start of the iteration, in the pass that recorded memory: an order, not a duration to rely on."""
    live_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one batch size was measured to cost."""

    batch_size: int
    run_time_ms: float
    spread_ms: float
    """Interquartile range."""
    iterations: int
    peak_bytes: int
    live_bytes: tuple[int, ...] = ()
    """Live bytes after each operation of the iteration, where recorded: input of the peak-memory law.

    All that a data loader does at a time counts as one operation.
    """


class Pass(enum.Enum):
    """What time at a line was spent on."""

    FORWARD = "forward"
    BACKWARD = "backward"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of one traced iteration during which one line was at work; as measured, not scaled."""

    node: int
    """Index in `Profile.tree`; -1 for time of no project line."""
    kind: Pass
    start_ms: float
    """Since the iteration began."""
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What a batch size would take in memory, found without allocating it."""

    batch_size: int
    peak_bytes: int
    live_bytes: tuple[int, ...]
    """Live bytes after each operation of the iteration."""
    files: dict[str, str]
    """Files that ran, as in `Profile.files`."""


class RemarkKind(enum.Enum):
    """What a remark is about; also its diagnostic code, by which it can be switched off."""

    GRAPH_BREAK = "graph-break"
    RECOMPILATION = "recompilation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something seen at a project line while the program ran."""

    kind: RemarkKind
    path: str
    """Relative to the project's root, with forward slashes."""
    line: int
    """1-based."""
    message: str
    """For the user, one sentence, what was measured included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything known about one training iteration."""

    schema: int = SCHEMA
    device: Device
    workload: Workload
    batch_size: int | None
    """Samples in a (micro-)batch; None where it could not be told."""
    micro_batches: int = 1
    """Batches of one iteration: more than one where gradients are accumulated over several."""
    iteration: Iteration
    untracked_ms: float
    """Iteration time that no project line accounts for."""
    memory: Memory
    phases: tuple[Phase, ...] = ()
    lines: tuple[LineCost, ...]
    tree: tuple[CallNode, ...]
    parameters: tuple[ParameterCost, ...] = ()
    timeline: tuple[MemoryEvent, ...] = ()
    segments: tuple[Segment, ...] = ()
    """One traced iteration in the order of time, where asked for."""
    peaks: Peaks | None = None
    slowdown: float = 1.0
    """Instrumented over plain iteration time: how much the tracer slowed the lines before they were scaled."""
    torch_version: str
    python_version: str
    files: dict[str, str]
    """Project files that ran, relative to the root -> SHA-256 of their bytes, in hexadecimal."""
    products: tuple[Product, ...] = ()
    loaders: tuple[LoaderUse, ...] = ()
    optimizers: tuple[OptimizerUse, ...] = ()
    leaf_gradients: tuple[LeafGradient, ...] = ()
    layout_trials: tuple[LayoutTrial, ...] = ()
    frozen_norms: int = 0
    """Batch normalisations by statistics that are not the batch's own."""
    remarks: tuple[Remark, ...] = ()
    warnings: tuple[str, ...] = ()
    """Remarks on how far to trust the numbers, each a sentence."""


def line_costs(tree: Sequence[CallNode]) -> tuple[LineCost, ...]:
    """Add up a call tree by line, sorted by path and line.

    A line's inclusive cost counts each node once even where the line is its own ancestor (recursion).
    """
    keys = [(node.path, node.line) for node in tree]
    chains: list[frozenset[tuple[str, int]]] = []
    rows: dict[tuple[str, int], _Row] = {}
    for key, node in zip(keys, tree, strict=True):
        above = chains[node.parent] if node.parent >= 0 else frozenset()
        chain = above | {key}
        chains.append(chain)
        rows.setdefault(key, _Row()).add_own(node)
        for ancestor in chain:
            rows[ancestor].add_below(node)
    return tuple(row.cost(path, line) for (path, line), row in sorted(rows.items()))


@dataclass(slots=True)
class _Row:
    """Sums of one line."""

    self_forward_ms: float = 0.0
    self_backward_ms: float = 0.0
    forward_ms: float = 0.0
    backward_ms: float = 0.0
    recompute_ms: float = 0.0
    self_activation_bytes: int = 0
    activation_bytes: int = 0
    invocations: int = 0
    self_flop: int = 0
    flop: int = 0
    self_bytes_moved: int = 0
    bytes_moved: int = 0
    self_operations: int = 0
    label: str | None = None
    largest_flop: int = 0
    flop_type: str | None = None

    def add_own(self, node: CallNode) -> None:
        self.self_forward_ms += node.self_forward_ms
        self.self_backward_ms += node.self_backward_ms
        self.recompute_ms += node.recompute_ms
        self.self_activation_bytes += node.self_activation_bytes
        self.invocations += node.invocations
        self.self_flop += node.self_flop
        self.self_bytes_moved += node.self_bytes_moved
        self.self_operations += node.self_operations
        self.label = self.label or node.label
        if node.self_flop > self.largest_flop:
            self.largest_flop, self.flop_type = node.self_flop, node.flop_type

    def add_below(self, node: CallNode) -> None:
        self.forward_ms += node.self_forward_ms
        self.backward_ms += node.self_backward_ms
        self.activation_bytes += node.self_activation_bytes
        self.flop += node.self_flop
        self.bytes_moved += node.self_bytes_moved

    def cost(self, path: str, line: int) -> LineCost:
        return LineCost(
            path=path,
            line=line,
            self_forward_ms=self.self_forward_ms,
            self_backward_ms=self.self_backward_ms,
            forward_ms=self.forward_ms,
            backward_ms=self.backward_ms,
            self_activation_bytes=self.self_activation_bytes,
            activation_bytes=self.activation_bytes,
            invocations=self.invocations,
            label=self.label,
            recompute_ms=self.recompute_ms,
            self_flop=self.self_flop,
            flop=self.flop,
            self_bytes_moved=self.self_bytes_moved,
            bytes_moved=self.bytes_moved,
            self_operations=self.self_operations,
            flop_type=self.flop_type,
        )
