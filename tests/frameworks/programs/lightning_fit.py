"""Lightning: the trainer owns the loop, the module's forward and the training step are the user's."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 10)

    def forward(self, x):
        x = self.first(x)  # FIRST
        return self.second(torch.relu(x))  # SECOND


class Task(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, _):
        x, y = batch
        logits = self.net(x)  # MODEL
        loss = nn.functional.cross_entropy(logits, y)  # LOSS
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    data = TensorDataset(torch.randn(4096, 64), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    trainer = L.Trainer(max_epochs=30, accelerator="cpu", log_every_n_steps=1)
    trainer.fit(Task(), loader)  # LIBRARY


if __name__ == "__main__":
    main()
