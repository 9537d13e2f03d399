"""ResNet-50 for images, from "Deep Residual Learning for Image Recognition" (He, Zhang, Ren, Sun; CVPR 2016).

As published: stages of 3, 4, 6 and 3 bottlenecks, and the stride of a stage in its first 1x1 convolution.
"""

import torch
from torch import nn

EXPANSION = 4
"""A bottleneck's output has this many times the channels of its 3x3 convolution."""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut."""

    def __init__(self, in_channels: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        out_channels = channels * EXPANSION
        self.conv1 = nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, out_channels, kernel_size=1, bias=False)
        self.norm3 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = self.shortcut(x)

        x = self.conv1(x)
        x = self.norm1(x)
        x = self.relu(x)

        x = self.conv2(x)
        x = self.norm2(x)
        x = self.relu(x)

        x = self.conv3(x)
        x = self.norm3(x)

        x = x + residual
        return self.relu(x)


class ResNet50(nn.Module):
    """Images (batch, 3, height, width) to class scores (batch, classes)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.norm1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.stage2 = stage(64, channels=64, blocks=3, stride=1)
        self.stage3 = stage(256, channels=128, blocks=4, stride=2)
        self.stage4 = stage(512, channels=256, blocks=6, stride=2)
        self.stage5 = stage(1024, channels=512, blocks=3, stride=2)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(2048, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.conv1(images)
        x = self.norm1(x)
        x = self.relu(x)
        x = self.pool(x)

        x = self.stage2(x)
        x = self.stage3(x)
        x = self.stage4(x)
        x = self.stage5(x)

        x = self.average(x)
        x = x.flatten(start_dim=1)
        return self.classifier(x)


def stage(in_channels: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
    """Bottlenecks of one resolution; the first changes it by `stride`."""
    first = Bottleneck(in_channels, channels, stride)
    rest = (Bottleneck(channels * EXPANSION, channels) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)
