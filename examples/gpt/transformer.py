"""A decoder transformer in the shape of GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners",
2019): learned positions, normalisation before each sub-layer, and the embedding's weights reused to score tokens.

Attention is written out, one operation a line, so that each shows its own cost.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Size:
    """Dimensions of a model."""

    layers: int
    heads: int
    width: int
    context: int
    vocabulary: int
    dropout: float = 0.1


SIZES = {
    "small": Size(layers=4, heads=4, width=128, context=128, vocabulary=8192),
    "gpt2": Size(layers=12, heads=12, width=768, context=1024, vocabulary=50257),
}


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.query_key_value = nn.Linear(size.width, 3 * size.width)
        self.output = nn.Linear(size.width, size.width)
        self.dropout = nn.Dropout(size.dropout)
        future = torch.ones(size.context, size.context, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        projected = self.query_key_value(x)
        projected = projected.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = projected.permute(2, 0, 3, 1, 4)

        scores = query @ key.transpose(-2, -1)
        scores = scores / math.sqrt(query.shape[-1])
        scores = scores.masked_fill(self.future[:length, :length], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        mixed = weights @ value

        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        mixed = self.output(mixed)
        return self.dropout(mixed)


class FeedForward(nn.Module):
    """The same two layers at every position."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.expand = nn.Linear(size.width, 4 * size.width)
        self.activation = nn.GELU(approximate="tanh")
        self.contract = nn.Linear(4 * size.width, size.width)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.expand(x)
        x = self.activation(x)
        x = self.contract(x)
        return self.dropout(x)


class Block(nn.Module):
    """Attention, then the feed-forward layers, each added to what came in."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size.width)
        self.attention = Attention(size)
        self.norm2 = nn.LayerNorm(size.width)
        self.feed_forward = FeedForward(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = self.norm1(x)
        x = x + self.attention(normal)
        normal = self.norm2(x)
        return x + self.feed_forward(normal)


class GPT(nn.Module):
    """Tokens (batch, length) to scores of the next token (batch, length, vocabulary)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.context, size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.apply(_initialise)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens)
        x = x + self.positions(places)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return F.linear(x, self.tokens.weight)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
