"""Running a program with tensors that have shapes but no data, to learn what it would take in memory.

Private parts of torch used here: `FakeTensorMode`, and `nn.Module._apply`, which can't convert fake parameters.
"""

from collections.abc import Callable, Iterator
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
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        module._apply = original


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
