"""Lightning with optimization by hand: two optimizers, worker processes, validation and checkpoints in between."""

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
        self.critic = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        (real,) = batch
        generator_optimizer, critic_optimizer = self.optimizers()
        fake = self.generator(torch.randn(len(real), 8))
        loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
        critic_optimizer.zero_grad()
        self.manual_backward(loss)
        critic_optimizer.step()  # CRITIC
        loss = -self.critic(fake).mean()
        generator_optimizer.zero_grad()
        self.manual_backward(loss)
        generator_optimizer.step()  # GENERATOR

    def validation_step(self, batch, _):
        self.log("valid", self.critic(batch[0]).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.critic.parameters())


def main():
    data = TensorDataset(torch.randn(400, 16))
    trainer = L.Trainer(
        max_epochs=50, accelerator="cpu", val_check_interval=0.25, callbacks=[ModelCheckpoint(save_last=True)]
    )
    loader = DataLoader(data, batch_size=20, num_workers=2, persistent_workers=True)
    trainer.fit(Gan(), loader, DataLoader(data, batch_size=50))


if __name__ == "__main__":
    main()
