"""A graph network trained on the whole graph at once: there is no batch size."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--hidden", type=int, default=16)
args = parser.parse_args()


def load_graph(nodes=40, features=12):
    adjacency = (torch.rand(nodes, nodes) < 0.2).float() + torch.eye(nodes)
    degree = adjacency.sum(1)
    normalised = adjacency / degree[:, None]
    return normalised, torch.rand(nodes, features), torch.randint(4, (nodes,))


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.first, self.second = nn.Linear(nfeat, nhid), nn.Linear(nhid, nclass)

    def forward(self, x, adj):
        x = F.relu(adj @ self.first(x))
        return F.log_softmax(adj @ self.second(x), dim=1)


adj, features, labels = load_graph()
idx_train = torch.arange(20)
model = GCN(features.shape[1], args.hidden, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    print(epoch, round(loss.item(), 3))
