"""What the host waits for: bytes from descriptors, and the end of a process. Two ways, since Windows can't wait for a
pipe without a thread, and a process with threads had better not be forked.
"""

import contextlib
import enum
import os
import queue
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_READ_BYTES = 256 * 1024


class Source(enum.Enum):
    """What an event is about."""

    REQUESTS = enum.auto()
    """Bytes from the server."""
    MESSAGES = enum.auto()
    """Bytes of the run's messages."""
    OUTPUT = enum.auto()
    """Bytes that the program wrote."""
    ENDED = enum.auto()
    """The watched process has ended."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something has happened."""

    source: Source
    data: bytes = b""
    """Empty: nothing more will come."""
    code: int = 0
    """Of an ended process: its exit code; negative: the signal that ended it."""


class Events(Protocol):
    """The two ways to wait."""

    settle_s: float
    """How long after a process's end the last of its bytes may take to arrive here."""

    def watch(self, source: Source, descriptor: int) -> None:
        """Report what comes from a descriptor, to its end."""

    def forget(self, descriptor: int) -> None:
        """Watch it no longer; needed before it is closed."""

    def watch_process(self, pid: int, process: "subprocess.Popen[bytes] | None") -> None:
        """Report the end of a child process."""

    def wait(self, timeout_s: float | None) -> Sequence[Event]:
        """Wait for the next events, at most so long: those of the process before the server's requests."""

    def close(self) -> None:
        """Give everything back; in a forked process, leave the parent's waiting alone."""


class SelectEvents:
    """By `select`, and by SIGCHLD for the end of processes: grandchildren may hold a pipe open for ever."""

    settle_s = 0.0

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._usual_handler = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._pid: int | None = None

    def watch(self, source: Source, descriptor: int) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, source)

    def forget(self, descriptor: int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(descriptor)

    def watch_process(self, pid: int, process: "subprocess.Popen[bytes] | None") -> None:
        self._pid = pid

    def wait(self, timeout_s: float | None) -> Sequence[Event]:
        events = []
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, _READ_BYTES)
                continue
            data = os.read(key.fd, _READ_BYTES)
            if not data:
                self.forget(key.fd)
            events.append(Event(key.data, data))
        # Whatever woke us: a process may have ended before it was watched.
        events += self._reap()
        # A request may start another process, whose events these are not.
        return sorted(events, key=lambda event: event.source is Source.REQUESTS)

    def _reap(self) -> list[Event]:
        ended: list[Event] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            if pid == self._pid:
                self._pid = None
                ended.append(Event(Source.ENDED, code=os.waitstatus_to_exitcode(status)))

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, self._usual_handler)
        self._selector.close()
        os.close(self._wake)
        os.close(self._waker)


class ThreadEvents:
    """By a thread for each descriptor and process."""

    settle_s = 0.5

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int | None, Event]] = queue.SimpleQueue()
        self._watched: dict[int, int] = {}
        self._count = 0

    def watch(self, source: Source, descriptor: int) -> None:
        self._count += 1
        self._watched[descriptor] = self._count
        threading.Thread(target=self._read, args=(source, descriptor, self._count), daemon=True).start()

    def forget(self, descriptor: int) -> None:
        self._watched.pop(descriptor, None)

    def watch_process(self, pid: int, process: "subprocess.Popen[bytes] | None") -> None:
        if process is None:
            raise ValueError("threads wait for fresh processes only")
        threading.Thread(target=self._await, args=(process,), daemon=True).start()

    def wait(self, timeout_s: float | None) -> Sequence[Event]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                ticket, event = self._queue.get(timeout=remaining)
            except queue.Empty:
                return []
            if ticket is None or ticket in self._watched.values():
                return [event]

    def close(self) -> None:
        self._watched.clear()

    def _read(self, source: Source, descriptor: int, ticket: int) -> None:
        data = b"more"
        while data:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except OSError:
                data = b""
            self._queue.put((ticket, Event(source, data)))

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        self._queue.put((None, Event(Source.ENDED, code=process.wait())))
