"""Saved on Windows with a byte order mark, and without a last line end."""
import torch
from torch.utils.data import DataLoader
BATCH = 17
loader = DataLoader(torch.randn(51, 2), BATCH)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()