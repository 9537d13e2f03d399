"""Settings from a TOML file, read with the standard library where it has the reader."""
from pathlib import Path

import torch
from torch.utils.data import DataLoader

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

with open(Path(__file__).resolve().parent / "settings.toml", "rb") as stream:
    settings = tomllib.load(stream)

train = DataLoader(torch.randn(60, 2), batch_size=settings["training"]["batch_size"], shuffle=True)
valid = DataLoader(torch.randn(60, 2), batch_size=settings["validation"]["batch_size"])
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), settings["training"]["lr"])
for x in train:
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
for x in valid:
    model(x)
