"""Constants at the top, shared by both loaders; one of them is rebound before it is used."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 512
EPOCHS = 1
LEARNING_RATE = 1e-2
BATCH_SIZE = 1_0  # what counts


def loaders():
    data = TensorDataset(torch.randn(60, 5), torch.randint(3, (60,)))
    return DataLoader(data, batch_size=BATCH_SIZE, shuffle=True), DataLoader(data, batch_size=BATCH_SIZE)


def main():
    train_loader, valid_loader = loaders()
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for _ in range(EPOCHS):
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            print(sum(nn.functional.cross_entropy(model(x), y) for x, y in valid_loader).item())


main()
