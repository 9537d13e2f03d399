"""Subcommands that share an option's name; the training one is asked for."""
import argparse

import torch
from torch.utils.data import DataLoader


def do_train(args):
    loader = DataLoader(torch.randn(60, 2), batch_size=args.batch_size, shuffle=True)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(args.epochs):
        for x in loader:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()


def do_evaluate(args):
    model = torch.nn.Linear(2, 1)
    for x in DataLoader(torch.randn(60, 2), batch_size=args.batch_size):
        model(x)


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command")
    evaluate = commands.add_parser("evaluate")
    evaluate.add_argument("--batch-size", type=int, default=60)
    evaluate.set_defaults(run=do_evaluate)
    train = commands.add_parser("train")
    train.add_argument("--batch-size", type=int, default=6)
    train.add_argument("--epochs", type=int, default=1)
    train.set_defaults(run=do_train)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
