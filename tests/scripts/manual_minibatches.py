"""A generator of slices, with the size as its parameter's default."""
import torch


def minibatches(x, y, size=16):
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        chosen = order[start:start + size]
        yield x[chosen], y[chosen]


x, y = torch.randn(96, 3), torch.randn(96, 1)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1):
    for xb, yb in minibatches(x, y):
        optimizer.zero_grad()
        ((model(xb) - yb) ** 2).mean().backward()
        optimizer.step()
