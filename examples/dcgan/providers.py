"""One training step of DCGAN: what to profile. Two networks, two optimizers, three backward passes.

WIDTH is half of the paper's 128, so that a step takes about half a second on two CPU cores.
"""

from collections.abc import Callable

import torch
from torch import optim
from torch.nn import functional as F

from networks import DCGAN

NOISE = 100
WIDTH = 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def skyline_model_provider() -> DCGAN:
    return DCGAN(noise=NOISE, width=WIDTH).to(DEVICE)


def skyline_input_provider(batch_size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.rand(batch_size, 3, 64, 64, device=DEVICE) * 2 - 1
    noise = torch.randn(batch_size, NOISE, device=DEVICE)
    return images, noise


def skyline_iteration_provider(model: DCGAN) -> Callable[[torch.Tensor, torch.Tensor], None]:
    generator_optimizer = optim.Adam(model.generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    discriminator_optimizer = optim.Adam(model.discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def iteration(images: torch.Tensor, noise: torch.Tensor) -> None:
        real = torch.ones(len(images), device=DEVICE)
        fake = torch.zeros(len(noise), device=DEVICE)
        invented = model.generator(noise)

        discriminator_optimizer.zero_grad()
        scores = model.discriminator(images)
        loss = F.binary_cross_entropy_with_logits(scores, real)
        loss.backward()
        scores = model.discriminator(invented.detach())
        loss = F.binary_cross_entropy_with_logits(scores, fake)
        loss.backward()
        discriminator_optimizer.step()

        generator_optimizer.zero_grad()
        scores = model.discriminator(invented)
        loss = F.binary_cross_entropy_with_logits(scores, real)
        loss.backward()
        generator_optimizer.step()

    return iteration
