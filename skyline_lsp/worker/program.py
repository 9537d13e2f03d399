"""One run of the user's program in this process, from the working directory to the result."""

import contextlib
import importlib
import multiprocessing.process
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn

import torch

from skyline_lsp.protocol import EntryKind, Failure, FailureKind, Frame, Goal, RunResult, Status
from skyline_lsp.worker import cleanup, preload
from skyline_lsp.worker.channel import Channel, PipeReporter
from skyline_lsp.worker.child import MODULES, RESULT, Job
from skyline_lsp.worker.device import accelerator_kind
from skyline_lsp.worker.failures import ProfilerFault, Refused, failure_of, internal_failure
from skyline_lsp.worker.fake import NEEDS_DATA, fake_tensors
from skyline_lsp.worker.measurement import Measurement
from skyline_lsp.worker.overrides import Overrides
from skyline_lsp.worker.project import Project
from skyline_lsp.worker.provider import ProviderWorkload
from skyline_lsp.worker.script import ScriptWorkload
from skyline_lsp.worker.sources import Sources


class Program:
    """The program of a job, measured."""

    def __init__(self, job: Job, channel: Channel, reporter: PipeReporter) -> None:
        self._spec = job.spec
        self._channel = channel
        self._reporter = reporter
        self._project = Project(job.root, (job.spec.entry.path,))
        self._measurement = Measurement(self._spec, self._project, reporter)

    def run(self) -> NoReturn:
        """Run it, tell the result, end the process."""
        try:
            self._check_device()
            self._enter_folder()
            sources = self._prepare_sources()
        except Exception as error:
            self._fail(failure_of(error, self._project, self._entry_frame()))
            cleanup.leave_at_once()
        if self._spec.entry.kind is EntryKind.PROVIDER:
            self._run_provider(ProviderWorkload(self._spec.entry.path, self._spec.batch_size, self._project, sources))
        self._run_script(ScriptWorkload(self._spec.entry, sources, self._stop, self._fault))

    # -- before the program ------------------------------------------------------------------------------------

    def _check_device(self) -> None:
        wanted = self._spec.device
        if wanted is None or wanted == "cpu":
            return
        found = accelerator_kind()
        if wanted != found:
            seen = f"a device of type {found!r}" if found else "the CPU only"
            message = f"There is no device of type {wanted!r} here: torch {torch.__version__} sees {seen}."
            raise Refused(Failure(kind=FailureKind.ENVIRONMENT, message=message))

    def _enter_folder(self) -> None:
        folder = self._spec.entry.working_directory or self._project.root
        try:
            os.chdir(folder)
        except OSError as error:
            message = f"The working directory {folder} can't be entered: {error.strerror or error}."
            raise Refused(Failure(kind=FailureKind.ENVIRONMENT, message=message)) from error
        # Both belong to the folder and the time at which the worker was started.
        vars(multiprocessing.process)["ORIGINAL_DIR"] = os.getcwd()
        importlib.invalidate_caches()

    def _prepare_sources(self) -> Sources:
        overrides = Overrides(self._spec.overrides)
        overrides.check()
        sources = Sources(self._project, overrides, self._iteration_line())
        sources.install()
        overrides.replace_when_opened()
        _hide_from_compiler()
        return sources

    def _iteration_line(self) -> tuple[str, int] | None:
        """The file and line of the entry's `iteration`; a relative file lies below the root or the folder."""
        iteration = self._spec.entry.iteration
        if iteration is None:
            return None
        file, _, line = iteration.rpartition(":")
        if not file or not line.isdigit():
            message = f"The setting `iteration` is {iteration!r}; it must be `FILE:LINE`, such as `train.py:42`."
            raise Refused(Failure(kind=FailureKind.NO_ITERATION, message=message, frames=(self._entry_frame(),)))
        places = [os.path.join(folder, file) for folder in (self._project.root, os.getcwd())]
        return next((place for place in places if os.path.isfile(place)), places[0]), int(line)

    def _entry_frame(self) -> Frame:
        return Frame(path=self._spec.entry.path, line=1, function="<module>")

    # -- the program -------------------------------------------------------------------------------------------

    def _run_provider(self, workload: ProviderWorkload) -> NoReturn:
        try:
            with self._tensors():
                workload.run(self._measurement, self._reporter)
        except ProfilerFault as fault:
            self._fault(fault.error)
        except BaseException as error:
            self._fail_by(error)
            cleanup.leave_at_once()
        self._stop()

    def _run_script(self, workload: ScriptWorkload) -> NoReturn:
        code = 0
        try:
            with self._tensors():
                workload.run(self._measurement, self._reporter)
            self._conclude(workload.unmeasured)
        except SystemExit as error:
            # Python's way to say that the program is through; only what was measured so far tells what it means.
            failure = failure_of(error, self._project, self._entry_frame())
            self._conclude(lambda: failure)
        except BaseException as error:
            self._fail_by(error)
            code = 1
        cleanup.leave_as_python_does(code)

    def _stop(self) -> NoReturn:
        """Everything is measured: tell it and leave, from wherever the program is."""
        try:
            self._succeed()
        except Exception as error:
            self._fault(error)
        cleanup.leave_at_once()

    def _fault(self, error: BaseException) -> NoReturn:
        """The measurement itself failed."""
        self._fail(internal_failure(error, self._project))
        cleanup.leave_at_once()

    def _conclude(self, otherwise: Callable[[], Failure]) -> None:
        """The program has ended by itself: tell what was measured, or why nothing was."""
        try:
            self._measurement.finish()
            if self._measurement.enough():
                self._succeed()
                return
        except Exception as error:
            self._fail(internal_failure(error, self._project))
            return
        self._fail(otherwise())

    def _tensors(self) -> AbstractContextManager[None]:
        """What the program's tensors are: an estimate needs none with data."""
        return fake_tensors() if self._spec.goal is Goal.ESTIMATE else contextlib.nullcontext()

    # -- results -----------------------------------------------------------------------------------------------

    def _succeed(self) -> None:
        profile, sample, batch = self._measurement.result()
        estimate = self._measurement.estimate() if self._spec.goal is Goal.ESTIMATE else None
        self._tell(
            RunResult(
                run_id=self._spec.run_id,
                status=Status.DONE,
                profile=profile,
                sample=sample,
                estimate=estimate,
                batch=batch,
            )
        )

    def _fail_by(self, error: BaseException) -> None:
        """The program raised."""
        failure = failure_of(error, self._project, self._entry_frame())
        if isinstance(error, NEEDS_DATA):
            message = f"This line needs the values of a tensor, which an estimate does not have. {failure.message}"
            failure = replace(failure, kind=FailureKind.NEEDS_DATA, message=message)
        with contextlib.suppress(Exception):
            # As Python would, for the log; the program may have closed the stream.
            print(failure.traceback, file=sys.stderr, end="", flush=True)
        self._fail(failure)

    def _fail(self, failure: Failure) -> None:
        self._tell(RunResult(run_id=self._spec.run_id, status=Status.FAILED, failure=failure))

    def _tell(self, result: RunResult) -> None:
        self._channel.notify(MODULES, preload.installed_modules())
        self._channel.notify(RESULT, result)


def _hide_from_compiler() -> None:
    """Keep this package's functions out of what `torch.compile` makes of a program that calls them."""
    with contextlib.suppress(Exception):
        from torch._dynamo import trace_rules

        trace_rules.add(__package__.partition(".")[0])
