"""Several modules: options in one, loaders in another, the loop in a third."""
from engine import train_one_epoch
from options import get_args_parser
from pipeline import build_loaders

import torch


def main(args):
    train_loader, valid_loader = build_loaders(args)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.blr * args.batch_size * args.accum_iter / 256)
    for epoch in range(args.epochs):
        train_one_epoch(model, train_loader, optimizer, epoch, args)
    print(sum(len(x) for x, _ in valid_loader))


if __name__ == "__main__":
    arguments = get_args_parser()
    arguments = arguments.parse_args()
    main(arguments)
