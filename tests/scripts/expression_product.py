"""A batch size that is calculated, divided among processes and limited."""
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

MAX_BATCH = 48
world_size = int(os.environ.get("CORPUS_WORLD_SIZE", 1))
batch_size = 4 * 6
per_process = min(batch_size // world_size, MAX_BATCH)

data = TensorDataset(torch.randn(96, 2), torch.randn(96, 1))
loader = DataLoader(data, batch_size=per_process, drop_last=True)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
