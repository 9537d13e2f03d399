"""Writes a checkpoint after every step, as a careful person's script would."""
import argparse
import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--output", default=None, help="folder of the checkpoints (default: a temporary one)")
args = parser.parse_args()

with tempfile.TemporaryDirectory() as scratch:
    folder = args.output or scratch
    os.makedirs(folder, exist_ok=True)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(TensorDataset(torch.randn(50, 2), torch.randn(50, 1)), batch_size=args.batch_size)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, os.path.join(folder, f"step-{step:03d}.pt"))
        with open(os.path.join(folder, "log.txt"), "a", encoding="utf-8") as log:
            log.write(f"{step}\n")
    print(len(os.listdir(folder)), "files")
