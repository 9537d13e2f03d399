"""The process of one run: prepares itself, then hands over to `program`. Free of torch, which may be missing."""

import io
import multiprocessing.process
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from skyline_lsp.protocol import Failure, FailureKind, RunResult, RunSpec, Stage, Status
from skyline_lsp.worker import postmortem
from skyline_lsp.worker.channel import Channel, PipeReporter

RESULT = "result"
"""Method of the message that carries the `RunResult` to the host."""
MODULES = "modules"
"""Method of the message that names what the program has imported from outside the project."""
FORK_BROKEN = "fork_broken"
"""Method of the message that says that the accelerator can't be used here because the process was forked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the host gives to a child."""

    root: str
    folder: str
    """A folder of the run's own, which the host removes after it."""
    spec: RunSpec

    @property
    def trace_path(self) -> str:
        """File for `postmortem`."""
        return os.path.join(self.folder, "trace")


def run(job: Job, channel: Channel, questions: int | None = None) -> NoReturn:
    """Run the program of a job and end the process.

    `questions` is the descriptor through which the host asks for the whereabouts where it can't do so by signal.
    """
    try:
        _run(job, channel, questions)
    except Exception as error:  # what the program raises is dealt with further down
        failure = Failure(
            kind=FailureKind.INTERNAL,
            message=f"The profiler failed: {type(error).__name__}: {error} Please report it, with the traceback.",
            traceback=traceback.format_exc(),
        )
        _refuse(job, channel, failure)


def _run(job: Job, channel: Channel, questions: int | None) -> NoReturn:
    reporter = PipeReporter(channel, job.spec.run_id)
    reporter.progress(Stage.STARTING, "starting the program")
    _open_standard_streams()
    trace = open(job.trace_path, "a", encoding="utf-8")  # noqa: SIM115 (open as long as the process lives)
    postmortem.watch(trace)
    if questions is not None:
        threading.Thread(target=postmortem.answer_where, args=(questions, trace), daemon=True).start()
    # Processes that are killed can't remove the sockets that they share tensors through.
    config: dict[str, Any] = vars(multiprocessing.process.current_process())["_config"]
    config.setdefault("tempdir", job.folder)
    try:
        import torch

        from skyline_lsp.worker import program
    except Exception as error:  # a broken installation raises whatever it likes
        message = f"torch can't be imported: {type(error).__name__}: {error}"
        _refuse(job, channel, Failure(kind=FailureKind.ENVIRONMENT, message=message))
    if any(is_broken() for is_broken in _fork_checks(torch)):
        channel.notify(FORK_BROKEN, None)
        postmortem.exit_process(1)
    program.Program(job, channel, reporter).run()


def _refuse(job: Job, channel: Channel, failure: Failure) -> NoReturn:
    channel.notify(RESULT, RunResult(run_id=job.spec.run_id, status=Status.FAILED, failure=failure))
    postmortem.exit_process(1)


def _open_standard_streams() -> None:
    """Make Python's streams anew: those it made at its start belong to the descriptors of that time.

    Output is passed on by the line, as to a terminal; the host reads it as UTF-8.
    """
    streams: Any = sys
    streams.stdout = streams.__stdout__ = _writer(1, "<stdout>", "strict")
    streams.stderr = streams.__stderr__ = _writer(2, "<stderr>", "backslashreplace")
    streams.stdin = streams.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))


def _writer(descriptor: int, name: str, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    named: Any = raw
    named.name = name
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=True)


def _fork_checks(torch: object) -> list[Callable[[], bool]]:
    """Functions of torch's backends that say whether the device was already in use when the process was forked."""
    backends = (getattr(torch, name, None) for name in ("cuda", "xpu"))
    return [check for backend in backends if callable(check := getattr(backend, "_is_in_bad_fork", None))]
