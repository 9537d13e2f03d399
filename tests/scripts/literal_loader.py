'''Everything in one file: literals in the calls of the loaders.'''
import torch
import torch.nn as nn
import torch.optim as optim

device = 'cuda' if torch.cuda.is_available() else 'cpu'
trainset = torch.utils.data.TensorDataset(torch.randn(96, 3, 8, 8), torch.randint(10, (96,)))
trainloader = torch.utils.data.DataLoader(
    trainset, batch_size=12, shuffle=True, num_workers=0)
testset = torch.utils.data.TensorDataset(torch.randn(40, 3, 8, 8), torch.randint(10, (40,)))
testloader = torch.utils.data.DataLoader(
    testset, batch_size=20, shuffle=False, num_workers=0)

net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def train(epoch):
    net.train()
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()


def test(epoch):
    net.eval()
    with torch.no_grad():
        for batch_idx, (inputs, targets) in enumerate(testloader):
            net(inputs.to(device))


for epoch in range(2):
    train(epoch)
    test(epoch)
