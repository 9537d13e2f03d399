"""Running a program with tensors that have shapes but no data, to learn what it would take in memory.

torch's own stand-in for the processor's LSTM leaves out the workspace that the real one keeps for backward. Its size is
the library's own affair, so it is asked for, by running the real one on a few samples.

Private parts of torch used here: `FakeTensorMode`, and `nn.Module._apply`, which can't convert fake parameters.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode

NEEDS_DATA: tuple[type[BaseException], ...] = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.UnsupportedOperatorException,
    fake_tensor.UnsupportedFakeTensorException,
)
"""Raised at a line that asks for what a fake tensor does not have."""


@contextmanager
def fake_tensors() -> Iterator[None]:
    """While entered, tensors are made without data. Tensors that exist already are taken for fake ones where used."""
    module: Any = torch.nn.Module
    original = module._apply
    module._apply = _apply
    try:
        with _Fake(allow_non_fake_inputs=True):
            yield
    finally:
        module._apply = original


class _Fake(FakeTensorMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Fake tensors as torch has them, and the workspace of the processor's LSTM."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result: Any = super().__torch_dispatch__(func, types, args, kwargs or {})
        if func is torch.ops.aten.mkldnn_rnn_layer.default and result[3] is not None and not result[3].numel():
            size = _workspace_bytes(args)
            with self:
                workspace = torch.empty(size, dtype=torch.uint8)
            return (*result[:3], workspace)
        return result


_FEW = 32
"""Samples up to which the LSTM is run as it is; from there on its workspace grows by as much with each sample."""


def _workspace_bytes(arguments: Sequence[Any]) -> int:
    """What the real LSTM keeps for backward, given what the fake one was given; length and features stay as they are.

    The arguments are the input (length, samples, features), four weights, two states (samples, width), and settings.
    """
    inputs, *weights = arguments[:5]
    length, samples, features = map(int, inputs.shape)
    layer = (
        (length, features),
        tuple(tuple(one.shape) for one in weights),
        tuple(state.shape[1] for state in arguments[5:7]),
        inputs.dtype,
        tuple(tuple(one) if isinstance(one, list) else one for one in arguments[7:]),
        # Without gradients nothing is kept.
        torch.is_grad_enabled(),
    )
    few = _kept(min(samples, _FEW), *layer)
    if samples <= _FEW:
        return few
    half = _FEW // 2
    return few + (samples - _FEW) * (few - _kept(half, *layer)) // half


@functools.lru_cache(maxsize=256)
def _kept(
    samples: int,
    sequence: tuple[int, int],
    weights: tuple[tuple[int, ...], ...],
    states: tuple[int, ...],
    dtype: torch.dtype,
    settings: tuple[Any, ...],
    grad_enabled: bool,
) -> int:
    length, features = sequence
    shapes = [(length, samples, features), *weights, *((samples, width) for width in states)]
    with fake_tensor.unset_fake_temporarily(), torch.set_grad_enabled(grad_enabled):
        tensors = [torch.zeros(shape, dtype=dtype) for shape in shapes]
        kept = torch.ops.aten.mkldnn_rnn_layer.default(*tensors, *settings)[3]
        size: int = 0 if kept is None else kept.untyped_storage().nbytes()
        return size


def _apply(module: torch.nn.Module, convert: Callable[[Any], Any], recurse: bool = True) -> torch.nn.Module:
    """`Module._apply` for fake parameters: a parameter that changes is replaced, where torch would swap its insides,
    which the weak references of fake tensors forbid."""
    if recurse:
        for child in module.children():
            child._apply(convert)  # type: ignore[no-untyped-call]
    for name, parameter in module._parameters.items():
        if parameter is None:
            continue
        with torch.no_grad():
            converted = convert(parameter)
        if converted.device != parameter.device or converted.dtype != parameter.dtype:
            module._parameters[name] = torch.nn.Parameter(converted, requires_grad=parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = convert(buffer)
    return module
