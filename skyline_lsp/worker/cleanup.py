"""Leaving a run: nothing half-written, no process left, none of the program's own exit code."""

import atexit
import contextlib
import gc
import io
import multiprocessing
import signal
import sys
import tempfile
import threading
import time
import weakref
from typing import NoReturn

from skyline_lsp.worker.postmortem import exit_process

_JOIN_S = 2.0
"""How long children may take to go after SIGTERM."""


def leave_at_once() -> NoReturn:
    """End the process in the middle of the program, without its `finally` blocks and exit handlers.

    They could write what the program would not have written yet, such as a last checkpoint.
    """
    flush_files()
    end_children()
    remove_temporary_folders()
    exit_process(0)


def leave_as_python_does(code: int) -> NoReturn:
    """End the process after the program's own end, with what Python does then: threads, exit handlers, buffers."""
    with contextlib.suppress(BaseException):
        vars(threading)["_shutdown"]()
    with contextlib.suppress(BaseException):
        vars(atexit)["_run_exitfuncs"]()
    flush_files()
    exit_process(code)


def flush_files() -> None:
    """Write out the buffers of every open file, so that no line of a log is cut in the middle."""
    # The buffers below text files have to come after them.
    for kind in (io.TextIOBase, io.BufferedIOBase):
        for file in (sys.stdout, sys.stderr, *gc.get_objects()):
            with contextlib.suppress(Exception):
                if issubclass(type(file), kind) and not file.closed and file.writable():
                    file.flush()


def end_children() -> None:
    """End the processes that `multiprocessing` started, data loaders' workers among them."""
    if hasattr(signal, "SIGCHLD"):
        # torch's own handler raises when a data loader's worker dies.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    children = multiprocessing.active_children()
    for child in children:
        with contextlib.suppress(Exception):
            child.terminate()
    deadline = time.monotonic() + _JOIN_S
    for child in children:
        with contextlib.suppress(Exception):
            child.join(max(0.0, deadline - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join(_JOIN_S)


def remove_temporary_folders() -> None:
    """Remove what `tempfile.TemporaryDirectory` would remove at the end."""
    clean_up = vars(tempfile.TemporaryDirectory)["_cleanup"].__func__
    for finalizer in list(vars(weakref.finalize)["_registry"]):
        with contextlib.suppress(Exception):
            found = finalizer.peek()
            if found is not None and getattr(found[1], "__func__", found[1]) is clean_up:
                finalizer()
