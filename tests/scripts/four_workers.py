"""Four processes load the data."""
import torch
from torch.utils.data import DataLoader, Dataset

BATCH_SIZE = 6
NUM_WORKERS = 4


class Squares(Dataset):
    def __len__(self):
        return 72

    def __getitem__(self, index):
        return torch.full((3,), float(index)), torch.tensor([float(index) ** 2])


def main():
    loader = DataLoader(Squares(), batch_size=BATCH_SIZE, num_workers=NUM_WORKERS, persistent_workers=True)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-7)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
