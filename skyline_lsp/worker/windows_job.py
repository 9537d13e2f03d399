"""A Windows job object: ends a process with everything that it has started, which Windows does not do by itself."""

import ctypes
import sys
from typing import Any

_KILL_ON_CLOSE = 0x2000
_EXTENDED_LIMITS = 9

_SIZE = ctypes.c_size_t


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("per_process_user_time", ctypes.c_int64),
        ("per_job_user_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("minimum_working_set", _SIZE),
        ("maximum_working_set", _SIZE),
        ("active_processes", ctypes.c_uint32),
        ("affinity", _SIZE),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("io_counters", ctypes.c_uint64 * 6),
        ("process_memory", _SIZE),
        ("job_memory", _SIZE),
        ("peak_process_memory", _SIZE),
        ("peak_job_memory", _SIZE),
    )


class WindowsJob:
    """Holds a process and its descendants; they end with `close`, or with the process that holds the job."""

    def __init__(self, process_handle: int) -> None:
        self._handle: int | None = None
        self._kernel: Any = None
        if sys.platform == "win32":
            kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = ctypes.c_void_p
            handle = kernel.CreateJobObjectW(None, None)
            if not handle:
                return
            limits = _ExtendedLimits()
            limits.basic.flags = _KILL_ON_CLOSE
            job = ctypes.c_void_p(handle)
            kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
            kernel.AssignProcessToJobObject(job, ctypes.c_void_p(process_handle))
            self._kernel = kernel
            self._handle = handle

    def close(self) -> None:
        """End every process of the job."""
        if self._handle is not None:
            self._kernel.CloseHandle(ctypes.c_void_p(self._handle))
            self._handle = None
