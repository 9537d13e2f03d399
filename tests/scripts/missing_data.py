"""Its data set is not there: it raises before the first step."""
import torch
from torch.utils.data import DataLoader

BATCH_SIZE = 20
data = torch.load("no-such-data-set.pt")
loader = DataLoader(data, batch_size=BATCH_SIZE)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
