"""Operations that take a known time and save known bytes. Library code as far as the tests' programs are concerned."""

import time
from typing import Any

import torch


class Nap(torch.autograd.Function):
    """Sleeps `forward_ms` on the way there and `backward_ms` on the way back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward_ms: float, backward_ms: float) -> torch.Tensor:
        ctx.backward_ms = backward_ms
        time.sleep(forward_ms / 1000)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        # A sum over all of it, so that a double backward passes through here too.
        time.sleep(ctx.backward_ms / 1000)
        return gradient.clone(), None, None


def nap(x: torch.Tensor, forward_ms: float, backward_ms: float) -> torch.Tensor:
    """`Nap`, as a library would wrap it."""
    result: torch.Tensor = Nap.apply(x, forward_ms, backward_ms)  # type: ignore[no-untyped-call]
    return result
