"""One training step of an LSTM language model: what to profile.

Truncated back-propagation through time: the state at the end of one stretch of text is where the next one starts.
"""

from collections.abc import Callable

import torch
from torch import nn, optim

from language_model import LanguageModel, State

VOCABULARY = 10_000
WIDTH = 200
LENGTH = 35
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def skyline_model_provider() -> nn.Module:
    return LanguageModel(VOCABULARY, WIDTH).to(DEVICE)


def skyline_input_provider(batch_size: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    text = torch.randint(VOCABULARY, (LENGTH + 1, batch_size), device=DEVICE)
    return text[:-1], text[1:]


def skyline_iteration_provider(model: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], None]:
    loss_of = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    state: State | None = None

    def iteration(words: torch.Tensor, following: torch.Tensor) -> None:
        nonlocal state
        optimizer.zero_grad()
        scores, (hidden, cell) = model(words, state)
        state = hidden.detach(), cell.detach()
        loss = loss_of(scores.flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
        optimizer.step()

    return iteration
