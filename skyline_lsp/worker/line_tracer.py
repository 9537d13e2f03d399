"""Time and autograd nodes of one iteration, by project line.

Whenever a project line begins, a project function is called or returns, or the engine starts an autograd node, the
time since the last such boundary goes to whatever was current. The time line is partitioned, so nothing is counted
twice and little is missed. Backward nodes find their line by their sequence number: at each boundary the number that
the next node will get is noted.

Private parts of torch used here, checked by `self_test`: `_get_sequence_nr`, `Node._sequence_nr`, and
`torch.autograd._engine_run_backward`, through which every backward pass goes.
"""

import bisect
import enum
import inspect
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_iter
from torch.utils.data import dataloader

from skyline_lsp.protocol import PhaseKind
from skyline_lsp.worker.call_tree import ROOT, CallTree
from skyline_lsp.worker.device import Device, Mark

_autograd: Any = torch.autograd
_next_sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr

FORWARD, BACKWARD, RECOMPUTE = 0, 1, 2
"""What time at a node was spent on; a key is `4 * node + pass`."""

_NOBODY = -1
"""Key of time that is the tracer's own."""

_UNNUMBERED = 1 << 62
"""AccumulateGrad nodes carry a number beyond all others."""


class _Origin(enum.Enum):
    """Where a code object comes from, as far as tracing cares."""

    PROJECT = enum.auto()
    LIBRARY = enum.auto()
    WATCHED = enum.auto()
    """A library file with functions that begin a phase."""


@dataclass(slots=True)
class IterationTrace:
    """What one traced iteration took."""

    total_ns: int = 0
    """Without what the tracer itself took at its boundaries and on its walks over the graph."""
    wall_ns: int = 0
    """With it."""
    times_ns: dict[int, int] = field(default_factory=dict)
    """Key -> time."""
    phases_ns: dict[PhaseKind, int] = field(default_factory=dict)
    invocations: dict[int, int] = field(default_factory=dict)
    """Node -> how many times its line began."""
    segments_ns: list[tuple[int, int, int]] = field(default_factory=list)
    """(key, start, duration) in the order of time, where asked for."""
    backward_passes: int = 0
    input_shapes: tuple[tuple[int, ...], ...] | None = None
    """Shapes of the tensors given to the first module called, in training if one was; None where none was called."""
    micro_batches: int = 1
    """How many batches went through a model and back before the optimizer stepped, as far as calls tell."""
    host_ns: dict[int, int] = field(default_factory=dict)
    """Node -> what the host spent there, where device times are something else."""
    loading_ns: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    """(Node, worker processes, pinned memory) of a data loader -> how long a batch was waited for."""
    steps: dict[tuple[int, int], int] = field(default_factory=dict)
    """(Identity of an optimizer, the node that stepped it) -> how many times."""
    leaf_gradients: list["LeafUse"] = field(default_factory=list)
    """Tensors that are no parameters and were given a gradient; where asked for."""


@dataclass(frozen=True, slots=True)
class LeafUse:
    """A leaf of the graph that is no parameter of a module."""

    identity: int
    node: int
    """Tree node that used it."""
    shape: tuple[int, ...]
    nbytes: int


class ModuleNames(Protocol):
    """What is known of modules."""

    def construction(self, module: torch.nn.Module) -> tuple[CodeType, int] | None:
        """The project's code and line that made the module; None where the library did."""

    def name(self, module: torch.nn.Module) -> str:
        """Its qualified name and type, for the user."""


class _Record:
    """A project frame under way: the nodes of its lines, the current one, what its time counts as."""

    __slots__ = ("kind", "lines", "node", "parent")

    def __init__(self, parent: int, lines: dict[int, int], node: int, kind: int) -> None:
        self.parent = parent
        self.lines = lines
        self.node = node
        self.kind = kind


class LineTracer:
    """Traces iterations of the thread that calls `start`; between `stop` and `start` it costs nothing."""

    def __init__(
        self,
        is_project: Callable[[str], bool],
        device: Device,
        tree: CallTree | None = None,
        modules: ModuleNames | None = None,
        record_segments: bool = False,
        watch_leaves: bool = False,
    ) -> None:
        self.tree = tree if tree is not None else CallTree()
        self._modules = modules
        self._record_segments = record_segments
        self._watch_leaves = watch_leaves
        self._is_project = is_project
        self._device = device
        self._origins: dict[str, _Origin] = {}
        self._phase_codes = _phase_codes()
        self._watched = {code.co_filename for code in self._phase_codes}
        self._phase_of = {id(code): kind for code, kind in self._phase_codes.items()}
        # Autograd nodes numbered from _numbers[i] on, below _numbers[i + 1], were made at _number_nodes[i].
        self._numbers: list[int] = [0]
        self._number_nodes: list[int] = [ROOT]
        self._frames: list[FrameType] = []
        self._marks: list[tuple[int, Mark]] = []
        self._reset()

    def _reset(self) -> None:
        self.key = 4 * ROOT
        """Key of what is running now."""
        self._since = 0
        self._times: dict[int, int] = defaultdict(int)
        self._segments: list[tuple[int, int, int]] = []
        self._counts: dict[int, int] = defaultdict(int)
        self._stack: list[_Record] = []
        self._engine_depth: int | None = None
        self._engine_key = 4 * ROOT + BACKWARD
        self._node_name = ""
        self._phases = _PhaseClock()
        self._module_depth = 0
        self._backward_passes = 0
        self._batch_passes = 0
        self._module_calls: dict[int, int] = defaultdict(int)
        self._input_shapes: tuple[tuple[int, ...], ...] | None = None
        self._fed_in_training = False
        self._loading: dict[tuple[int, int, bool], int] = defaultdict(int)
        self._steps: dict[tuple[int, int], int] = defaultdict(int)
        self._leaf_gradients: list[LeafUse] = []

    @property
    def recomputing(self) -> bool:
        """Whether forward code runs again, for activation checkpointing."""
        return self.key & 3 == RECOMPUTE or (self._engine_depth is not None and self._checkpointing)

    @property
    def _checkpointing(self) -> bool:
        return self._node_name.startswith("CheckpointFunction")

    @property
    def loading_data(self) -> bool:
        """Whether a data loader is at work."""
        return self._phases.current is PhaseKind.DATA_LOADING

    @property
    def node(self) -> int:
        """The node of what is running now; the root where that is the tracer itself."""
        return max(self.key >> 2, ROOT)

    # -- start and stop ----------------------------------------------------------------------------------------

    def start(self, frame: FrameType | None = None) -> None:
        """Begin an iteration. `frame` and its callers are already running; theirs is the path to start with."""
        self._reset()
        self._marks = []
        outer: list[FrameType] = []
        while frame is not None:
            if self._origin(frame.f_code.co_filename) is _Origin.PROJECT:
                outer.append(frame)
            frame = frame.f_back
        for project_frame in reversed(outer):
            self._push(project_frame.f_code, project_frame.f_lineno, self.key >> 2, FORWARD)
            project_frame.f_trace = self._on_line
            self.key = 4 * self._stack[-1].node
        self._frames = outer
        self._thread = threading.get_ident()
        self._original_engine: Callable[..., Any] = _autograd._engine_run_backward
        _autograd._engine_run_backward = self._run_backward
        self._started = self._since = time.perf_counter_ns()
        self._phases.begin(self._started)
        if not self._device.marks_are_times:
            self._marks.append((self.key, self._device.mark()))
        sys.settrace(self._on_call)

    def stop(self) -> IterationTrace:
        """End the iteration. On an accelerator this waits for the device."""
        sys.settrace(None)
        self._switch(4 * ROOT)
        stopped = time.perf_counter_ns()
        self._phases.end(stopped)
        _autograd._engine_run_backward = self._original_engine
        for frame in self._frames:
            frame.f_trace = None
        self._frames = []
        times = self._device_times() if self._marks else dict(self._times)
        return IterationTrace(
            total_ns=sum(times.values()),
            wall_ns=stopped - self._started,
            times_ns=times,
            phases_ns=dict(self._phases.times_ns),
            invocations=dict(self._counts),
            segments_ns=self._segments,
            backward_passes=self._backward_passes,
            input_shapes=self._input_shapes,
            micro_batches=self._micro_batches(),
            host_ns=self._host_times() if not self._device.marks_are_times else {},
            loading_ns=dict(self._loading),
            steps=dict(self._steps),
            leaf_gradients=self._leaf_gradients,
        )

    def _micro_batches(self) -> int:
        """Several losses of one forward are one batch, and so are several calls before one backward pass.

        Where several optimizers step (a GAN), calls don't tell which of them were for another batch.
        """
        if len({optimizer for optimizer, _ in self._steps}) > 1:
            return 1
        return max(1, min(self._batch_passes, max(self._module_calls.values(), default=0)))

    def _device_times(self) -> dict[int, int]:
        self._device.synchronize()
        times: dict[int, int] = defaultdict(int)
        self._segments = []
        begun = 0
        for (key, start), (_, end) in zip(self._marks, self._marks[1:], strict=False):
            spent = self._device.elapsed_ns(start, end)
            if key != _NOBODY:
                times[key] += spent
                if self._record_segments and spent:
                    self._segments.append((key, begun, spent))
            begun += spent
        self._marks = []
        return dict(times)

    def _host_times(self) -> dict[int, int]:
        times: dict[int, int] = defaultdict(int)
        for key, spent in self._times.items():
            if key != _NOBODY:
                times[key >> 2] += spent
        return dict(times)

    # -- boundaries --------------------------------------------------------------------------------------------

    def _switch(self, key: int) -> None:
        self._charge()
        self._note_number(key >> 2)
        self._resume(key)

    def _charge(self) -> None:
        spent = time.perf_counter_ns() - self._since
        self._times[self.key] += spent
        if self._record_segments and spent:
            self._segments.append((self.key, self._since - self._started, spent))

    def _resume(self, key: int) -> None:
        """Time from here on is `key`'s; what passed since the last boundary is nobody's if it was not charged."""
        self.key = key
        if not self._device.marks_are_times:
            self._marks.append((key, self._device.mark()))
        self._since = time.perf_counter_ns()

    def _note_number(self, node: int) -> None:
        number = _next_sequence_number()
        if number != self._numbers[-1]:
            self._numbers.append(number)
            self._number_nodes.append(node)
        else:
            # No node was made since the last boundary: those to come are this line's.
            self._number_nodes[-1] = node

    def _origin(self, filename: str) -> _Origin:
        origin = self._origins.get(filename)
        if origin is None:
            if filename in self._watched:
                origin = _Origin.WATCHED
            else:
                origin = _Origin.PROJECT if self._is_project(filename) else _Origin.LIBRARY
            self._origins[filename] = origin
        return origin

    def _push(self, code: CodeType, line: int, parent: int, kind: int) -> None:
        self._stack.append(_Record(parent, self.tree.lines(parent, code), self.tree.child(parent, code, line), kind))

    def _on_call(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        origin = self._origins.get(code.co_filename) or self._origin(code.co_filename)
        if origin is _Origin.LIBRARY:
            return None
        if origin is _Origin.WATCHED:
            return self._enter_library(frame)
        stack = self._stack
        if len(stack) == self._engine_depth:
            parent, kind = self._called_by_engine(code)
        else:
            parent, kind = (stack[-1].node, stack[-1].kind) if stack else (ROOT, FORWARD)
        self._push(code, frame.f_lineno, parent, kind)
        return self._on_line

    def _called_by_engine(self, code: CodeType) -> tuple[int, int]:
        """Parent and kind of a project function that runs inside a backward node.

        Under activation checkpointing it is forward code run again: its time goes to the lines of the first run.
        Else it is a hook or a custom Function's backward: it hangs below the line that made the node.
        """
        node = self._engine_key >> 2
        if self._checkpointing:
            return node, RECOMPUTE
        caller = self.tree.caller_of(node, code)
        return (node, BACKWARD) if caller is None else (caller, RECOMPUTE)

    def _on_line(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line":
            record = self._stack[-1]
            line = frame.f_lineno
            node = record.lines.get(line)
            if node is None:
                node = self.tree.child(record.parent, frame.f_code, line)
            record.node = node
            if record.kind != RECOMPUTE:
                self._counts[node] += 1
            self._switch(4 * node + record.kind)
        elif event == "return" and self._stack:
            stack = self._stack
            stack.pop()
            if len(stack) == self._engine_depth:
                self._switch(self._engine_key)
            elif stack:
                self._switch(4 * stack[-1].node + stack[-1].kind)
            # After the outermost function only its locals remain to be freed: that is its last line's.
        return self._on_line

    # -- backward ----------------------------------------------------------------------------------------------

    def node_of(self, number: int) -> int | None:
        """The tree node at which the autograd node with this sequence number was made; None where not known."""
        if number >= _UNNUMBERED:
            return None
        index = bisect.bisect_right(self._numbers, number) - 1
        return self._number_nodes[index] or None

    def _run_backward(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        caller, outer = self.key, (self._engine_depth, self._engine_key, self._node_name)
        if self._engine_depth is None:
            self._backward_passes += 1
            # Within an optimizer's step it is a closure, called again and again with one batch.
            self._batch_passes += PhaseKind.OPTIMIZER not in self._phases
        self._switch(_NOBODY)
        self._phases.enter(PhaseKind.BACKWARD, time.perf_counter_ns())
        handles = self._hook_graph(outputs, caller >> 2)
        self._engine_key = 4 * (caller >> 2) + BACKWARD
        self._engine_depth = len(self._stack)
        self._leave_out(self._engine_key)
        try:
            return self._original_engine(outputs, *args, **kwargs)
        finally:
            self._switch(_NOBODY)
            self._engine_depth, self._engine_key, self._node_name = outer
            for handle in handles:
                handle.remove()
            self._leave_out(caller)
            self._phases.leave(self._since)

    def _leave_out(self, key: int) -> None:
        """Go on with `key`; the time since the last boundary was the tracer's own."""
        started = self._since
        self._note_number(key >> 2)
        self._resume(key)
        self._phases.skip(self._since - started)

    def _hook_graph(self, outputs: Iterable[Any], default: int) -> list[Any]:
        """Tell every node of the graph below `outputs` which tree node it belongs to. Returns handles to remove."""
        handles: list[Any] = []
        pending: list[tuple[Any, int]] = []
        for output in outputs:
            root = getattr(output, "grad_fn", None) or getattr(output, "node", None)
            if root is not None:
                pending.append((root, default))
        seen = {root for root, _ in pending}
        while pending:
            node, consumer = pending.pop()
            # A node without a number of its own (AccumulateGrad) belongs where its consumer does.
            owner = self.node_of(node._sequence_nr()) or consumer
            handles.append(node.register_prehook(self._prehook(owner, node)))
            if self._watch_leaves:
                self._watch_leaf(node, owner, handles)
            for child, _ in node.next_functions:
                if child is not None and child not in seen:
                    seen.add(child)
                    pending.append((child, owner))
        return handles

    def _prehook(self, owner: int, node: Any) -> Callable[[Any], None]:
        key = 4 * owner + BACKWARD
        name = node.name()

        def begins(_: Any) -> None:
            self._engine_key = key
            self._node_name = name
            if threading.get_ident() == self._thread:
                self._switch(key)
            else:
                # A device's own thread numbers the nodes it makes by a count of its own.
                self._charge()
                self._resume(key)

        return begins

    def _watch_leaf(self, node: Any, owner: int, handles: list[Any]) -> None:
        """Note it if the engine gives a gradient to a leaf that is no parameter."""
        leaf = getattr(node, "variable", None)
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, torch.nn.Parameter):
            return
        use = LeafUse(id(leaf), owner, tuple(leaf.shape), leaf.numel() * leaf.element_size())
        handles.append(node.register_prehook(lambda _: self._leaf_gradients.append(use)))

    # -- phases ------------------------------------------------------------------------------------------------

    def _enter_library(self, frame: FrameType) -> Callable[..., Any] | None:
        kind = self._phase_of.get(id(frame.f_code))
        if kind is None or self._engine_depth is not None:
            return None
        if kind is not PhaseKind.FORWARD:
            return self._enter_phase(frame, kind)
        if self.loading_data:
            return None
        if self._module_depth:
            return self._enter_module(frame)
        loss = type(frame.f_locals.get("self")).__module__ == "torch.nn.modules.loss"
        self._note_input(frame.f_locals, in_training=torch.is_grad_enabled() and not loss)
        self._module_depth = 1
        return self._enter_phase(frame, PhaseKind.LOSS if loss else PhaseKind.FORWARD)

    def _note_input(self, names: Mapping[str, Any], *, in_training: bool) -> None:
        """An outermost module is called: between two steps a program may also validate."""
        if in_training:
            self._module_calls[id(names.get("self"))] += 1
        if self._input_shapes is None or (in_training and not self._fed_in_training):
            self._input_shapes = _shapes((names.get("args"), names.get("kwargs")))
            self._fed_in_training = in_training

    def _enter_phase(self, frame: FrameType, kind: PhaseKind) -> Callable[..., Any]:
        started = time.perf_counter_ns()
        self._phases.enter(kind, started)
        node = self.node
        loader = frame.f_locals.get("self") if kind is PhaseKind.DATA_LOADING else None
        if kind is PhaseKind.OPTIMIZER:
            self._note_step(frame, node)

        def leave() -> None:
            if kind in (PhaseKind.FORWARD, PhaseKind.LOSS):
                self._module_depth = 0
            now = time.perf_counter_ns()
            self._phases.leave(now)
            if loader is not None:
                use = (node, getattr(loader, "_num_workers", 0), bool(getattr(loader, "_pin_memory", False)))
                self._loading[use] += now - started

        return _on_return(frame, leave)

    def _note_step(self, frame: FrameType, node: int) -> None:
        """The call is of `step`, wrapped by the optimizer's own hooks, or of `zero_grad`."""
        arguments = frame.f_locals.get("args")
        if isinstance(arguments, tuple) and arguments and isinstance(arguments[0], torch.optim.Optimizer):
            self._steps[id(arguments[0]), node] += 1

    def _enter_module(self, frame: FrameType) -> Callable[..., Any] | None:
        """A module called within another. What library code calls gets a node: that of the line which constructed
        the module where that is a child of a Sequential, else one that carries the module's name."""
        caller = frame.f_back
        if self._modules is None or caller is None or not self._stack:
            return None
        if self._origin(caller.f_code.co_filename) is _Origin.PROJECT:
            return None
        module = frame.f_locals.get("self")
        if not isinstance(module, torch.nn.Module):
            return None
        above = self._stack[-1]
        made = self._modules.construction(module) if caller.f_code is _SEQUENTIAL else None
        if made is not None:
            code, line = made
            node = self.tree.child(above.node, code, line)
            self._counts[node] += 1
        elif self._origin(_forward_file(module)) is _Origin.PROJECT:
            return None
        else:
            node = self.tree.module(above.node, self._modules.name(module))
        self._stack.append(_Record(above.node, {}, node, above.kind))
        self._switch(4 * node + above.kind)

        def leave() -> None:
            if self._stack:
                self._stack.pop()
            top = self._stack[-1] if self._stack else None
            self._switch(4 * top.node + top.kind if top else 4 * ROOT)

        return _on_return(frame, leave)


_SEQUENTIAL = torch.nn.Sequential.forward.__code__


def _forward_file(module: torch.nn.Module) -> str:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code.co_filename if code is not None else ""


def _on_return(frame: FrameType, leave: Callable[[], None]) -> Callable[..., Any]:
    """A local trace function that calls `leave` when `frame` ends, by an exception too, and cares for nothing else."""
    frame.f_trace_lines = False

    def trace(_: FrameType, event: str, __: Any) -> Callable[..., Any]:
        if event == "return":
            leave()
        return trace

    return trace


def _shapes(values: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(value.shape) for value in tree_iter(values) if isinstance(value, torch.Tensor))


class _PhaseClock:
    """Time by phase; the innermost phase has it.

    Between the outermost forward and a backward pass lies the loss: that time is held until what follows tells.
    """

    def __init__(self) -> None:
        self.times_ns: dict[PhaseKind, int] = defaultdict(int)
        self._stack: list[PhaseKind] = []
        self._since = 0
        self._held_ns = 0
        self._after_forward = False

    @property
    def current(self) -> PhaseKind | None:
        """The innermost phase."""
        return self._stack[-1] if self._stack else None

    def __contains__(self, kind: PhaseKind) -> bool:
        """Whether such a phase is under way, innermost or not."""
        return kind in self._stack

    def begin(self, now: int) -> None:
        self._since = now

    def end(self, now: int) -> None:
        self._charge(now)
        self._release(PhaseKind.OTHER)

    def enter(self, kind: PhaseKind, now: int) -> None:
        self._charge(now)
        if not self._stack:
            self._release(PhaseKind.LOSS if kind is PhaseKind.BACKWARD else PhaseKind.OTHER)
        self._after_forward = False
        self._stack.append(kind)

    def leave(self, now: int) -> None:
        self._charge(now)
        if self._stack:
            kind = self._stack.pop()
            self._after_forward = not self._stack and kind in (PhaseKind.FORWARD, PhaseKind.LOSS)

    def skip(self, duration: int) -> None:
        """Leave out the last `duration` nanoseconds: they were the tracer's own."""
        self._since += duration

    def _charge(self, now: int) -> None:
        spent, self._since = now - self._since, now
        if self._stack:
            self.times_ns[self._stack[-1]] += spent
        elif self._after_forward:
            self._held_ns += spent
        else:
            self.times_ns[PhaseKind.OTHER] += spent

    def _release(self, kind: PhaseKind) -> None:
        self.times_ns[kind] += self._held_ns
        self._held_ns = 0


def _phase_codes() -> dict[CodeType, PhaseKind]:
    """Library functions whose calls begin a phase. Those that this torch does not have are left out."""
    optimizer: Any = torch.optim.Optimizer

    def step() -> None: ...

    functions: list[tuple[Any, PhaseKind]] = [
        (torch.nn.Module.__call__, PhaseKind.FORWARD),
        (optimizer.profile_hook_step(step), PhaseKind.OPTIMIZER),
        (inspect.unwrap(optimizer.zero_grad), PhaseKind.OPTIMIZER),
        (dataloader.DataLoader.__iter__, PhaseKind.DATA_LOADING),
        (dataloader._BaseDataLoaderIter.__next__, PhaseKind.DATA_LOADING),
    ]
    codes = {}
    for function, kind in functions:
        code = getattr(function, "__code__", None)
        if code is not None:
            codes[code] = kind
    return codes
