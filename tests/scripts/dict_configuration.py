"""A nested dictionary of settings, followed through keys."""
import torch
from torch.utils.data import DataLoader, TensorDataset

config = {
    "model": {"width": 8},
    "eval": {"batch_size": 40},
    "train": {
        "batch_size": 14,  # fits in 8 GB
        "lr": 0.05,
    },
}


def make_loader(cfg, shuffle):
    data = TensorDataset(torch.randn(140, 3), torch.randn(140, 1))
    return DataLoader(data, batch_size=cfg["batch_size"], shuffle=shuffle)


def fit(cfg):
    train_loader = make_loader(cfg["train"], shuffle=True)
    eval_loader = make_loader(cfg["eval"], shuffle=False)
    model = torch.nn.Sequential(torch.nn.Linear(3, cfg["model"]["width"]), torch.nn.Linear(cfg["model"]["width"], 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["train"]["lr"])
    for x, y in train_loader:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    with torch.no_grad():
        return sum(((model(x) - y) ** 2).sum().item() for x, y in eval_loader)


if __name__ == "__main__":
    print(fit(config))
