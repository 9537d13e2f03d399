"""A batch sampler cuts the batches; the loader's own batch size is not used."""
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

data = TensorDataset(torch.randn(84, 4), torch.randint(2, (84,)))
sampler = BatchSampler(RandomSampler(data), batch_size=21, drop_last=False)
loader = DataLoader(data, batch_sampler=sampler)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
