"""One constant feeds training and evaluation; another, of evaluation only, comes first in the file."""
import torch
from torch.utils.data import DataLoader

test_batch_size = 64
batch_size = 8
train_dataloader = DataLoader(torch.randn(32, 2), batch_size=batch_size)
valid_dataloader = DataLoader(torch.randn(32, 2), batch_size=batch_size)
test_dataloader = DataLoader(torch.randn(64, 2), batch_size=test_batch_size)
for x in test_dataloader:
    print(x.shape)
    break
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def train(dataloader):
    for x in dataloader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test(dataloader):
    with torch.no_grad():
        for x in dataloader:
            model(x)


for t in range(2):
    train(train_dataloader)
    test(valid_dataloader)
test(test_dataloader)
