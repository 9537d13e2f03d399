"""Which optimizer steps end an iteration, from their order alone."""

import random

import pytest

from skyline_lsp.worker.step_cycle import LEAST_STEPS, PATIENCE_S, PATIENCE_STEPS, StepCycle


class Clock:
    """Goes on by `step_s` whenever it is asked."""

    def __init__(self, step_s: float = 0.0) -> None:
        self._now, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self._now += self._step_s
        return self._now


def ends(steps: str, optimizers: int | None = None, clock: Clock | None = None) -> str:
    """The steps with a bar after each that ended an iteration."""
    count = len(set(steps)) if optimizers is None else optimizers
    cycle = StepCycle(lambda: count, clock or Clock())
    return "".join(step + ("|" if cycle.stepped(ord(step)) else "") for step in steps)


def check(expected: str, optimizers: int | None = None) -> None:
    assert ends(expected.replace("|", ""), optimizers) == expected


def test_one_optimizer() -> None:
    """With one optimizer each step ends an iteration, from the first."""
    check("A|A|A|A|")


def test_two_in_turn() -> None:
    """A GAN's iteration is a step of both; it is known after two."""
    check("DGDG|DG|DG|")


def test_several_critic_steps() -> None:
    """Five critic steps and one of the generator are one iteration."""
    check("DDDDDGDDDDDG|DDDDDG|DDDDDG|")


def test_generator_first() -> None:
    """The cycle begins where the program begins it."""
    check("GDDGDD|GDD|")


def test_unequal_counts() -> None:
    """Neither optimizer needs to step just once."""
    check("GGGDDGGGDD|GGGDD|")


def test_three_optimizers() -> None:
    """All that exist have to have stepped before a cycle is believed."""
    check("ABABCABABC|ABABC|")


def test_optimizer_that_never_steps() -> None:
    """An optimizer that takes no part is waited for, but not for ever."""
    steps = ends("A" * (PATIENCE_STEPS + 2), optimizers=2)
    assert steps == "A" * (PATIENCE_STEPS) + "|A|A|"


def test_slow_iterations_are_not_waited_for() -> None:
    """Where steps take long, patience is a matter of time."""
    steps = ends("A" * 20, optimizers=2, clock=Clock(step_s=PATIENCE_S))
    assert steps.startswith("A" * LEAST_STEPS + "|A|")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # The critic's step was left out, the generator's, one of five.
        ("DGDG" + "GDGDG", "DGDG|G|DG|DG|"),
        ("DGDG" + "DDGDG", "DGDG|DDG|DG|"),
        ("DDDGDDDG" + "DDGDDDG", "DDDGDDDG|DDG|DDDG|"),
    ],
)
def test_step_left_out(steps: str, expected: str) -> None:
    """A step that a gradient scaler leaves out costs at most its own iteration's end."""
    assert ends(steps) == expected


def test_stranger() -> None:
    """An optimizer that steps now and then besides does not disturb."""
    check("A|A|A|BA|A|BA|", optimizers=1)


def test_optimizer_replaced() -> None:
    """A new optimizer in place of the old one is found."""
    assert ends("AAA" + "BBBBBB", optimizers=1) == "A|A|A|BBBBB|B|"


def test_no_regular_cycle() -> None:
    """Without any regularity the optimizer that steps least often ends the iteration."""
    chance = random.Random(1)
    irregular = "".join("D" * chance.randint(2, 7) + "G" for _ in range(40))
    marked = ends(irregular)
    assert marked.count("|") > 5
    assert all(part.endswith("G") for part in marked.split("|")[1:-1])
