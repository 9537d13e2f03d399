"""The workload of a training script or module: run as Python itself would, stopped when everything is measured.

An iteration ends where a mark in the source says so, else where the optimizers have stepped.
"""

import builtins
import gc
import importlib.machinery
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from skyline_lsp.protocol import Entry, EntryKind, Failure, FailureKind, Frame, Stage
from skyline_lsp.worker import markers
from skyline_lsp.worker.channel import PipeReporter
from skyline_lsp.worker.failures import Refused
from skyline_lsp.worker.fed_batch import FedBatch
from skyline_lsp.worker.measurement import Measurement
from skyline_lsp.worker.sources import Sources
from skyline_lsp.worker.step_cycle import StepCycle


class ScriptWorkload:
    """A program that iterates by itself.

    `stop` is called, and does not return, when the measurement has all it wants; `fault` likewise when the
    measurement itself fails: an exception could be caught by the program.
    """

    def __init__(
        self,
        entry: Entry,
        sources: Sources,
        stop: Callable[[], NoReturn],
        fault: Callable[[BaseException], NoReturn],
    ) -> None:
        self._entry = entry
        self._sources = sources
        self._stop = stop
        self._fault = fault
        self._process = os.getpid()
        self._thread: int | None = None
        self._cycle = StepCycle(_optimizers, time.monotonic)
        self._batch = FedBatch(self._batch_found)
        self._steps = 0
        self._begun = False

    def run(self, measurement: Measurement, reporter: PipeReporter) -> None:
        """Run the program to its own end, unless `stop` comes first. Raises what the program raises."""
        self._measurement = measurement
        measurement.micro_batches = None
        setattr(builtins, markers.HOOK, _uncompiled(self._marked))
        register_optimizer_step_post_hook(_uncompiled(self._optimizer_stepped))
        self._watch_scalers()
        self._batch.watch_loaders()
        what = (
            f"-m {self._entry.module}" if self._entry.kind is EntryKind.MODULE else os.path.basename(self._entry.path)
        )
        code, main = self._prepare()
        reporter.progress(Stage.LOADING, f"running {what} up to its first optimizer step")
        exec(code, main.__dict__)

    def unmeasured(self) -> Failure:
        """Why a program that has ended by itself gave nothing to report."""
        frames = (Frame(path=self._entry.path, line=1, function="<module>"),)
        count = self._measurement.iterations_seen
        if self._begun:
            message = (
                f"The program ended after {count + 1} iteration{'s' if count else ''}, which is too few to measure "
                "it. Let it train for longer: more epochs, more data."
            )
            return Failure(kind=FailureKind.EXITED, message=message, frames=frames)
        if self._steps:
            message = (
                f"The program ended after {self._steps} optimizer step{'s' if self._steps > 1 else ''}, before it "
                "was clear which of them make up an iteration. Let it train for longer, or mark the end of an "
                "iteration with the comment `# skyline: iteration`."
            )
            return Failure(kind=FailureKind.EXITED, message=message, frames=frames)
        if self._sources.marks:
            message = "The program ran to its end without reaching the line that is marked as the end of an iteration."
        else:
            message = (
                "The program ran to its end without an optimizer step, so its iterations can't be told apart. Set "
                "`iteration` in the run configuration to `FILE:LINE`, a line that runs once in each iteration, or "
                "put the comment `# skyline: iteration` there. Training in processes that the program starts itself "
                "is not seen."
            )
        return Failure(kind=FailureKind.NO_ITERATION, message=message, frames=frames)

    # -- starting as python does -------------------------------------------------------------------------------

    def _prepare(self) -> tuple[CodeType, ModuleType]:
        """The code to run and the new `__main__`."""
        main = ModuleType("__main__")
        vars(main).update({"__builtins__": builtins, "__annotations__": {}})
        if self._entry.kind is EntryKind.MODULE:
            self._put_first(os.getcwd())
            sys.argv = ["-m", *self._entry.arguments]
            spec = _runnable(self._entry.module or "")
            if spec is None:
                frame = Frame(path=self._entry.path, line=1, function="<module>")
                message = f"There is no module `{self._entry.module}` to run from {os.getcwd()}."
                raise Refused(Failure(kind=FailureKind.EXCEPTION, message=message, frames=(frame,)))
            loader: Any = spec.loader
            code: CodeType | None = loader.get_code(spec.name)
            if code is None:
                raise ImportError(f"No code object available for {spec.name}")
            path = spec.origin or self._entry.path
            main.__package__ = spec.parent
        else:
            path = self._entry.path
            self._put_first(os.path.dirname(os.path.realpath(path)))
            spec = None
            loader = importlib.machinery.SourceFileLoader("__main__", path)
            code = self._sources.compile_file(path)
        vars(main).update({"__spec__": spec, "__loader__": loader, "__file__": path, "__cached__": None})
        sys.argv = [path, *self._entry.arguments]
        sys.modules["__main__"] = main
        return code, main

    def _put_first(self, folder: str) -> None:
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, folder)

    # -- the ends of iterations --------------------------------------------------------------------------------

    def _marked(self) -> None:
        """Called by the marks in the source."""
        self._boundary()

    def _optimizer_stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if _is_nested(sys._getframe(1), type(optimizer)):
            return
        self._steps += 1
        self._stepped(optimizer)

    def _stepped(self, optimizer: object) -> None:
        if self._is_ours() and not self._sources.marks and self._cycle.stepped(id(optimizer)):
            self._boundary()

    def _watch_scalers(self) -> None:
        """Let a step that a gradient scaler leaves out, after an overflow, end its iteration like any other."""
        scaler_class: Any = getattr(torch.amp, "GradScaler", None)
        if scaler_class is None:
            return
        usual: Callable[..., Any] = scaler_class.step

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            steps = self._steps
            result = usual(scaler, optimizer, *args, **kwargs)
            if self._steps == steps:
                self._stepped(optimizer)
            return result

        scaler_class.step = step

    def _is_ours(self) -> bool:
        """Whether this is the thread that trains, and not a process forked from it."""
        if self._thread is None:
            self._thread = threading.get_ident()
        return self._thread == threading.get_ident() and os.getpid() == self._process

    def _boundary(self) -> None:
        if not self._is_ours():
            return
        try:
            if not self._begun:
                self._begun = True
                self._measurement.begin()
                self._batch.conclude()
                return
            self._batch.iteration_ended()
            self._measurement.micro_batches = self._batch.loaded
            complete = self._measurement.boundary()
        except BaseException as error:
            self._fault(error)
        if complete:
            self._stop()

    def _batch_found(self, size: int) -> None:
        if self._measurement.batch_size is None:
            self._measurement.batch_size = size


def _uncompiled(function: Callable[..., None]) -> Callable[..., None]:
    """The function, kept out of what `torch.compile` makes of the program that calls it."""
    disable: Callable[..., Callable[..., None]] = torch.compiler.disable
    return disable(function)


def _runnable(name: str) -> importlib.machinery.ModuleSpec | None:
    """The spec of what `python -m name` runs; None where there is nothing."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        # The package is there, and fails to import something.
        raise
    if spec is not None and spec.submodule_search_locations is not None and not name.endswith(".__main__"):
        return _runnable(name + ".__main__")
    return spec if spec is not None and spec.loader is not None else None


def _is_nested(frame: FrameType | None, optimizer_class: type[Any]) -> bool:
    """Whether a step happens within another optimizer's step: one that wraps this one, or a subclass's own."""
    step_code = getattr(optimizer_class.step, "__code__", None)
    depth = 0
    while frame is not None:
        depth += frame.f_code is step_code
        frame = frame.f_back
    return depth > 1


def _optimizers() -> int:
    """How many optimizers exist that may step by themselves."""
    alive: list[Any] = [
        candidate for candidate in gc.get_objects() if issubclass(type(candidate), torch.optim.Optimizer)
    ]
    inner = {id(value) for one in alive for value in vars(one).values()}
    # A wrapper that only borrows the type (Accelerate's) never went through the constructor, which adds the hooks.
    return sum(id(one) not in inner and "_optimizer_step_post_hooks" in vars(one) for one in alive)
