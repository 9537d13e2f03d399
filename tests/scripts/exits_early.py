"""Calls exit() after two steps, long before its loader is empty."""
import torch
from torch.utils.data import DataLoader

batch_size = 4
loader = DataLoader(torch.randn(400, 2), batch_size=batch_size)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step, x in enumerate(loader):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    if step == 1:
        print("good enough")
        exit()
