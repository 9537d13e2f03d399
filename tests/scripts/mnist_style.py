"""The shape of the basic MNIST example: options, keyword dictionaries, a loader for training and one for testing."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        x = F.relu(self.conv(x))
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)


def train(args, model, loader, optimizer):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"{batch_idx * len(data)}/{len(loader.dataset)} {loss.item():.3f}")


def test(model, loader):
    model.eval()
    with torch.no_grad():
        for data, target in loader:
            model(data)


def main():
    parser = argparse.ArgumentParser(description="digits")
    parser.add_argument("--batch-size", type=int, default=16, metavar="N", help="samples a step (default: 16)")
    parser.add_argument("--test-batch-size", type=int, default=50, metavar="N")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(1)

    train_kwargs = {"batch_size": args.batch_size, "shuffle": True}
    test_kwargs = {"batch_size": args.test_batch_size}
    data = TensorDataset(torch.randn(160, 1, 8, 8), torch.randint(10, (160,)))
    train_loader = DataLoader(data, **train_kwargs)
    test_loader = DataLoader(data, **test_kwargs)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    for _ in range(args.epochs):
        train(args, model, train_loader, optimizer)
        test(model, test_loader)


if __name__ == "__main__":
    main()
