"""Updates its weights by hand: no optimizer ever steps."""
import torch
from torch.utils.data import DataLoader, TensorDataset

w = torch.zeros(3, 1, requires_grad=True)
lr, bs = 0.1, 15
loader = DataLoader(TensorDataset(torch.randn(60, 3), torch.randn(60, 1)), batch_size=bs, shuffle=True)
for x, y in loader:
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        w.grad.zero_()
