"""The template with a JSON file: classes by name, arguments by keys, a loader subclass."""
import argparse
from pathlib import Path

import loaders
import torch
from registry import ConfigParser

if __name__ == "__main__":
    args = argparse.ArgumentParser(description="template")
    args.add_argument("-c", "--config", default=str(Path(__file__).parent / "config.json"), type=str)
    config = ConfigParser.from_args(args)
    data_loader = config.init_obj("data_loader", loaders)
    valid_loader = data_loader.split_validation()
    model = torch.nn.Linear(3, 1)
    optimizer = config.init_obj("optimizer", torch.optim, model.parameters())
    for epoch in range(config["epochs"]):
        for x, y in data_loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    print(len(valid_loader))
