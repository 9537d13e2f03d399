"""A frozen dataclass with a nested one, and a derived evaluation size."""
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class DataSettings:
    size: int = 90
    batch_size: int = 9
    workers: int = 0


@dataclass(frozen=True)
class Settings:
    lr: float = 0.1
    data: DataSettings = field(default_factory=DataSettings)

    @property
    def eval_batch_size(self) -> int:
        return self.data.batch_size * 2


def main(settings: Settings) -> None:
    data = TensorDataset(torch.randn(settings.data.size, 3), torch.randn(settings.data.size, 1))
    train = DataLoader(data, settings.data.batch_size, shuffle=True, num_workers=settings.data.workers)
    evaluation = DataLoader(data, settings.eval_batch_size)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), settings.lr)
    for x, y in train:
        optimizer.zero_grad()
        (model(x) - y).abs().mean().backward()
        optimizer.step()
    with torch.inference_mode():
        for x, y in evaluation:
            model(x)


if __name__ == "__main__":
    main(Settings(lr=0.05))
