"""Columns and offsets: from the units a client counts in to code points, and back.

LSP counts a column in UTF-16 code units unless client and server agree on UTF-8 or UTF-32; everything behind the
conversion counts code points. Lines end at `\\n`, `\\r\\n` and `\\r` only, as LSP has it: `str.splitlines` also ends
them at form feeds and U+2028, which Python source may hold.
"""

import enum
import re

_LINE_END = re.compile(r"\r\n|\n|\r")


class Encoding(enum.Enum):
    """What a client's columns count."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def units_of(text: str, encoding: Encoding) -> int:
    """Length of `text` in the units of `encoding`."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def code_points_of(line: str, units: int, encoding: Encoding) -> int:
    """Column in code points of a column in units; past the end it is the end, inside a character its start."""
    if encoding is Encoding.UTF32 or line.isascii():
        return max(0, min(units, len(line)))
    counted = 0
    for index, character in enumerate(line):
        counted += units_of(character, encoding)
        if counted > units:
            return index
    return len(line)


def line_starts(text: str) -> list[int]:
    """Offset of the first character of each line; a text that ends with a line end has an empty last line."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


def split_lines(text: str) -> list[str]:
    """The lines of `text` without their ends."""
    return _LINE_END.split(text)


def offset_of(text: str, starts: list[int], line: int, units: int, encoding: Encoding) -> int:
    """Offset in code points of a client's 0-based position; a position past a line's end means the line's end."""
    if line >= len(starts):
        return len(text)
    start = starts[line]
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    return start + code_points_of(text[start:end].rstrip("\r\n"), units, encoding)
