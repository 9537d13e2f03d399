"""Floating-point operations and bytes moved, by line: what the roofline model needs.

Counted from the shapes of the operations that really ran, outside the timed iterations. As is the custom, only
matrix products, convolutions, attention and recurrent layers count as FLOP (a multiply-add is two); bytes are what an
operation must read and write at least, each operand once, so fused kernels move fewer and cache misses more.

Noted by the way, for advice: the shapes of the products, values that Python reads, copies from memory that is not
pinned.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from skyline_lsp.worker.live_storages import Where


@dataclass(frozen=True, slots=True)
class ProductShape:
    """What tells one product of a line from another."""

    operation: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    dtype: str
    channels_last: bool


@dataclass(slots=True)
class ProductCount:
    """How often a product ran, and the FLOP of all its runs."""

    count: int = 0
    flop: int = 0


@dataclass(slots=True)
class Work:
    """What the operations of one tree node did in one iteration, forward and backward."""

    flop: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Data type -> FLOP."""
    bytes_moved: int = 0
    operations: int = 0
    """Operations given to the device, views and allocations left out."""
    products: dict[ProductShape, ProductCount] = field(default_factory=lambda: defaultdict(ProductCount))
    host_reads: int = 0
    """Operations that hand values to Python."""
    pageable_bytes: int = 0
    """Copied to an accelerator out of memory that is not pinned."""
    frozen_norms: int = 0
    """Batch normalisations by statistics that are not the batch's."""


class WorkCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Counts while it is entered."""

    def __init__(self, where: Where, device: str = "cpu") -> None:
        """`device` is the type of the one whose tensors' values are watched."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.by_node: dict[int, Work] = defaultdict(Work)
        self._where = where
        self._device = device

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        if not _moves_nothing(operation):
            work = self.by_node[self._where.node]
            inputs, outputs = _tensors((args, kwargs)), _tensors(result)
            work.operations += 1
            work.bytes_moved += _bytes_moved(operation, inputs, outputs)
            formula = _formulas().get(operation.overloadpacket)
            if formula is not None and inputs:
                flop = formula(*args, **(kwargs or {}), out_val=result)
                work.flop[_name(inputs[0].dtype)] += flop
                product = work.products[_product(operation, inputs, outputs)]
                product.count += 1
                product.flop += flop
            elif _is_read(operation, args, kwargs or {}, inputs, outputs, self._device) and not _for_torch_itself():
                work.host_reads += 1
            elif _is_frozen_norm(operation, args):
                work.frozen_norms += 1
            if self._device != "cpu":
                work.pageable_bytes += _pageable_bytes(operation, args, outputs)
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_iter(values) if isinstance(value, torch.Tensor)]


def _extent(tensor: torch.Tensor) -> int:
    """Bytes of memory behind a tensor; an expanded dimension has its bytes once."""
    if tensor.layout is not torch.strided:
        return sum(part.numel() * part.element_size() for part in _sparse_parts(tensor))
    elements = prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or not size)
    return elements * tensor.element_size()


def _bytes_moved(operation: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    """What an operation reads and writes at least."""
    written = sum(map(_extent, outputs))
    if operation.overloadpacket.__name__ in _GATHERS and inputs:
        # Of its first argument it reads what it gives, not the whole of it.
        return 2 * written + sum(map(_extent, inputs[1:]))
    return written + sum(map(_extent, inputs))


_GATHERS = {"embedding", "index", "index_select", "gather", "take"}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _product(operation: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> ProductShape:
    first = inputs[0]
    return ProductShape(
        operation=operation.overloadpacket.__name__,
        shapes=tuple(tuple(tensor.shape) for tensor in inputs),
        result=tuple(outputs[0].shape) if outputs else (),
        dtype=_name(first.dtype),
        channels_last=_is_channels_last(first),
    )


def _is_channels_last(tensor: torch.Tensor) -> bool:
    """Whether the channels of images lie next to each other; where both layouts are one, it is not."""
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


_READS = {"_local_scalar_dense", "equal", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"}
"""Operations whose result, or its size, the host has to know."""
_COPIES = {"_to_copy", "copy_"}


def _is_read(
    operation: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: list[torch.Tensor],
    outputs: list[torch.Tensor],
    device: str,
) -> bool:
    """Whether the host waits for the values of tensors of `device`."""
    name = operation.overloadpacket.__name__
    if name in _READS:
        return any(tensor.device.type == device for tensor in inputs)
    if name == "index":
        # A mask's true elements are counted first.
        return any(tensor.dtype in (torch.bool, torch.uint8) and tensor.device.type == device for tensor in inputs[1:])
    if name in _COPIES and inputs and outputs and device != "cpu":
        non_blocking = kwargs.get("non_blocking") or (name == "copy_" and args[2:] and args[2])
        return inputs[-1].device.type == device and outputs[0].device.type == "cpu" and not non_blocking
    return False


def _pageable_bytes(operation: Any, args: tuple[Any, ...], outputs: list[torch.Tensor]) -> int:
    name = operation.overloadpacket.__name__
    if name not in _COPIES or not outputs or outputs[0].device.type == "cpu":
        return 0
    source = args[1] if name == "copy_" and len(args) > 1 else args[0]
    if not isinstance(source, torch.Tensor) or source.device.type != "cpu":
        return 0
    try:
        return 0 if source.is_pinned() else _extent(source)
    except RuntimeError:
        return 0  # a device need not know of pinned memory


def _is_frozen_norm(operation: Any, args: tuple[Any, ...]) -> bool:
    name = operation.overloadpacket.__name__
    if "batch_norm" not in name or "backward" in name:
        return False
    training = [value for value in args if isinstance(value, bool)]
    return name.endswith(("no_training", "no_update")) or training[:1] == [False]


_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = os.path.dirname(__file__) + os.sep


def _for_torch_itself() -> bool:
    """Whether an optimizer or a gradient scaler wants to know the value: its algorithm needs it."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_OWN, _TORCH)):
        if frame.f_code.co_filename.startswith((_TORCH + "amp", _TORCH + "optim")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _sparse_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor._indices(), tensor._values()] if tensor.layout is torch.sparse_coo else []


@cache
def _moves_nothing(operation: Any) -> bool:
    """Whether an operation makes a view, or memory that nobody has written."""
    if operation.overloadpacket.__name__.startswith(("empty", "new_empty")):
        return True
    returned = operation._schema.returns
    return bool(returned) and all(value.alias_info is not None and not value.alias_info.is_write for value in returned)


@cache
def _formulas() -> dict[Any, Callable[..., int]]:
    """torch's own formulas, and those of operations that it does not count."""
    aten: Any = torch.ops.aten
    more = {
        "_scaled_dot_product_flash_attention_for_cpu": _attention,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
        "mkldnn_rnn_layer": _mkldnn_recurrent,
        "mkldnn_rnn_layer_backward": _mkldnn_recurrent_backward,
        "_cudnn_rnn": _cudnn_recurrent,
        "_cudnn_rnn_backward": _cudnn_recurrent_backward,
    }
    own = {getattr(aten, name): formula for name, formula in more.items() if hasattr(aten, name)}
    return {**own, **flop_counter.flop_registry}


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Two products: scores, and the weighted sum of values."""
    *outer, queries, width = query.shape
    keys = key.shape[-2]
    return int(2 * prod(outer) * queries * keys * (width + value.shape[-1]))


def _attention_backward(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
    """Five products: the scores again, and the gradients of scores, query, key and value."""
    *outer, queries, width = query.shape
    keys = key.shape[-2]
    return int(2 * prod(outer) * queries * keys * (3 * width + 2 * value.shape[-1]))


def _mkldnn_recurrent(inputs: Any, first: Any, second: Any, *_: Any, **__: Any) -> int:
    """Each step multiplies its input and its state with their weights."""
    steps, batch = inputs.shape[:2]
    return int(2 * steps * batch * (first.numel() + second.numel()))


def _mkldnn_recurrent_backward(*args: Any, **kwargs: Any) -> int:
    """Gradients of the inputs and of the weights: twice the forward's products."""
    return 2 * _mkldnn_recurrent(*args, **kwargs)


def _cudnn_recurrent(inputs: Any, weights: Any, *_: Any, **__: Any) -> int:
    matrices = sum(weight.numel() for weight in weights if weight.dim() == 2)
    return int(2 * inputs.shape[0] * inputs.shape[1] * matrices)


def _cudnn_recurrent_backward(*args: Any, **kwargs: Any) -> int:
    return 2 * _cudnn_recurrent(*args, **kwargs)
