"""Tries the iteration's costliest convolutions by themselves, with the channels first and with the channels last.

Which memory layout is the quicker depends on the device, the data type and the shapes, so it is measured on them.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from skyline_lsp.protocol import LayoutTrial
from skyline_lsp.worker.device import Device
from skyline_lsp.worker.work import ProductShape, Work

MOST_TRIALS = 3
"""The convolutions with the most FLOP stand for the others."""
LEAST_ROUNDS = 5
MOST_ROUNDS = 15
BUDGET_S = 1.0
"""For all trials together; each has its `LEAST_ROUNDS` even so, but none is begun later than that."""


@dataclass(frozen=True, slots=True)
class _Convolution:
    """What a convolution is but for its layout."""

    input_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    result: tuple[int, ...]
    dtype: str


def try_layouts(device: Device, work: Iterable[Work]) -> tuple[LayoutTrial, ...]:
    """Trials of up to `MOST_TRIALS` of the images' convolutions that run with the channels first."""
    counts: dict[_Convolution, int] = defaultdict(int)
    flop: dict[_Convolution, int] = defaultdict(int)
    for of_node in work:
        for shape, product in of_node.products.items():
            convolution = _convolution(shape)
            if convolution is not None:
                counts[convolution] += product.count
                flop[convolution] += product.flop
    trials: list[LayoutTrial] = []
    began = time.perf_counter()
    for convolution in sorted(flop, key=lambda one: -flop[one])[:MOST_TRIALS]:
        if trials and time.perf_counter() - began > BUDGET_S:
            break
        trial = _try(device, convolution, counts[convolution], BUDGET_S / MOST_TRIALS)
        if trial is not None:
            trials.append(trial)
    return tuple(trials)


def _convolution(shape: ProductShape) -> _Convolution | None:
    """The convolution that a product is; None for another product and for one whose channels are last already."""
    if shape.operation != "convolution" or shape.channels_last or len(shape.shapes) < 2:
        return None
    source, weight, result = shape.shapes[0], shape.shapes[1], shape.result
    # Of a transposed one, the weight names its channels the other way round; a 1x1 image has no layout.
    if len(source) != 4 or len(result) != 4 or weight[0] != result[1] or source[1] % weight[1]:
        return None
    if min(*source[1:], *result[2:]) < 2:
        return None
    return _Convolution(source, weight, result, shape.dtype)


def _try(device: Device, convolution: _Convolution, count: int, budget_s: float) -> LayoutTrial | None:
    functional: Any = torch.nn.functional
    dtype = getattr(torch, convolution.dtype)
    stride, padding = zip(
        *map(_geometry, convolution.input_shape[2:], convolution.weight_shape[2:], convolution.result[2:]), strict=True
    )
    groups = convolution.input_shape[1] // convolution.weight_shape[1]
    layouts = (torch.contiguous_format, torch.channels_last)
    times_s: list[tuple[float, ...]] = []
    try:
        cases = [_operands(device, convolution, dtype, layout) for layout in layouts]

        def run(case: int) -> float:
            source, weight, gradient = cases[case]
            started = time.perf_counter()
            result = functional.conv2d(source, weight, None, stride, padding, 1, groups)
            torch.autograd.grad(result, (source, weight), gradient)
            device.synchronize()
            return time.perf_counter() - started

        # Whatever the program has switched on in this thread is not what is tried here.
        with torch.enable_grad(), torch.autocast(device.kind, enabled=False):
            for case in range(len(layouts)):
                run(case)
            began = time.perf_counter()
            while len(times_s) < MOST_ROUNDS:
                # In turns who is first: the second finds warmer caches.
                order = (0, 1) if len(times_s) % 2 else (1, 0)
                took = {case: run(case) for case in order}
                times_s.append((took[0], took[1]))
                if len(times_s) >= LEAST_ROUNDS and time.perf_counter() - began > budget_s:
                    break
    except RuntimeError:
        return None  # no room, or no such convolution on this device: there is nothing to tell then
    return LayoutTrial(
        input_shape=convolution.input_shape,
        weight_shape=convolution.weight_shape,
        dtype=convolution.dtype,
        count=count,
        contiguous_ms=1000 * statistics.median(round_s[0] for round_s in times_s),
        channels_last_ms=1000 * statistics.median(round_s[1] for round_s in times_s),
        rounds=len(times_s),
        rounds_won=sum(round_s[1] < round_s[0] for round_s in times_s),
    )


def _operands(device: Device, convolution: _Convolution, dtype: Any, layout: Any) -> tuple[torch.Tensor, ...]:
    """Image, weight and the result's gradient."""
    source, weight, gradient = (
        torch.ones(shape, dtype=dtype, device=device.kind).contiguous(memory_format=layout)
        for shape in (convolution.input_shape, convolution.weight_shape, convolution.result)
    )
    return source.requires_grad_(), weight.requires_grad_(), gradient


def _geometry(source: int, kernel: int, result: int) -> tuple[int, int]:
    """A stride and a padding that give a result of about this size: work is what matters, not which pixels."""
    stride = max(1, round(source / result))
    padding = max(0, -(-((result - 1) * stride + kernel - source) // 2))
    return stride, padding
