"""The device an iteration runs on: its clock, its memory statistics, its name.

`Device` is the seam: the CPU's and the accelerator's implementations below, and a fake with an accelerator's
asynchronous manners in the tests.
"""

import os
import platform
import time
from pathlib import Path
from typing import Any, Protocol

import torch

from skyline_lsp import protocol

Mark = Any
"""A point in time; what it is, only the device that made it knows."""


class Device(Protocol):
    """What the measurement asks of a device."""

    kind: str
    marks_are_times: bool
    """Whether a mark is a time in nanoseconds already, with nothing to wait for."""

    def describe(self) -> protocol.Device:
        """Its name and capacity."""

    def synchronize(self) -> None:
        """Wait until all that was given to the device is done."""

    def mark(self) -> Mark:
        """A mark in the stream of work given to the device so far."""

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        """Device time between two marks, after a `synchronize`."""

    def reset_peak(self) -> None:
        """Start the search for the peak of memory anew."""

    def peak_bytes(self) -> int | None:
        """The allocator's peak since `reset_peak`; None where it keeps none."""


class Cpu:
    """The processor: synchronous, no allocator statistics."""

    kind = "cpu"
    marks_are_times = True

    def describe(self) -> protocol.Device:
        return protocol.Device(kind="cpu", name=_processor_name(), memory_bytes=_host_memory_bytes())

    def synchronize(self) -> None:
        return None

    def mark(self) -> Mark:
        return time.perf_counter_ns()

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        return int(end - start)

    def reset_peak(self) -> None:
        return None

    def peak_bytes(self) -> int | None:
        return None


class Accelerator:
    """Any device behind `torch.accelerator`, or CUDA in a torch that has no `torch.accelerator` yet."""

    marks_are_times = False

    def __init__(self, kind: str, index: int | None = None) -> None:
        self.kind = kind
        self.index = index
        self._module: Any = getattr(torch, kind, None)

    def describe(self) -> protocol.Device:
        name = self.kind
        memory: int | None = None
        if hasattr(self._module, "get_device_properties"):
            properties = self._module.get_device_properties(self.index)
            name = str(getattr(properties, "name", name))
            memory = getattr(properties, "total_memory", None)
        elif hasattr(self._module, "recommended_max_memory"):
            memory = int(self._module.recommended_max_memory())
        return protocol.Device(kind=self.kind, name=name, memory_bytes=memory)

    def synchronize(self) -> None:
        self._module.synchronize()

    def mark(self) -> Mark:
        event = torch.Event(device=self.kind, enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        return int(start.elapsed_time(end) * 1e6)

    def reset_peak(self) -> None:
        if hasattr(self._module, "reset_peak_memory_stats"):
            self._module.reset_peak_memory_stats()

    def peak_bytes(self) -> int | None:
        if hasattr(self._module, "max_memory_allocated"):
            return int(self._module.max_memory_allocated())
        return None


def device_of(kind: str) -> Device:
    """The device of a torch device type, such as "cpu" or "cuda"."""
    return Cpu() if kind == "cpu" else Accelerator(kind)


def accelerator_kind() -> str | None:
    """The type of the accelerator that torch sees; None where there is none."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        return str(accelerator.current_accelerator().type) if accelerator.is_available() else None
    return "cuda" if torch.cuda.is_available() else None


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def _host_memory_bytes() -> int | None:
    """Physical memory, or the control group's limit where that is lower (containers)."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _windows_memory_bytes()
    limits = [physical]
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return min(limits)


def _windows_memory_bytes() -> int | None:
    import ctypes

    windll = getattr(ctypes, "windll", None)
    if windll is None:
        return None

    class MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "page_total", "page", "virtual_total", "virtual", "extended")
        ]

    status = MemoryStatus()
    status.length = ctypes.sizeof(MemoryStatus)
    return int(status.total) if windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None
