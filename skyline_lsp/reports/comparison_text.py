"""A comparison for people, as plain text, and for programs, as JSON."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from skyline_lsp.features import Table
from skyline_lsp.features.units import count, format_bytes, format_change, format_ms, format_percent, format_throughput
from skyline_lsp.protocol import to_json
from skyline_lsp.reports.comparison import Change, Comparison, Fate, LineChange, Verdict
from skyline_lsp.reports.noise import Ratio

SCHEMA = 1
"""Version of the JSON form."""

_HEAD = re.compile(rb'\{\s*"comparison":\s*\d+,')
_WIDEST_SOURCE = 60


def comparison_text(comparison: Comparison, before: str, after: str, most_lines: int = 12) -> str:
    """The comparison as tables; `before` and `after` are what the two are called."""
    parts = [_whole(comparison, before, after)]
    parts += [table.plain() for table in _classes(comparison) if table.rows]
    parts += _lines(comparison, most_lines)
    parts += [f"note: {note}" for note in comparison.notes]
    return "\n\n".join(parts) + "\n"


def comparison_json(comparison: Comparison) -> str:
    """The comparison as JSON, in ASCII; null stands for an endless end of an interval."""
    value = {"comparison": SCHEMA, **_finite(to_json(comparison))}
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def recognise_comparison(head: bytes) -> bool:
    """Whether a file that begins so is a comparison in JSON."""
    return _HEAD.match(head) is not None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _whole(comparison: Comparison, before: str, after: str) -> str:
    rows = (
        (comparison.run_time_ms, format_ms),
        (comparison.samples_per_second, format_throughput),
        (comparison.peak_bytes, format_bytes),
    )
    return Table(
        header=("", before, after, "change", "95 % interval", ""),
        rows=tuple(
            (*_cells(change, shown_as), _interval(change.ratio), change.verdict.value) for change, shown_as in rows
        ),
    ).plain()


def _classes(comparison: Comparison) -> Iterator[Table]:
    for title, changes, shown_as in (
        ("phase", comparison.phases, format_ms),
        ("memory at the peak", comparison.memory, format_bytes),
    ):
        yield Table(
            header=(title, "before", "after", "change", ""),
            rows=tuple((*_cells(one, shown_as), one.verdict.value) for one in changes if one.before or one.after),
        )


def _lines(comparison: Comparison, most: int) -> Iterator[str]:
    changed = [line for line in comparison.lines if line.change.verdict is not Verdict.NO_DIFFERENCE]
    if not changed:
        yield f"No difference was seen in any of {count(len(comparison.lines), 'line')}."
        return
    rows = tuple((*_cells(line.change, format_ms), line.change.verdict.value, _remark(line)) for line in changed[:most])
    yield Table(header=("line itself", "before", "after", "change", "", ""), rows=rows).plain()
    rest = len(comparison.lines) - len(changed)
    more = f"{len(changed) - most} more changed; " if len(changed) > most else ""
    yield f"{more}no difference was seen in {count(rest, 'other line')}."


def _remark(line: LineChange) -> str:
    source = " ".join(line.source.split())
    source = source if len(source) <= _WIDEST_SOURCE else source[: _WIDEST_SOURCE - 3] + "..."
    source = "".join(character if character.isprintable() else "\ufffd" for character in source)
    if line.line_before is None and line.line_after is None:
        return "all its lines: the text of one version is not known"
    moved = line.line_before is not None and line.line_after is not None and line.line_before != line.line_after
    words = ([] if line.fate is Fate.KEPT else [line.fate.value]) + ([f"was line {line.line_before}"] if moved else [])
    return f"{source}  ({', '.join(words)})" if words else source


def _cells(change: Change, shown_as: Callable[[float], str]) -> tuple[str, str, str, str]:
    # The interval's own estimate, which for the same medians is not quite their quotient.
    told = format_change(1, change.ratio.value) if change.ratio else format_change(change.before, change.after)
    if not change.before and change.after:
        told = "new"
    return (change.name, shown_as(change.before), shown_as(change.after), told)


def _interval(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if math.isinf(ratio.noise):
        return "not known"
    return f"{_signed(ratio.low)} to {_signed(ratio.high)}"


def _signed(ratio: float) -> str:
    text = format_percent(100 * (ratio - 1))
    return f"+{text}" if ratio > 1 else text
