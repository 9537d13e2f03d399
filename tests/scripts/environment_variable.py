"""The batch size from the environment, with a default."""
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = int(os.environ.get("CORPUS_BATCH_SIZE", 13))
EPOCHS = int(os.getenv("CORPUS_EPOCHS", "1"))

loader = DataLoader(TensorDataset(torch.randn(65, 2), torch.randn(65, 1)), batch_size=BATCH_SIZE)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.RMSprop(model.parameters())
for _ in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.l1_loss(model(x), y).backward()
        optimizer.step()
