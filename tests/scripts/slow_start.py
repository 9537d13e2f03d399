"""Prepares its data for a while before the first step; how long is an argument."""
import argparse
import time

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=0.2, help="time before the first step")
parser.add_argument("--bs", type=int, default=7)
args = parser.parse_args()

end = time.monotonic() + args.seconds
print("preparing", flush=True)
while time.monotonic() < end:
    time.sleep(min(0.05, args.seconds))
loader = DataLoader(torch.randn(35, 2), batch_size=args.bs)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
