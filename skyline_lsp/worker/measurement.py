"""Measures a program that iterates: warm-up, plain timing, traced iterations, one iteration that records memory.

The program tells where its iterations end (`Measurement.boundary`); between two boundaries at most one kind of
instrumentation is on. The plain iteration time is the truth, and the traced lines are scaled to it.
"""

import gc
import hashlib
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar

import torch

from skyline_lsp import protocol
from skyline_lsp.protocol import EntryKind, Goal, RunSpec, Stage
from skyline_lsp.worker import assembly, compilation, self_test
from skyline_lsp.worker.calibration import measure_peaks
from skyline_lsp.worker.call_tree import CallTree
from skyline_lsp.worker.device import Device, accelerator_kind, device_of
from skyline_lsp.worker.layout import try_layouts
from skyline_lsp.worker.line_tracer import IterationTrace, LeafUse, LineTracer
from skyline_lsp.worker.live_storages import LiveStorages, Recording
from skyline_lsp.worker.module_lines import Construction, ModuleLines
from skyline_lsp.worker.optimizers import OptimizerState, describe
from skyline_lsp.worker.work import Work, WorkCounter

MEDIAN_PRECISION = 0.02
"""Timing ends early when the median is known this well: half its notch, relative (McGill et al. 1978)."""

TRACED_ITERATIONS = 3
LONG_ITERATION_MS = 2000.0
"""An iteration this long is traced once, without one to warm the tracer up."""

T = TypeVar("T", bound=Hashable)

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ProjectFiles(Protocol):
    """Which files are the user's."""

    def is_project(self, filename: str) -> bool:
        """Whether a code object's file is project code."""

    def relative(self, filename: str) -> str:
        """The file relative to the project's root, with forward slashes."""


class Reporter(Protocol):
    """Where news of the run goes."""

    def progress(self, stage: Stage, message: str, fraction: float | None = None) -> None:
        """Tell how far the run is."""

    def partial(self, profile: protocol.Profile) -> None:
        """Hand over what is known so far."""


class Measurement:
    """The observer of one run. The program calls `begin` once, `boundary` after each iteration until told to stop."""

    def __init__(self, spec: RunSpec, project: ProjectFiles, reporter: Reporter) -> None:
        """Make it before the user's code is loaded: it notes which line constructs which module."""
        self.batch_size: int | None = spec.batch_size
        """Samples in one batch; the workload sets it where it knows."""
        self.micro_batches: int | None = 1
        """Batches of one iteration; None: as the model's calls tell."""
        self.iterations_seen = 0
        self._spec = spec
        self._project = project
        self._reporter = reporter
        self._models: list[torch.nn.Module] = []
        self._warnings: list[str] = []
        self._device: Device | None = None
        self._timing = assembly.Timing([], None)
        self._tree = CallTree()
        self._module_lines = ModuleLines(self._is_traced)
        self._module_lines.install()
        self._module_names: dict[int, str] = {}
        self._traces: list[IterationTrace] = []
        self._fed: list[tuple[tuple[tuple[int, ...], ...], int]] = []
        """For each iteration that was watched: shapes of the model's input, micro-batches."""
        self.recording: Recording | None = None
        """What the iteration that records memory saw."""
        self._work: dict[int, Work] = {}
        self._optimizers: dict[int, OptimizerState] = {}
        self._leaf_gradients: list[LeafUse] = []
        self._layout_trials: tuple[protocol.LayoutTrial, ...] = ()
        self._peaks = spec.peaks
        self._gradient_bytes: dict[str, int] = {}
        self._files: dict[str, str] = {}
        self._frame: FrameType | None = None
        self._steps: Iterator[None] | None = None
        self._complete = False
        self._has_all = False
        """Whether what is still to come only makes numbers more precise."""

    def add_model(self, model: object) -> None:
        """Tell of a model that the program trains; others are found by themselves."""
        if isinstance(model, torch.nn.Module):
            self._models.append(model)

    # -- what the program calls --------------------------------------------------------------------------------

    def begin(self) -> None:
        """The first iteration is about to start. Call it in the thread that trains."""
        self._frame = sys._getframe(1)
        self._steps = self._measure_in_precision()
        next(self._steps)

    def boundary(self) -> bool:
        """An iteration has just ended. True: everything is measured, stop now."""
        if self._steps is None:
            self.begin()
            return False
        self.iterations_seen += 1
        self._frame = sys._getframe(1)
        try:
            next(self._steps)
        except StopIteration:
            self._complete = True
        finally:
            self._frame = None
        return self._complete

    def finish(self) -> None:
        """The program ended by itself: leave off, use what there is."""
        if self._steps is not None and not self._complete:
            self._steps.close()  # type: ignore[attr-defined]
            if not self._has_all:
                self._warnings.append(
                    "The program ended before everything was measured; the numbers are fewer or absent."
                )

    def enough(self) -> bool:
        """Whether there is something to report."""
        if self._spec.goal is Goal.PROVE:
            return bool(self._fed)
        if self._spec.goal is Goal.ESTIMATE:
            return self.recording is not None
        if self._spec.goal is Goal.SAMPLE:
            return bool(self._timing.times_ms) and (self._complete or self.recording is not None)
        return bool(self._timing.times_ms)

    def estimate(self) -> protocol.MemoryEstimate | None:
        """With goal ESTIMATE, what was found; None where the iteration that records was not reached."""
        if self.recording is None or self.batch_size is None:
            return None
        return protocol.MemoryEstimate(
            batch_size=self.batch_size,
            peak_bytes=self.recording.peak()[0],
            live_bytes=tuple(self.recording.operations),
            files=self._files,
        )

    def result(self) -> tuple[protocol.Profile | None, protocol.Sample | None, protocol.BatchReport | None]:
        """Everything that was measured."""
        batch = self._batch_report()
        if not self._timing.times_ms:
            return None, None, batch
        profile = self._profile() if self._spec.goal is Goal.PROFILE else None
        return profile, self._sample(), batch

    # -- the course of a measurement; each yield waits for the end of an iteration ---------------------------------

    def _measure_in_precision(self) -> Iterator[None]:
        """Under autocast where that is asked for: the thread's own state, which the program's iterations find."""
        if self._spec.autocast is None:
            yield from self._measure()
            return
        kind = self._spec.device or accelerator_kind() or "cpu"
        # Without the cache: it is emptied only when the outermost autocast ends, and weights change before.
        with torch.autocast(kind, dtype=getattr(torch, self._spec.autocast), cache_enabled=False):
            yield from self._measure()

    def _measure(self) -> Iterator[None]:
        goal = self._spec.goal
        self._files = self._hash_files()
        yield from self._warm_up()
        if goal is Goal.PROVE:
            yield from self._trace(iterations=1)
            return
        if goal is Goal.ESTIMATE:
            yield from self._record_memory()
            return
        # As few as will do for now: a program may not have many, and the user waits for the lines.
        yield from self._time(self._spec.measure.min_iterations)
        if goal is Goal.PROFILE:
            self._reporter.partial(self._profile())
            if problem := self_test.problem():
                self._warnings.append(problem)
            else:
                yield from self._trace(TRACED_ITERATIONS)
                self._reporter.partial(self._profile())
        if goal is Goal.PROFILE or self._spec.measure.record_live_bytes or self._timing.allocator_peak_bytes is None:
            yield from self._record_memory()
        if goal is Goal.PROFILE and self._peaks is None:
            self._reporter.progress(Stage.CALIBRATING, "measuring what the device can do at most")
            self._peaks = measure_peaks(self._the_device())
        # On a CPU the layers between the convolutions decide which layout is the better one.
        if goal is Goal.PROFILE and self._the_device().kind != "cpu":
            self._layout_trials = try_layouts(self._the_device(), self._work.values())
        self._has_all = True
        if not self._timed_enough():
            # What was done meanwhile has left caches and memory in another state.
            yield
            yield from self._time(self._spec.measure.max_iterations)

    def _warm_up(self) -> Iterator[None]:
        """Run until iterations stop getting quicker: caches, allocators and compilers settle in the first few."""
        if self._spec.goal is Goal.PROVE:
            # Nothing is timed, and a program may run for two iterations only.
            self._find_device()
            return
        wanted = max(1, self._spec.measure.warm_up)
        last: float | None = None
        done = 0
        while True:
            self._reporter.progress(Stage.WARMING_UP, f"warming up, iteration {done + 1}")
            started = time.perf_counter()
            yield
            device = self._device or self._find_device()
            device.synchronize()
            took = time.perf_counter() - started
            done += 1
            settled = last is None or took > 0.7 * last
            last = took
            if done >= wanted and (settled or done >= wanted + 5):
                return

    def _time(self, up_to: int) -> Iterator[None]:
        device, measure, timing = self._the_device(), self._spec.measure, self._timing
        device.reset_peak()
        while len(timing.times_ms) < up_to:
            device.synchronize()
            started = time.perf_counter_ns()
            yield
            device.synchronize()
            timing.times_ms.append((time.perf_counter_ns() - started) / 1e6)
            timing.allocator_peak_bytes = device.peak_bytes()
            count = len(timing.times_ms)
            self._reporter.progress(
                Stage.TIMING,
                f"timed {count} iteration{'s' if count > 1 else ''}, {timing.median_ms:.4g} ms",
                min(1.0, count / measure.max_iterations),
            )
            if count >= measure.min_iterations and self._timed_enough():
                return

    def _timed_enough(self) -> bool:
        measure, timing = self._spec.measure, self._timing
        count = len(timing.times_ms)
        half_notch = 1.57 * timing.spread_ms / count**0.5
        return (
            half_notch <= MEDIAN_PRECISION * timing.median_ms
            or count >= measure.max_iterations
            or sum(timing.times_ms) >= 1000 * measure.time_budget_s
        )

    def _trace(self, iterations: int) -> Iterator[None]:
        device = self._the_device()
        tracer = LineTracer(self._is_traced, device, self._tree, self, self._spec.measure.record_segments)
        long = bool(self._timing.times_ms) and self._timing.median_ms >= LONG_ITERATION_MS
        # The tracer's first iteration fills its tables, which costs time that later ones don't have.
        warm_ups = 0 if long or self._spec.goal is Goal.PROVE else 1
        count = 1 if long else iterations
        for index in range(warm_ups + count):
            self._reporter.progress(
                Stage.TRACING, f"tracing lines, iteration {index + 1} of {warm_ups + count}", index / (warm_ups + count)
            )
            device.synchronize()
            tracer.start(self._frame)
            try:
                yield
            finally:
                trace = tracer.stop()
            device.synchronize()
            self._note_fed(trace)
            if index >= warm_ups:
                self._traces.append(trace)

    def _record_memory(self) -> Iterator[None]:
        device = self._the_device()
        self._reporter.progress(Stage.MEMORY, "recording memory")
        tracer = LineTracer(self._is_traced, device, self._tree, self, watch_leaves=True)
        optimizers = _living(torch.optim.Optimizer)
        storages = LiveStorages(
            where=tracer,
            parameters=self._parameters().values(),
            buffers=[buffer for model in self._models for buffer in model.buffers()],
            optimizers=optimizers,
            device=device.kind,
            fake=self._spec.goal is Goal.ESTIMATE,
        )
        counter = WorkCounter(tracer, device.kind)
        modes = ExitStack()
        storages.start()
        modes.enter_context(counter)
        tracer.start(self._frame)
        try:
            yield
        finally:
            trace = tracer.stop()
            modes.close()
            recording = storages.stop()
        self._note_fed(trace)
        self._work = dict(counter.by_node)
        self._optimizers = {id(optimizer): describe(optimizer) for optimizer in optimizers}
        # An optimizer may own tensors that are no parameters of a module, such as images under optimization.
        owned = {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
        self._leaf_gradients = [use for use in trace.leaf_gradients if use.identity not in owned]
        self.recording = recording
        if compilation.in_use():
            self._warnings.append(
                "Compiled code can't be watched operation by operation: memory, FLOP and bytes are those of the same "
                "program uncompiled."
            )
        if not recording.hooked:
            self._warnings.append(
                "Parts under torch.func allow no watching of saved tensors: their activations are not counted."
            )
        for name, parameter in self._parameters().items():
            if parameter.grad is not None:
                self._gradient_bytes[name] = parameter.grad.numel() * parameter.grad.element_size()

    def _note_fed(self, trace: IterationTrace) -> None:
        self._fed.append((trace.input_shapes or (), trace.micro_batches))

    # -- what the tracer asks -----------------------------------------------------------------------------------

    def construction(self, module: torch.nn.Module) -> Construction | None:
        """The project's line that made `module`."""
        return self._module_lines.of(module)

    def name(self, module: torch.nn.Module) -> str:
        """Its qualified name in the model, and its type."""
        qualified = self._module_names.get(id(module))
        return f"{qualified} ({type(module).__name__})" if qualified else type(module).__name__

    # -- what the program consists of ------------------------------------------------------------------------------

    def _is_traced(self, filename: str) -> bool:
        return not filename.startswith(_OWN_FOLDER) and self._project.is_project(filename)

    def _find_models(self) -> None:
        """Add the modules alive that are no part of another module."""
        modules: list[torch.nn.Module] = _living(torch.nn.Module)
        parts = {id(child) for module in modules for child in module.children()}
        known = {id(model) for model in self._models}
        for module in modules:
            if id(module) not in parts and id(module) not in known and any(True for _ in module.parameters()):
                self._models.append(module)
        for model in self._models:
            for name, module in model.named_modules():
                self._module_names.setdefault(id(module), name)

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        """Each parameter once. With several models the names start with the model's class."""
        parameters: dict[str, torch.nn.Parameter] = {}
        seen: set[int] = set()
        for position, model in enumerate(self._models):
            prefix = f"{type(model).__name__}{position or ''}." if len(self._models) > 1 else ""
            for name, parameter in model.named_parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    parameters[prefix + name] = parameter
        return parameters

    def _find_device(self) -> Device:
        self._find_models()
        self._device = device_of(self._device_kind())
        return self._device

    def _device_kind(self) -> str:
        """Where most parameters live; the current accelerator where there are none."""
        sizes: dict[str, int] = defaultdict(int)
        for parameter in self._parameters().values():
            sizes[parameter.device.type] += parameter.numel()
        if sizes:
            return max(sizes, key=lambda kind: sizes[kind])
        return self._spec.device or accelerator_kind() or "cpu"

    def _the_device(self) -> Device:
        if self._device is None:
            raise RuntimeError("the device is known after the first iteration only")
        return self._device

    def _hash_files(self) -> dict[str, str]:
        """SHA-256 of the entry file and of each project module that is loaded."""
        names = {self._spec.entry.path}
        for module in list(sys.modules.values()):
            name = getattr(module, "__file__", None)
            if isinstance(name, str) and self._is_traced(name):
                names.add(name)
        hashes = {}
        for name in sorted(names):
            try:
                hashes[self._project.relative(name)] = hashlib.sha256(Path(name).read_bytes()).hexdigest()
            except OSError:
                continue
        return hashes

    # -- results ---------------------------------------------------------------------------------------------------

    def _sample(self) -> protocol.Sample | None:
        return assembly.sample(self._measured()) if self.batch_size is not None else None

    def _batch_report(self) -> protocol.BatchReport | None:
        if not self._fed:
            return None
        # The last batch of an epoch may be smaller.
        shapes = _most_common([shapes for shapes, _ in self._fed])
        # A provider is told its batch size, so that what it was told is no observation.
        seen = None if self._spec.entry.kind is EntryKind.PROVIDER else self.batch_size
        return protocol.BatchReport(shapes=shapes, micro_batches=self._batches_of_an_iteration(), batch_size=seen)

    def _batches_of_an_iteration(self) -> int:
        if self.micro_batches is not None:
            return self.micro_batches
        return _most_common([count for _, count in self._fed]) if self._fed else 1

    def _profile(self) -> protocol.Profile:
        return assembly.profile(self._measured(), self._project.relative)

    def _measured(self) -> assembly.Measured:
        return assembly.Measured(
            spec=self._spec,
            device=self._the_device().describe(),
            batch_size=self.batch_size,
            micro_batches=self._batches_of_an_iteration(),
            timing=self._timing,
            traces=self._traces,
            recording=self.recording,
            work=self._work,
            peaks=self._peaks,
            tree=self._tree,
            parameters=[
                protocol.ParameterCost(
                    name=name,
                    weight_bytes=parameter.numel() * parameter.element_size(),
                    gradient_bytes=self._gradient_bytes.get(name, 0),
                )
                for name, parameter in self._parameters().items()
            ],
            files=self._files,
            remarks=compilation.remarks(self._is_traced, self._project.relative),
            warnings=tuple(dict.fromkeys(self._warnings)),
            optimizers=self._optimizers,
            leaf_gradients=self._leaf_gradients,
            layout_trials=self._layout_trials,
            processors=_processors(),
        )


def _most_common(values: Sequence[T]) -> T:
    """The value seen most often; of equals the first."""
    return Counter(values).most_common(1)[0][0]


def _processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _living(cls: type[Any]) -> list[Any]:
    """Every instance of `cls` that is alive. `type`, not `isinstance`: proxies run code of their own when asked."""
    return [candidate for candidate in gc.get_objects() if issubclass(type(candidate), cls)]
