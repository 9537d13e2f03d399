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
    """Live bytes after each operation of the iteration, where recorded: input of the peak-memory law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything known about one training iteration."""

    schema: int = SCHEMA
    device: Device
    workload: Workload
    batch_size: int | None
    """Samples in a (micro-)batch; None where it could not be told."""
    micro_batches: int = 1
    """Backward passes of one accumulated optimizer step."""
    iteration: Iteration
    untracked_ms: float
    """Iteration time that no project line accounts for."""
    memory: Memory
    phases: tuple[Phase, ...] = ()
    lines: tuple[LineCost, ...]
    tree: tuple[CallNode, ...]
    parameters: tuple[ParameterCost, ...] = ()
    timeline: tuple[MemoryEvent, ...] = ()
    slowdown: float = 1.0
    """Instrumented over plain iteration time: how much the tracer slowed the lines before they were scaled."""
    torch_version: str
    python_version: str
    files: dict[str, str]
    """Project files that ran, relative to the root -> SHA-256 of their bytes, in hexadecimal."""
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
        chain = above if key in above else above | {key}
        chains.append(chain)
        own = rows.setdefault(key, _Row())
        own.self_forward_ms += node.self_forward_ms
        own.self_backward_ms += node.self_backward_ms
        own.self_activation_bytes += node.self_activation_bytes
        own.invocations += node.invocations
        own.label = own.label or node.label
        for ancestor in chain:
            row = rows[ancestor]
            row.forward_ms += node.self_forward_ms
            row.backward_ms += node.self_backward_ms
            row.activation_bytes += node.self_activation_bytes
    return tuple(
        LineCost(
            path=path,
            line=line,
            self_forward_ms=row.self_forward_ms,
            self_backward_ms=row.self_backward_ms,
            forward_ms=row.forward_ms,
            backward_ms=row.backward_ms,
            self_activation_bytes=row.self_activation_bytes,
            activation_bytes=row.activation_bytes,
            invocations=row.invocations,
            label=row.label,
        )
        for (path, line), row in sorted(rows.items())
    )


@dataclass(slots=True)
class _Row:
    self_forward_ms: float = 0.0
    self_backward_ms: float = 0.0
    forward_ms: float = 0.0
    backward_ms: float = 0.0
    self_activation_bytes: int = 0
    activation_bytes: int = 0
    invocations: int = 0
    label: str | None = None
