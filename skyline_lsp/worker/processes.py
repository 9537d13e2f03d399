"""Starting the process of a run, asking it where it is, and ending it with everything it has started.

On Linux the host forks itself; elsewhere, and where a run needs another environment, it starts a fresh interpreter.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn

from skyline_lsp.protocol import encode, notification, to_json
from skyline_lsp.worker import postmortem
from skyline_lsp.worker.child import Job
from skyline_lsp.worker.windows_job import WindowsJob

MAIN: Final = str(Path(__file__).resolve().parent / "__main__.py")

_LINUX: Final = sys.platform == "linux"
_WINDOWS: Final = sys.platform == "win32"
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_ANSWER_S = 0.25
"""How long to wait for a process to say where it is."""
_POLL_S = 0.005
_CLEANERS = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
"""Processes that remove what others leave in shared memory; they end by themselves when their users are gone."""
_CLEANERS_S = 0.5
_ENDING_S = 5.0
"""How long killed processes may take to disappear."""


class RunFolder:
    """The folder of one run: what its process writes for `postmortem`, and what must not outlive it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="skyline-")

    def trace(self) -> str:
        """What the process wrote for `postmortem` so far."""
        try:
            return Path(self.path, "trace").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


class RunningChild:
    """A process of the host's, seen from the host."""

    def __init__(
        self,
        *,
        pid: int,
        messages: int,
        output: int | None,
        folder: RunFolder | None,
        process: "subprocess.Popen[bytes] | None" = None,
        questions: int | None = None,
    ) -> None:
        self.pid = pid
        self.messages = messages
        """Descriptor from which its messages are read."""
        self.output = output
        """Descriptor from which its standard output and error are read."""
        self.process = process
        """Of a fresh process."""
        self._folder = folder
        self._questions = questions
        self._job = WindowsJob(int(vars(process)["_handle"])) if _WINDOWS and process is not None else None

    def trace(self) -> str:
        """What it has written for `postmortem`."""
        return self._folder.trace() if self._folder is not None else ""

    def ask_where(self) -> int:
        """Have the process write where it is, and wait a moment for that. Returns where in `trace()` that begins."""
        before = len(self.trace())
        with contextlib.suppress(OSError):
            if self._questions is not None:
                os.write(self._questions, b"?")
            elif postmortem.WHERE_SIGNAL is not None:
                os.kill(self.pid, postmortem.WHERE_SIGNAL)
        deadline = time.monotonic() + _ANSWER_S
        size, steady = before, 0
        # An answer has no end mark: it is complete when it grows no more.
        while time.monotonic() < deadline and steady < 3:
            time.sleep(_POLL_S)
            now = len(self.trace())
            steady = steady + 1 if now == size > before else 0
            size = now
        return before

    def kill(self) -> None:
        """End the process at once; what it has started follows with `end_descendants`."""
        with contextlib.suppress(OSError):
            if self.process is not None and _WINDOWS:
                self.process.kill()
            else:
                os.kill(self.pid, signal.SIGKILL)

    def end_descendants(self) -> None:
        """End whatever the process, now gone, has left running."""
        if self._job is not None:
            self._job.close()
        elif _LINUX:
            _end_all_children()
        elif not _WINDOWS:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give back what the host holds for it."""
        if self._folder is not None:
            self._folder.remove()
        for descriptor in (self.messages, self.output, self._questions):
            if descriptor is not None:
                os.close(descriptor)
        if self.process is not None and self.process.returncode is None:
            # It was waited for behind the object's back.
            self.process.returncode = 0


def fork(main: Callable[[int], NoReturn], folder: RunFolder | None, with_output: bool) -> RunningChild:
    """Fork this process. The child calls `main` with the descriptor for its messages.

    With `with_output` its standard output and error go to a pipe, else to nowhere.
    """
    messages, messages_end = os.pipe()
    output, output_end = os.pipe() if with_output else (None, os.open(os.devnull, os.O_WRONLY))
    host = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        # The threads there are were made by libraries that know of forks; ours makes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(messages_end)
        os.close(output_end)
        return RunningChild(pid=pid, messages=messages, output=output, folder=folder)
    try:
        become_run_process(host)
        os.close(messages)
        if output is not None:
            os.close(output)
        os.dup2(output_end, 1)
        os.dup2(output_end, 2)
        os.close(output_end)
        main(messages_end)
    except BaseException:
        traceback.print_exc()
    finally:
        postmortem.exit_process(70)


def start_fresh(job: Job, folder: RunFolder, environment: Mapping[str, str], ask_by_pipe: bool) -> RunningChild:
    """Start a fresh interpreter for a run, with `environment` as its whole environment."""
    questions_end, questions = os.pipe()
    messages, messages_end = os.pipe()
    output, output_end = os.pipe()
    flags: list[str] = vars(subprocess)["_args_from_interpreter_flags"]()
    process = subprocess.Popen(
        [sys.executable, *flags, MAIN, "--run", *(["--ask-by-pipe"] if ask_by_pipe else [])],
        stdin=questions_end,
        stdout=messages_end,
        stderr=output_end,
        env=dict(environment),
        start_new_session=not _WINDOWS,
        # Else a window would open there for each run.
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    for descriptor in (questions_end, messages_end, output_end):
        os.close(descriptor)
    with contextlib.suppress(OSError):
        os.write(questions, encode(notification("job", to_json(job))))
    if not ask_by_pipe:
        os.close(questions)
    return RunningChild(
        pid=process.pid,
        messages=messages,
        output=output,
        folder=folder,
        process=process,
        questions=questions if ask_by_pipe else None,
    )


def become_run_process(host: int | None) -> None:
    """Separate this process from the host's terminal and session, and let it end with the host."""
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if _LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if host is not None and os.getppid() != host:
            postmortem.exit_process(1)


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind, so that it can be found and ended."""
    if _LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_all_children() -> None:
    """End every descendant of this process, however it got away from its parent."""
    started = time.monotonic()
    while time.monotonic() - started < _ENDING_S:
        _reap()
        alive = list(_descendants())
        if not alive:
            return
        patient = time.monotonic() - started < _CLEANERS_S
        for pid in alive:
            if not (patient and _is_cleaner(pid)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants() -> Iterator[int]:
    """Pids of the living processes below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The second field, the command's name, may hold spaces and parentheses.
                fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] != b"Z" or int(fields[1]) == os.getpid():
                    children.setdefault(int(fields[1]), []).append(int(name))
    pending = list(children.get(os.getpid(), ()))
    while pending:
        pid = pending.pop()
        pending += children.get(pid, ())
        yield pid


def _is_cleaner(pid: int) -> bool:
    try:
        command = Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return False
    return any(mark in command for mark in _CLEANERS)
