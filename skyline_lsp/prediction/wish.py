"""What a user wishes of a batch size, from words to the retuning that answers it.

Depends on retuning.
"""

import enum
import re
from dataclasses import dataclass

from skyline_lsp.prediction.devices import parse_size
from skyline_lsp.prediction.model import Model
from skyline_lsp.prediction.refusal import Refusal
from skyline_lsp.prediction.retuning import Retune, for_memory, for_throughput, knee, largest_that_fits


class Goal(enum.Enum):
    """The kinds of wishes, by their names in commands."""

    THROUGHPUT = "throughput"
    """At least so many samples/s."""
    MEMORY = "memory"
    """A peak within so many bytes, or a share of the device's memory."""
    MAX_THROUGHPUT = "maxThroughput"
    """95 % of the best throughput within reach, at the smallest batch size."""
    FIT = "fit"
    """The largest batch size that fits, with a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A goal and, where the goal needs one, its amount."""

    goal: Goal
    amount: float | None = None
    """samples/s with THROUGHPUT; bytes, or a share from 0 to 1, with MEMORY."""


_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def parse_wish(goal: str, value: str | float | None) -> Wish | Refusal:
    """A wish from a goal's name and its value: 900, "6GiB", "80%"."""
    try:
        kind = Goal(goal)
    except ValueError:
        names = ", ".join(one.value for one in Goal)
        return Refusal(reason=f"{goal!r} is no goal; choose one of {names}.")
    if kind in (Goal.MAX_THROUGHPUT, Goal.FIT):
        return Wish(goal=kind)
    amount = _throughput(value) if kind is Goal.THROUGHPUT else _memory(value)
    if amount is None:
        wanted = "samples/s, such as 900" if kind is Goal.THROUGHPUT else 'a size or a share, such as "6GiB" or "80%"'
        return Refusal(reason=f"{value!r} can't be wished for; give {wanted}.")
    return Wish(goal=kind, amount=amount)


def fulfil(model: Model, wish: Wish, memory_bytes: int | None, maximum: int | None = None) -> Retune | Refusal:
    """The batch size that fulfils a wish, up to `maximum`, on a device with `memory_bytes` (None: not known)."""
    if wish.goal is Goal.THROUGHPUT:
        return for_throughput(model, wish.amount or 0.0, memory_bytes, maximum)
    if wish.goal is Goal.MAX_THROUGHPUT:
        return knee(model, memory_bytes, maximum=maximum)
    if wish.goal is Goal.MEMORY and wish.amount is not None and wish.amount > 1:
        return for_memory(model, int(wish.amount), maximum)
    if memory_bytes is None:
        return Refusal(reason="How much memory the device has is not known; name a size, such as 6GiB.")
    if wish.goal is Goal.MEMORY:
        return for_memory(model, int((wish.amount or 0.0) * memory_bytes), maximum)
    return largest_that_fits(model, memory_bytes, maximum=maximum)


def _throughput(value: str | float | None) -> float | None:
    try:
        amount = float(value) if value is not None else 0.0
    except ValueError:
        return None
    return amount if 0 < amount < float("inf") else None


def _memory(value: str | float | None) -> float | None:
    if isinstance(value, (int, float)):
        return float(value) if value > 1 else None
    if value is None:
        return None
    if share := _SHARE.fullmatch(value):
        return float(share[1]) / 100 if 0 < float(share[1]) <= 100 else None
    return parse_size(value)
