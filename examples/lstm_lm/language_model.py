"""A language model of two LSTM layers, after "Recurrent Neural Network Regularization" (Zaremba, Sutskever, Vinyals;
2014), with the embedding's weights reused to score words (Press, Wolf; "Using the Output Embedding to Improve Language
Models", EACL 2017).
"""

import torch
from torch import nn

State = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(nn.Module):
    """Words (length, batch) and the state before them to scores (length, batch, vocabulary) and the state after."""

    def __init__(self, vocabulary: int, width: int, layers: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, num_layers=layers, dropout=dropout)
        self.score = nn.Linear(width, vocabulary)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.score.bias)
        self.score.weight = self.embedding.weight

    def forward(self, words: torch.Tensor, state: State | None) -> tuple[torch.Tensor, State]:
        x = self.embedding(words)
        x = self.dropout(x)
        x, state = self.lstm(x, state)
        x = self.dropout(x)
        scores = self.score(x)
        return scores, state
