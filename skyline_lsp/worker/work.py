"""Floating-point operations and bytes moved, by line: what the roofline model needs.

Counted from the shapes of the operations that really ran, outside the timed iterations. As is the custom, only
matrix products, convolutions, attention and recurrent layers count as FLOP (a multiply-add is two); bytes are what an
operation must read and write at least, each operand once, so fused kernels move fewer and cache misses more.
"""

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


@dataclass(slots=True)
class Work:
    """What the operations of one tree node did in one iteration, forward and backward."""

    flop: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Data type -> FLOP."""
    bytes_moved: int = 0
    operations: int = 0
    """Operations given to the device, views and allocations left out."""


class WorkCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Counts while it is entered."""

    def __init__(self, where: Where) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.by_node: dict[int, Work] = defaultdict(Work)
        self._where = where

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        if not _moves_nothing(operation):
            work = self.by_node[self._where.node]
            inputs = _tensors((args, kwargs))
            work.operations += 1
            work.bytes_moved += sum(_extent(tensor) for tensor in (*inputs, *_tensors(result)))
            formula = _formulas().get(operation.overloadpacket)
            if formula is not None and inputs:
                work.flop[str(inputs[0].dtype).removeprefix("torch.")] += formula(
                    *args, **(kwargs or {}), out_val=result
                )
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_iter(values) if isinstance(value, torch.Tensor)]


def _extent(tensor: torch.Tensor) -> int:
    """Bytes of memory behind a tensor; an expanded dimension has its bytes once."""
    if tensor.layout is not torch.strided:
        return sum(part.numel() * part.element_size() for part in _sparse_parts(tensor))
    elements = prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or not size)
    return elements * tensor.element_size()


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
