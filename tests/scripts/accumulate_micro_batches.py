"""Gradient accumulation: the optimizer steps every fourth backward pass; the micro-batch is what is loaded."""
import torch
from torch.utils.data import DataLoader, TensorDataset

accumulation_steps = 4
micro_batch_size = 8
global_batch = micro_batch_size * accumulation_steps
print(global_batch, "samples a step")

data = TensorDataset(torch.randn(256, 6), torch.randn(256, 1))
loader = DataLoader(data, batch_size=micro_batch_size, shuffle=True)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)

optimizer.zero_grad()
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y) / accumulation_steps
    loss.backward()
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
