"""The answer to a question that can't be answered."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No answer is known."""

    reason: str
    """For the user: why, and what to do."""
