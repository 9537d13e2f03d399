"""A benchmark on made-up data: no loader at all, the step is a callback."""
import argparse
import timeit

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser(description="synthetic benchmark")
parser.add_argument("--batch-size", type=int, default=5, help="input batch size")
parser.add_argument("--num-batches-per-iter", type=int, default=3)
parser.add_argument("--num-iters", type=int, default=2)
args = parser.parse_args()

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(args.batch_size, 3, 8, 8)
target = torch.LongTensor(args.batch_size).random_() % 10


def benchmark_step():
    optimizer.zero_grad()
    output = model(data)
    loss = F.cross_entropy(output, target)
    loss.backward()
    optimizer.step()


for _ in range(args.num_iters):
    seconds = timeit.timeit(benchmark_step, number=args.num_batches_per_iter)
    print("%.1f samples/s" % (args.batch_size * args.num_batches_per_iter / seconds))
