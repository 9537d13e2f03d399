"""What the program's optimizers are: how many tensors they update, and in which of torch's ways.

Private parts of torch used here: `_get_fused_kernels_supported_devices`. Where it is gone, nothing can be fused.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer
from torch.utils._pytree import tree_iter

from skyline_lsp.protocol import OptimizerUse

FUSIBLE = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of torch with an argument `fused`; of them, Adagrad has it on the CPU only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerState:
    """One optimizer, without its tensors."""

    name: str
    parameters: int
    parameter_bytes: int
    state_bytes: int
    fused: bool
    foreach: bool
    can_fuse: bool

    def use(self, path: str, line: int, steps: int) -> OptimizerUse:
        """It, as stepped by a line, `steps` times an iteration."""
        return OptimizerUse(
            path=path,
            line=line,
            name=self.name,
            steps=steps,
            parameters=self.parameters,
            parameter_bytes=self.parameter_bytes,
            state_bytes=self.state_bytes,
            fused=self.fused,
            foreach=self.foreach,
            can_fuse=self.can_fuse,
        )


def describe(optimizer: torch.optim.Optimizer) -> OptimizerState:
    """What there is to know of `optimizer` now, best asked after a step."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    stepped = [parameter for parameter in parameters if parameter.grad is not None] or parameters
    tensors = [value for value in tree_iter(dict(optimizer.state)) if isinstance(value, torch.Tensor)]
    return OptimizerState(
        name=_name(optimizer),
        parameters=len(stepped),
        parameter_bytes=_bytes(stepped),
        state_bytes=_bytes(tensor for tensor in tensors if tensor.numel() > 1),
        fused=_flag(optimizer, "fused"),
        foreach=_flag(optimizer, "foreach"),
        can_fuse=_can_fuse(optimizer, stepped),
    )


def _name(optimizer: torch.optim.Optimizer) -> str:
    cls = type(optimizer)
    return cls.__name__ if cls.__module__.startswith("torch.optim.") else f"{cls.__module__}.{cls.__qualname__}"


def _flag(optimizer: torch.optim.Optimizer, name: str) -> bool:
    return bool(optimizer.param_groups) and all(bool(group.get(name)) for group in optimizer.param_groups)


def _can_fuse(optimizer: torch.optim.Optimizer, parameters: list[Any]) -> bool:
    """By the conditions that torch checks when it is asked to fuse."""
    cls = type(optimizer)
    if not (cls.__module__.startswith("torch.optim.") and cls.__name__ in FUSIBLE and parameters):
        return False
    if "fused" not in optimizer.defaults or any(
        group.get(name) for group in optimizer.param_groups for name in ("differentiable", "foreach")
    ):
        return False
    supported = getattr(torch_optimizer, "_get_fused_kernels_supported_devices", None)
    kinds = set(supported()) if supported is not None else set()
    if cls.__name__ == "Adagrad":
        kinds &= {"cpu"}
    return all(
        parameter.device.type in kinds
        and parameter.is_floating_point()
        and not (parameter.grad is not None and parameter.grad.is_sparse)
        for parameter in parameters
    )


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
