"""One training step of ResNet-50: what to profile.

Small images keep a step under a second on two CPU cores; on a GPU, set IMAGE_SIZE to the published 224.
"""

from collections.abc import Callable

import torch
from torch import nn, optim

from resnet import ResNet50

IMAGE_SIZE = 64
CLASSES = 1000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def skyline_model_provider() -> nn.Module:
    return ResNet50(classes=CLASSES).to(DEVICE)


def skyline_input_provider(batch_size: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.randn(batch_size, 3, IMAGE_SIZE, IMAGE_SIZE, device=DEVICE)
    labels = torch.randint(CLASSES, (batch_size,), device=DEVICE)
    return images, labels


def skyline_iteration_provider(model: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], None]:
    loss_of = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def iteration(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        scores = model(images)
        loss = loss_of(scores, labels)
        loss.backward()
        optimizer.step()

    return iteration
