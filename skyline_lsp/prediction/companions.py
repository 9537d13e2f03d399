"""What may have to change together with the batch size: accumulation steps and the learning rate. Offered, never done.

The rules are rules of thumb of the papers that they name; whether they hold for a program only training it tells.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """Steps of gradient accumulation that keep the effective batch size as near as may be."""

    steps: int
    effective_before: int
    effective_after: int

    @property
    def exact(self) -> bool:
        """Whether the effective batch size stays the same."""
        return self.effective_before == self.effective_after


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateRule:
    """A rule for the learning rate when the effective batch size changes."""

    name: str
    factor: float
    """What to multiply the learning rate with."""
    learning_rate: float | None
    """The new one; None where the old one is not known."""
    note: str
    """When it is meant to hold, a sentence or two."""
    source: str


def accumulation(old_batch_size: int, new_batch_size: int, old_steps: int = 1) -> Accumulation:
    """The accumulation steps for a new batch size. Raises `ValueError` for numbers below 1."""
    if min(old_batch_size, new_batch_size, old_steps) < 1:
        raise ValueError("batch sizes and accumulation steps are at least 1")
    effective = old_batch_size * old_steps
    fewer = max(1, effective // new_batch_size)
    steps = min((fewer, fewer + 1), key=lambda count: abs(count * new_batch_size - effective))
    return Accumulation(steps=steps, effective_before=effective, effective_after=steps * new_batch_size)


def learning_rate_rules(
    old_effective: int, new_effective: int, learning_rate: float | None = None
) -> tuple[LearningRateRule, ...]:
    """The linear and the square-root rule; none where the effective batch size stays the same."""
    if min(old_effective, new_effective) < 1:
        raise ValueError("batch sizes are at least 1")
    if old_effective == new_effective:
        return ()
    ratio = new_effective / old_effective

    def rule(name: str, factor: float, note: str, source: str) -> LearningRateRule:
        scaled = None if learning_rate is None else learning_rate * factor
        return LearningRateRule(name=name, factor=factor, learning_rate=scaled, note=note, source=source)

    return (
        rule(
            "linear",
            ratio,
            "For SGD with momentum. After an increase, warm the learning rate up over the first epochs; beyond some "
            "size (8192 for ResNet-50 on ImageNet) accuracy falls all the same.",
            "Goyal et al. 2017, Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, arXiv 1706.02677",
        ),
        rule(
            "square root",
            math.sqrt(ratio),
            "Keeps the variance of a step's gradient; the more careful of the two.",
            "Krizhevsky 2014, One Weird Trick for Parallelizing Convolutional Neural Networks, arXiv 1404.5997; Hoffer "
            "et al. 2017, Train Longer, Generalize Better, arXiv 1705.08741",
        ),
    )
