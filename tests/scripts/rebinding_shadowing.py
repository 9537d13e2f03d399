"""The same name in five scopes; only one of them reaches the loader."""
import torch
from torch.utils.data import DataLoader

batch_size = 7


class Unrelated:
    batch_size = 100

    def describe(self, batch_size=3):
        return batch_size * 2


def helper(batch_size=5):
    return batch_size + 1


def train():
    batch_size = 16
    print(helper(), batch_size)
    batch_size = 18
    loader = DataLoader(torch.randn(90, 2), batch_size=batch_size)
    batch_size = 99
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


train()
