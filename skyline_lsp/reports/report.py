"""A profile together with the source that it was measured on: what every report is made from, and its JSON form.

The JSON form is that of `skyline-lsp profile --json`, with the text of the files under one more key, `sources`.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skyline_lsp.protocol import SCHEMA, DecodeError, Profile, from_json, to_json
from skyline_lsp.source.text import split_lines

_SOURCES = "sources"
_HEAD = re.compile(rb'\{\s*"schema":\s*\d+,\s*"device":')

Recognise = Callable[[bytes], bool]
"""Whether a file that begins so is a report of ours."""


class NotAReport(ValueError):
    """The text is not a report of ours, or one of another version; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was measured, and on what."""

    profile: Profile
    sources: Mapping[str, str] = field(default_factory=dict)
    """File as the profile names it -> its text when it was profiled; files whose text is not known are absent."""

    def source_line(self, path: str, line: int) -> str:
        """A line of the source without the space around it; empty where it is not known."""
        lines = _lines(self.sources[path]) if path in self.sources else ()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def to_json_text(report: Report) -> str:
    """The report as JSON, in ASCII."""
    return json.dumps({**to_json(report.profile), _SOURCES: dict(report.sources)}, indent=2) + "\n"


def recognise_json(head: bytes) -> bool:
    """Whether a file that begins so is a report in JSON."""
    return _HEAD.match(head) is not None


def read_json(text: str | bytes) -> Report:
    """The report that a JSON text holds, with or without sources. Raises `NotAReport`."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotAReport(f"it is not JSON: {error}") from error
    if not isinstance(value, dict) or "workload" not in value or "iteration" not in value:
        raise NotAReport("it is not a report of skyline-lsp")
    if value.get("schema") != SCHEMA:
        raise NotAReport(f"it has schema {value.get('schema')!r}; this version of skyline-lsp reads {SCHEMA}")
    try:
        profile = from_json(Profile, value)
        sources = from_json(_Sources, {_SOURCES: value.get(_SOURCES, {})}).sources
    except DecodeError as error:
        raise NotAReport(f"it is not a whole report: {error}") from error
    return Report(profile=_checked(profile), sources=sources)


@functools.lru_cache(maxsize=256)
def _lines(text: str) -> Sequence[str]:
    return split_lines(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    sources: dict[str, str]


def _checked(profile: Profile) -> Profile:
    """What is read from a file may name nodes that are not there. Raises `NotAReport`."""
    for at, node in enumerate(profile.tree):
        if not -1 <= node.parent < at:
            raise NotAReport(f"it is not a whole report: tree[{at}].parent is {node.parent}")
    for at, segment in enumerate(profile.segments):
        if not -1 <= segment.node < len(profile.tree):
            raise NotAReport(f"it is not a whole report: segments[{at}].node is {segment.node}")
    return profile
