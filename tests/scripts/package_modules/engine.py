import math
import sys

import torch


class Logger:
    def log_every(self, iterable, frequency):
        for i, item in enumerate(iterable):
            if i % frequency == 0:
                print(i)
            yield item


def train_one_epoch(model, data_loader, optimizer, epoch, args):
    model.train(True)
    optimizer.zero_grad()
    for step, (samples, targets) in enumerate(Logger().log_every(data_loader, 4)):
        loss = torch.nn.functional.cross_entropy(model(samples), targets)
        if not math.isfinite(loss.item()):
            sys.exit(1)
        loss = loss / args.accum_iter
        loss.backward()
        if (step + 1) % args.accum_iter == 0:
            optimizer.step()
            optimizer.zero_grad()
