"""Settings from a YAML file whose path is an option's default; the file lies beside the script."""
import argparse
import os

import torch
import yaml
from torch.utils.data import DataLoader, TensorDataset

HERE = os.path.dirname(os.path.abspath(__file__))


def load_config(path):
    with open(path, encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def build(cfg, split):
    data = TensorDataset(torch.randn(60, 3), torch.randn(60, 1))
    return DataLoader(data, batch_size=cfg["data"][split]["batch_size"], shuffle=split == "train")


def run(cfg):
    train, valid = build(cfg, "train"), build(cfg, "valid")
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["optimizer"]["lr"])
    for x, y in train:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    for x, y in valid:
        model(x)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config", default=os.path.join(HERE, "configs", "base.yaml"))
    run(load_config(parser.parse_args().config))
