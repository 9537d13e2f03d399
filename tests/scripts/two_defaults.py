"""A parameter's default and an option's: the option wins, since the call passes it."""
import argparse
import logging

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


def train_model(model, device, epochs: int = 5, batch_size: int = 64, learning_rate: float = 1e-5, val_percent=0.25):
    dataset = TensorDataset(torch.randn(80, 3), torch.randn(80, 1))
    n_val = int(len(dataset) * val_percent)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
    loader_args = dict(batch_size=batch_size, num_workers=0, pin_memory=False)
    train_loader = DataLoader(train_set, shuffle=True, **loader_args)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **loader_args)
    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for epoch in range(1, epochs + 1):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                model(x.to(device))
        logging.info("epoch %d: %.3f", epoch, loss.item())


def get_args():
    parser = argparse.ArgumentParser(description="train")
    parser.add_argument("--epochs", "-e", metavar="E", type=int, default=1)
    parser.add_argument("--batch-size", "-b", dest="batch_size", metavar="B", type=int, default=10, help="Batch size")
    parser.add_argument("--learning-rate", "-l", type=float, default=1e-4, dest="lr")
    return parser.parse_args()


if __name__ == "__main__":
    args = get_args()
    logging.basicConfig(level=logging.INFO)
    network = nn.Linear(3, 1)
    try:
        train_model(network, "cpu", epochs=args.epochs, batch_size=args.batch_size, learning_rate=args.lr)
    except MemoryError:
        logging.error("out of memory")
        train_model(network, "cpu", epochs=args.epochs, batch_size=args.batch_size)
