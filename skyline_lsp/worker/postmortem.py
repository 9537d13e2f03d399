"""Where a process was when it died or was asked: written by the process through `faulthandler`, read by the host.

`faulthandler` writes from a signal handler, so it answers even while native code holds the interpreter's lock.
"""

import faulthandler
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TextIO

from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.worker.project import Project

# A real-time signal, where there are any: programs and job managers use SIGUSR1 and SIGUSR2.
WHERE_SIGNAL: Final[int | None] = signal.SIGRTMIN + 11 if sys.platform == "linux" else getattr(signal, "SIGUSR2", None)
"""Asks a run where it is; None where there are no such signals (Windows)."""

exit_process: Final = os._exit
"""`os._exit` itself, which `watch` replaces for the program."""

_MAIN = "main thread "
_EXIT = "exit code "
_FATAL = re.compile(r"^(?:Fatal Python error|Windows fatal exception):? ?(?P<what>.*)$", re.MULTILINE)
_THREAD = re.compile(r"^(?P<current>Current thread|Thread) (?P<ident>0x[0-9a-f]+).*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+)(?: in (?P<function>.*))?$')
_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_WINDOWS_CRASH = 0xC0000000
"""Exit codes from here on are exceptions that Windows ended the process for."""


# -- in the process that runs the program ----------------------------------------------------------------------


def watch(trace: TextIO) -> None:
    """From here on, a fatal signal, `os._exit` or the wish to know writes the stacks to `trace`, which stays open."""
    trace.write(f"{_MAIN}{threading.main_thread().ident or 0:#x}\n")
    trace.flush()
    faulthandler.enable(trace)
    if WHERE_SIGNAL is not None:
        faulthandler.register(WHERE_SIGNAL, trace, all_threads=True, chain=False)
    process = os.getpid()

    def exit_noted(status: int) -> NoReturn:
        if os.getpid() == process:
            trace.write(f"{_EXIT}{status}\n")
            trace.flush()
            faulthandler.dump_traceback(trace, all_threads=False)
        exit_process(status)

    replaced: Any = os
    replaced._exit = exit_noted


def answer_where(descriptor: int, trace: TextIO) -> None:
    """Answer each byte that comes through `descriptor` with every thread's stack, where signals can't ask.

    To be run in a thread of its own; ends when the other end is closed.
    """
    while os.read(descriptor, 1):
        faulthandler.dump_traceback(trace, all_threads=True)


# -- in the host -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What is left of a process that ended without a result."""

    code: int
    """Exit code; negative: the signal that ended it."""
    trace: str
    """What it wrote through `watch`."""
    memory_ran_out: bool
    """Whether the system has meanwhile killed processes for want of memory."""


def failure_of(death: Death, project: Project) -> Failure:
    """Say how the process ended, and at which line where it told."""
    if death.code < 0 or death.code >= _WINDOWS_CRASH:
        return _crash(death, project)
    _, found, exit_trace = death.trace.rpartition(f"\n{_EXIT}")
    frames = _frames(exit_trace.splitlines(), project, main=None) if found else ()
    how = "called `os._exit`" if found else "ended its process"
    message = f"The program {how} with code {death.code} before enough iterations were seen."
    return Failure(kind=FailureKind.EXITED, message=message, frames=frames)


def whereabouts(trace: str, since: int, project: Project) -> tuple[Frame, ...]:
    """The project lines that the program was at, from what it has written since the first `since` characters."""
    return _frames(trace[since:].splitlines(), project, main=_main_thread(trace))


def _crash(death: Death, project: Project) -> Failure:
    name = _signal_name(death.code)
    frames: tuple[Frame, ...] = ()
    detail = ""
    fatal = list(_FATAL.finditer(death.trace))
    if fatal:
        lines = death.trace[fatal[-1].end() :].splitlines()
        frames = _frames(lines, project, main=None) or _frames(lines, project, main=_main_thread(death.trace))
        detail = f" ({fatal[-1]['what']})" if fatal[-1]["what"] else ""
    if name == "SIGKILL":
        why = (
            "because the machine ran out of memory. A smaller batch needs less"
            if death.memory_ran_out
            else "most likely because memory ran out"
        )
        message = f"The program was killed by the system, {why}."
    elif fatal:
        message = f"The program crashed in native code: {name}{detail}."
    else:
        message = f"The program was ended by {name}."
    return Failure(kind=FailureKind.CRASHED, message=message, frames=frames)


def _signal_name(code: int) -> str:
    if code >= 0:
        return f"exception {code:#x}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _main_thread(trace: str) -> str | None:
    first = trace.partition("\n")[0]
    return first.removeprefix(_MAIN) if first.startswith(_MAIN) else None


def _frames(lines: Sequence[str], project: Project, main: str | None) -> tuple[Frame, ...]:
    """Project frames, outermost first, of thread `main`; with None, of the thread that wrote."""
    wanted = False
    frames: list[Frame] = []
    for line in lines:
        if header := _THREAD.match(line):
            # The writing thread is told by name only where it holds the interpreter's lock.
            wanted = (
                header["current"] == "Current thread" if main is None else int(header["ident"], 16) == int(main, 16)
            )
            wanted = wanted and not frames
        elif line.startswith("Stack (most recent call first):"):
            wanted = main is None
        elif wanted and (frame := _FRAME.match(line)):
            path = _path(frame["path"])
            if project.is_project(path):
                frames.append(Frame(path=path, line=int(frame["line"]), function=frame["function"] or ""))
    return tuple(reversed(frames))


def _path(written: str) -> str:
    """Undo the escapes of `faulthandler`, which writes ASCII only."""
    if "\\" not in written or os.path.exists(written):
        return written
    return _ESCAPE.sub(lambda escape: chr(int(escape[0][2:], 16)), written)
