"""Globals overridden by executing other files and by the command line."""
import os

import torch

batch_size = 12
block_size = 8
max_iters = 4
os.chdir(os.path.dirname(os.path.abspath(__file__)))
exec(open("configurator.py").read())

data = torch.randint(20, (300,))
table = torch.nn.Embedding(20, 20)
optimizer = torch.optim.AdamW(table.parameters())


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size] for i in ix])
    return x, y


for _ in range(max_iters):
    X, Y = get_batch()
    loss = torch.nn.functional.cross_entropy(table(X).flatten(0, 1), Y.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
