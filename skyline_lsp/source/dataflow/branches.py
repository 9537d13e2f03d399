"""Branches of a program: followed from the same state, and joined."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from skyline_lsp.source.dataflow.values import Items, Known, Value, join

Cells = dict[Any, Value]
_Changes = dict[tuple[int, Any], tuple[Cells, Any, Value]]

_MISSING = Known("missing")


class Flow(enum.Enum):
    """How a block of statements ends."""

    NEXT = 0
    CONTINUE = 1
    BREAK = 2
    RETURN = 3


class Ended(Exception):
    """The way that is followed raises or exits."""


class OutOfSteps(Exception):
    """The program is too large to be followed to its end."""


class Branches:
    """The state that a program changes, with a trail by which a branch's changes can be taken back."""

    def __init__(self) -> None:
        self._trail: list[tuple[Cells, Any, Value]] = []
        self._forks = 0

    def store(self, cells: Cells, key: Any, value: Value) -> None:
        """Write a cell, so that the end of a branch can take it back."""
        if self._forks:
            self._trail.append((cells, key, cells.get(key, _MISSING)))
        cells[key] = value

    def remove(self, cells: Cells, key: Any) -> None:
        """Take a cell away."""
        if key in cells:
            if self._forks:
                self._trail.append((cells, key, cells[key]))
            del cells[key]

    def fork(self, *branches: Callable[[], Flow]) -> Flow:
        """Follow each branch from the same state, and join what they leave. Raises `Ended` where all of them do."""
        if len(branches) == 1:
            return self._attempt(branches[0])
        self._forks += 1
        start = len(self._trail)
        outcomes: list[tuple[Flow, _Changes]] = []
        try:
            for branch in branches:
                try:
                    flow: Flow | None = branch()
                except Ended:
                    flow = None
                changed = self._take_back(start)
                if flow is not None:
                    outcomes.append((flow, changed))
        finally:
            self._forks -= 1
        if not outcomes:
            raise Ended
        through = [outcome for outcome in outcomes if outcome[0] is Flow.NEXT]
        kept = through or outcomes
        touched = {at: (cells, key) for _, changed in kept for at, (cells, key, _) in changed.items()}
        for at, (cells, key) in touched.items():
            values = [changed[at][2] if at in changed else cells.get(key, _MISSING) for _, changed in kept]
            values = [value for value in values if value is not _MISSING]
            if values:
                self.store(cells, key, _join_cells(values))
        return min((flow for flow, _ in kept), key=lambda flow: flow.value)

    def _attempt(self, branch: Callable[[], Flow]) -> Flow:
        """Follow the one branch there is; its changes are taken back where it raises `Ended`."""
        self._forks += 1
        start = len(self._trail)
        try:
            return branch()
        except Ended:
            self._take_back(start)
            raise
        finally:
            self._forks -= 1
            if not self._forks:
                self._trail.clear()

    def _take_back(self, start: int) -> _Changes:
        """Undo the changes since a point of the trail; what they were."""
        changed: _Changes = {}
        for cells, key, old in reversed(self._trail[start:]):
            at = (id(cells), key)
            if at not in changed:
                changed[at] = (cells, key, cells.get(key, _MISSING))
            if old is _MISSING:
                cells.pop(key, None)
            else:
                cells[key] = old
        del self._trail[start:]
        return changed


def _join_cells(values: list[Value]) -> Value:
    held = [value for value in values if isinstance(value, Items)]
    if held:
        return max(held, key=lambda items: len(items.values))
    return join(values)
