"""-1 asks for a batch size found by the program."""
import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=-1, help="-1 for automatic")
args = parser.parse_args()


def check_batch_size(model, candidates=(4, 8, 16)):
    return max(candidates)


model = torch.nn.Linear(2, 1)
batch_size = args.batch_size
if batch_size == -1:
    batch_size = check_batch_size(model)
loader = DataLoader(torch.randn(48, 2), batch_size=batch_size)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
