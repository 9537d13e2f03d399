"""Where unchanged lines are after an edit.

A patience diff: lines that occur once on both sides are anchors, what lies between them is compared in turn. It stays
near linear where `difflib` alone is quadratic, and it prefers the match a person would draw. Large parts without any
anchor (every line occurs several times) are compared by Myers' greedy algorithm, whose cost grows with the number of
differences.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from skyline_lsp.source.text import split_lines

_SMALL = 250_000
"""Product of two gaps' lengths up to which `difflib` compares them: some tens of milliseconds at most."""

_MOST_DIFFERENCES = 500
"""Lines taken out plus lines put in up to which a large part without anchors is compared: 0.1 s at most."""


def moved_lines(before: str, after: str) -> dict[int, int]:
    """Line number (1-based) in `before` of each unchanged line -> its number in `after`; edited lines are absent."""
    moved: dict[int, int] = {}
    _match(split_lines(before), split_lines(after), 0, 0, moved)
    return moved


def _match(a: Sequence[str], b: Sequence[str], a_at: int, b_at: int, moved: dict[int, int]) -> None:
    """Add the matches between `a` and `b`, which start at the 0-based lines `a_at` and `b_at` of their texts."""
    pending = [(0, len(a), 0, len(b))]
    while pending:
        a_low, a_high, b_low, b_high = pending.pop()
        while a_low < a_high and b_low < b_high and a[a_low] == b[b_low]:
            moved[a_at + a_low + 1] = b_at + b_low + 1
            a_low, b_low = a_low + 1, b_low + 1
        while a_low < a_high and b_low < b_high and a[a_high - 1] == b[b_high - 1]:
            a_high, b_high = a_high - 1, b_high - 1
            moved[a_at + a_high + 1] = b_at + b_high + 1
        if a_low == a_high or b_low == b_high:
            continue
        anchors = _anchors(a, b, a_low, a_high, b_low, b_high)
        if anchors:
            for i, j in anchors:
                moved[a_at + i + 1] = b_at + j + 1
            a_edges = [a_low - 1, *(i for i, _ in anchors), a_high]
            b_edges = [b_low - 1, *(j for _, j in anchors), b_high]
            for k in range(len(anchors) + 1):
                gap = (a_edges[k] + 1, a_edges[k + 1], b_edges[k] + 1, b_edges[k + 1])
                if gap[0] < gap[1] and gap[2] < gap[3]:
                    pending.append(gap)
        elif (a_high - a_low) * (b_high - b_low) <= _SMALL:
            matcher = SequenceMatcher(None, a[a_low:a_high], b[b_low:b_high], autojunk=False)
            for block in matcher.get_matching_blocks():
                for k in range(block.size):
                    moved[a_at + a_low + block.a + k + 1] = b_at + b_low + block.b + k + 1
        else:
            for i, j in _greedy(a[a_low:a_high], b[b_low:b_high]):
                moved[a_at + a_low + i + 1] = b_at + b_low + j + 1


def _anchors(
    a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int
) -> list[tuple[int, int]]:
    """Pairs of lines that occur once on either side, the longest run of them that keeps its order."""
    a_count = Counter(a[a_low:a_high])
    b_count = Counter(b[b_low:b_high])
    where = {b[j]: j for j in range(b_low, b_high) if b_count[b[j]] == 1}
    pairs = [(i, where[a[i]]) for i in range(a_low, a_high) if a_count[a[i]] == 1 and a[i] in where]
    tails: list[int] = []
    tail_at: list[int] = []
    previous: list[int] = []
    for at, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        previous.append(tail_at[length - 1] if length else -1)
        if length == len(tails):
            tails.append(j)
            tail_at.append(at)
        else:
            tails[length] = j
            tail_at[length] = at
    chosen: list[tuple[int, int]] = []
    at = tail_at[-1] if tail_at else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = previous[at]
    return chosen[::-1]


def _greedy(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines on the shortest edit script (E. Myers, 1986); nothing where it is too long."""
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for differences in range(min(len(a) + len(b), _MOST_DIFFERENCES) + 1):
        history.append(dict(furthest))
        for diagonal in range(-differences, differences + 1, 2):
            down = diagonal == -differences or (
                diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            i = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            j = i - diagonal
            while i < len(a) and j < len(b) and a[i] == b[j]:
                i, j = i + 1, j + 1
            furthest[diagonal] = i
            if i >= len(a) and j >= len(b):
                return _retrace(history, len(a), len(b))
    return []


def _retrace(history: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for differences in range(len(history) - 1, -1, -1):
        furthest = history[differences]
        diagonal = i - j
        down = diagonal == -differences or (diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        i_before = furthest[before]
        j_before = i_before - before
        while i > i_before and j > j_before:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        i, j = i_before, j_before
    return pairs
