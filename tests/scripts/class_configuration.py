"""Class attributes with inheritance; the subclass decides."""
import torch
from torch.utils.data import DataLoader, TensorDataset


class BaseConfig:
    lr = 0.1
    batch_size = 64
    test_batch_size = 100


class DebugConfig(BaseConfig):
    batch_size = 15
    epochs = 1


class Solver:
    def __init__(self, config):
        self.config = config
        self.batch_size = config.batch_size
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), config.lr)
        self.data = TensorDataset(torch.randn(150, 4), torch.randint(2, (150,)))

    def loader(self, train=True):
        size = self.batch_size if train else self.config.test_batch_size
        return DataLoader(self.data, batch_size=size, shuffle=train)

    def fit(self):
        for _ in range(self.config.epochs):
            for x, y in self.loader():
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()

    def evaluate(self):
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.loader(train=False))


if __name__ == "__main__":
    solver = Solver(DebugConfig())
    solver.fit()
    print(solver.evaluate())
