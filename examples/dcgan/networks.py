"""The two networks of DCGAN, from "Unsupervised Representation Learning with Deep Convolutional Generative Adversarial
Networks" (Radford, Metz, Chintala; ICLR 2016), for images of 64 by 64.
"""

import torch
from torch import nn


class Generator(nn.Module):
    """Noise (batch, noise) to images (batch, 3, 64, 64). The paper's `width` is 128."""

    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        self.project = nn.ConvTranspose2d(noise, 8 * width, kernel_size=4, bias=False)
        self.norm1 = nn.BatchNorm2d(8 * width)
        self.up2 = nn.ConvTranspose2d(8 * width, 4 * width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * width)
        self.up3 = nn.ConvTranspose2d(4 * width, 2 * width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(2 * width)
        self.up4 = nn.ConvTranspose2d(2 * width, width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm4 = nn.BatchNorm2d(width)
        self.up5 = nn.ConvTranspose2d(width, 3, kernel_size=4, stride=2, padding=1)
        self.apply(_initialise)

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        x = noise[:, :, None, None]
        x = self.project(x)
        x = self.norm1(x)
        x = torch.relu(x)

        x = self.up2(x)
        x = self.norm2(x)
        x = torch.relu(x)

        x = self.up3(x)
        x = self.norm3(x)
        x = torch.relu(x)

        x = self.up4(x)
        x = self.norm4(x)
        x = torch.relu(x)

        x = self.up5(x)
        return torch.tanh(x)


class Discriminator(nn.Module):
    """Images (batch, 3, 64, 64) to scores (batch,): above zero for images taken to be real."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(3, width, kernel_size=4, stride=2, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.down3 = nn.Conv2d(2 * width, 4 * width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(4 * width)
        self.down4 = nn.Conv2d(4 * width, 8 * width, kernel_size=4, stride=2, padding=1, bias=False)
        self.norm4 = nn.BatchNorm2d(8 * width)
        self.score = nn.Conv2d(8 * width, 1, kernel_size=4)
        self.relu = nn.LeakyReLU(0.2)
        self.apply(_initialise)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.down1(images)
        x = self.relu(x)

        x = self.down2(x)
        x = self.norm2(x)
        x = self.relu(x)

        x = self.down3(x)
        x = self.norm3(x)
        x = self.relu(x)

        x = self.down4(x)
        x = self.norm4(x)
        x = self.relu(x)

        x = self.score(x)
        return x.flatten()


class DCGAN(nn.Module):
    """Both networks."""

    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        self.generator = Generator(noise, width)
        self.discriminator = Discriminator(width)

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.generator(noise)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, mean=1.0, std=0.02)
