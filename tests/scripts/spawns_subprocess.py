"""Starts another program before it trains, and reads what that prints."""
import subprocess
import sys

import torch
from torch.utils.data import DataLoader

size = int(subprocess.run(
    [sys.executable, "-c", "print(36)"], check=True, capture_output=True, text=True
).stdout)
subprocess.run([sys.executable, "-c", "print('on the same standard output')"], check=True)
loader = DataLoader(torch.randn(size, 2), batch_size=9)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
