"""No data loader: a token stream is folded into columns, as word language models do."""
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="language model")
parser.add_argument("--emsize", type=int, default=12)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch_size", type=int, default=6, metavar="N")
parser.add_argument("--bptt", type=int, default=9)
args = parser.parse_args()


class Model(nn.Module):
    def __init__(self, tokens, size):
        super().__init__()
        self.embed = nn.Embedding(tokens, size)
        self.rnn = nn.LSTM(size, size)
        self.out = nn.Linear(size, tokens)

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.embed(x), hidden)
        return self.out(y), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(1, bsz, 12), weight.new_zeros(1, bsz, 12)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


eval_batch_size = 4
stream = torch.randint(30, (600,))
train_data = batchify(stream[:500], args.batch_size)
val_data = batchify(stream[500:], eval_batch_size)
model = Model(30, args.emsize)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


def evaluate(source):
    model.eval()
    hidden = model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)


def train():
    model.train()
    hidden = model.init_hidden(args.batch_size)
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i)
        hidden = tuple(h.detach() for h in hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = nn.functional.cross_entropy(output.view(-1, 30), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()


for epoch in range(args.epochs):
    train()
    evaluate(val_data)
