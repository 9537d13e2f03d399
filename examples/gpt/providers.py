"""One training step of a small GPT: what to profile. Set SIZE to "gpt2" for GPT-2's 124 million parameters."""

from collections.abc import Callable

import torch
from torch import nn, optim
from torch.nn import functional as F

from transformer import GPT, SIZES

SIZE = "small"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def skyline_model_provider() -> nn.Module:
    return GPT(SIZES[SIZE]).to(DEVICE)


def skyline_input_provider(batch_size: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    size = SIZES[SIZE]
    text = torch.randint(size.vocabulary, (batch_size, size.context + 1), device=DEVICE)
    return text[:, :-1], text[:, 1:]


def skyline_iteration_provider(model: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], None]:
    optimizer = optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)

    def iteration(tokens: torch.Tensor, following: torch.Tensor) -> None:
        scores = model(tokens)
        loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()

    return iteration
