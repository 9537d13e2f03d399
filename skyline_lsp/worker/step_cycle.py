"""Which optimizer step ends an iteration. Pure: optimizers are known by a number.

With one optimizer it is each step. With several (a GAN; five critic steps to one of the generator) an iteration is
one cycle of steps, found from the order in which they come.
"""

from collections import Counter
from collections.abc import Callable

PATIENCE_STEPS = 24
"""So many steps of one optimizer alone, while others exist, mean that the others do not take part..."""
PATIENCE_S = 10.0
"""... or as many as fit into this time,"""
LEAST_STEPS = 8
"""but no fewer than this."""

LONGEST_CYCLE = 48
"""Longer ones are not searched for: then the optimizer that steps least often ends the iteration."""

STRANGERS = 4
"""After so many cycles' worth of steps by unknown optimizers, with none by a known one, the search begins anew."""


class StepCycle:
    """Told of every optimizer step, it says which of them end an iteration.

    `expected` gives how many optimizers exist that may step, `clock` seconds.
    """

    def __init__(self, expected: Callable[[], int], clock: Callable[[], float]) -> None:
        self._expected = expected
        self._clock = clock
        self._restart()

    def _restart(self) -> None:
        self._seen: list[int] = []
        self._started = 0.0
        self._all = 0
        self._cycle: list[int] = []
        self._position = 0
        self._closing: int | None = None
        self._strangers = 0

    @property
    def known(self) -> bool:
        """Whether it is decided what an iteration is."""
        return bool(self._cycle) or self._closing is not None

    def stepped(self, optimizer: int) -> bool:
        """An optimizer has stepped. True: an iteration has just ended."""
        if not self.known:
            return self._search(optimizer)
        if self._closing is not None:
            return optimizer == self._closing
        return self._follow(optimizer)

    def _search(self, optimizer: int) -> bool:
        if not self._seen:
            self._started = self._clock()
            self._all = self._expected()
        self._seen.append(optimizer)
        seen = len(set(self._seen))
        if seen < self._all and not self._impatient():
            return False
        if seen == 1:
            self._cycle = [optimizer]
            return True
        if period := _period(self._seen):
            self._cycle = self._seen[:period]
            return True
        if len(self._seen) >= 2 * LONGEST_CYCLE:
            counts = Counter(self._seen)
            # Of equally rare ones the last to appear: it ends what the others began.
            self._closing = min(reversed(list(counts)), key=lambda one: counts[one])
            return optimizer == self._closing
        return False

    def _impatient(self) -> bool:
        steps = len(self._seen)
        return steps >= PATIENCE_STEPS or (steps >= LEAST_STEPS and self._clock() - self._started >= PATIENCE_S)

    def _follow(self, optimizer: int) -> bool:
        """Keep in step with the cycle, where some step may have been left out (a scaler that met an overflow)."""
        length = len(self._cycle)
        for ahead in range(length):
            if self._cycle[(self._position + ahead) % length] == optimizer:
                break
        else:
            self._strangers += 1
            if self._strangers >= STRANGERS * length:
                self._restart()
            return False
        self._strangers = 0
        self._position = (self._position + ahead) % length + 1
        ended = self._position == length
        self._position %= length
        return ended


def _period(steps: list[int]) -> int | None:
    """The shortest cycle that the steps have gone through exactly twice or more; None where there is none."""
    count = len(steps)
    for period in range(len(set(steps)), count // 2 + 1):
        if count % period == 0 and all(steps[i] == steps[i - period] for i in range(period, count)):
            return period
    return None
