"""Settings as a NamedTuple, with a namespace beside it."""
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader


class Hyper(NamedTuple):
    lr: float = 0.1
    bs: int = 11
    epochs: int = 1


hp = Hyper(lr=0.2)
paths = SimpleNamespace(root=".", valid_bs=55)
train = DataLoader(torch.randn(110, 3), hp.bs, shuffle=True)
valid = DataLoader(torch.randn(110, 3), paths.valid_bs)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), hp.lr)
for _ in range(hp.epochs):
    for x in train:
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for x in valid:
        model(x)
