"""What a device can do at most, measured: the roof of the roofline model.

Some tenths of a second: products of square matrices for the peak FLOP/s of each data type, a large copy for the
bandwidth, an operation on one element for what a launch costs. The best of several tries counts, since a peak is
asked for.
"""

import time
from collections.abc import Callable

import torch

from skyline_lsp.protocol import Peaks
from skyline_lsp.worker.device import Device

TRIES = 5
BUDGET_S = 0.25
"""For each of the measured things; at least one try is made."""

MATRIX_SIDE = {"cpu": 1024}
ACCELERATOR_MATRIX_SIDE = 4096
COPY_BYTES = {"cpu": 64 * 2**20}
ACCELERATOR_COPY_BYTES = 512 * 2**20


def measure_peaks(device: Device) -> Peaks:
    """Measure `device`. Takes about a second, and a few hundred megabytes of its memory at most."""
    side = MATRIX_SIDE.get(device.kind, ACCELERATOR_MATRIX_SIDE)
    flop_per_second: dict[str, float] = {}
    for name in ("float32", "bfloat16", "float16"):
        dtype = getattr(torch, name)
        try:
            a = torch.ones(side, side, dtype=dtype, device=device.kind)
            b = torch.ones(side, side, dtype=dtype, device=device.kind)
        except (RuntimeError, TypeError):
            continue  # a device need not have every type
        out = torch.empty_like(a)
        seconds = _best(device, lambda a=a, b=b, out=out: torch.mm(a, b, out=out))  # type: ignore[misc]
        flop_per_second[name] = 2 * side**3 / seconds
    size = COPY_BYTES.get(device.kind, ACCELERATOR_COPY_BYTES) // 4
    source, target = torch.ones(size, device=device.kind), torch.empty(size, device=device.kind)
    # A copy reads each byte and writes it.
    bytes_per_second = 2 * size * 4 / _best(device, lambda: target.copy_(source))
    one = torch.ones(1, device=device.kind)
    launches = 200

    def launch() -> None:
        for _ in range(launches):
            one.add_(1)

    return Peaks(
        flop_per_second=flop_per_second,
        bytes_per_second=bytes_per_second,
        launch_ms=1000 * _best(device, launch) / launches,
    )


def _best(device: Device, work: Callable[[], object]) -> float:
    """Seconds of the quickest of some tries, the device synchronised around each."""
    with torch.no_grad():
        work()
        device.synchronize()
        times: list[float] = []
        began = time.perf_counter()
        while len(times) < TRIES and (not times or time.perf_counter() - began < BUDGET_S):
            started = time.perf_counter()
            work()
            device.synchronize()
            times.append(time.perf_counter() - started)
    return min(times)
