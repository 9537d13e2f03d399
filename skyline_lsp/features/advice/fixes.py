"""Advice as edits of the source as it is now."""

from collections.abc import Mapping

from skyline_lsp.features.advice.advice import Change
from skyline_lsp.features.advice.switches import is_switched_off, shape_of
from skyline_lsp.source import Edit, SourceText


def edit_of(change: Change, path: str, source: SourceText, line_of: Mapping[int, int] | None) -> Edit | None:
    """The edit that makes a change; None where what it changes is not what was profiled any more.

    `path` is absolute; `line_of` maps the profiled lines to those of `source`, None meaning that nothing moved.
    """
    line = change.line
    if line_of is not None:
        places = [line_of.get(number) for number in range(change.first_line, change.last_line + 1)]
        first = places[0]
        if first is None or places != [first + offset for offset in range(len(places))]:
            return None
        line = first + change.line - change.first_line
    return _edit(path, source, line, change.start_column, change.end_column, change.old, change.new)


def ignoring(code: str, line: int, path: str, source: SourceText) -> Edit | None:
    """The edit that adds the comment which switches a code off; None where no comment can stand at the line's end."""
    if not 1 <= line <= len(source.lines):
        return None
    text = source.lines[line - 1]
    column = len(text.rstrip())
    added = f"  # skyline: ignore[{code}]"
    at = source.index(line, column)
    edited = source.text[:at] + added + source.text[at:]
    # Within a string that goes on, or behind a backslash, it would be no comment.
    shape = shape_of(source.text)
    if shape is None or shape_of(edited) != shape or not is_switched_off(edited, line, code):
        return None
    return _edit(path, source, line, column, column, "", added)


def _edit(path: str, source: SourceText, line: int, start: int, end: int, old: str, new: str) -> Edit | None:
    if source.lines[line - 1][start:end] != old:
        return None
    return Edit(
        path=path,
        start=source.byte_offset(line, start),
        end=source.byte_offset(line, end),
        old=old,
        new=new,
        line=line,
        start_column=start,
        end_column=end,
    )
