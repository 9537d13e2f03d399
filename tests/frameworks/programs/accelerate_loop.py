"""Accelerate: the loop is the user's, the loader, the optimizer and the accumulation are wrapped."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = nn.Sequential(
        nn.Linear(32, 64),  # FIRST
        nn.ReLU(),
        nn.Linear(64, 2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(2048, 32), torch.randint(2, (2048,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(30):
        for x, y in loader:  # LOADER
            with accelerator.accumulate(model):
                output = model(x)  # MODEL
                loss = nn.functional.cross_entropy(output, y)  # LOSS
                accelerator.backward(loss)
                optimizer.step()  # LIBRARY
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
