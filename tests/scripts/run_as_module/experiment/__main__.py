"""Run with `python -m experiment`: relative imports, a settings module imported by name."""
import torch

from . import settings
from .data import loader_for


def main():
    train = loader_for("train", settings.TRAIN_BATCH)
    test = loader_for("test", settings.TEST_BATCH)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), settings.LR)
    for x in train:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    for x in test:
        model(x)


if __name__ == "__main__":
    main()
