"""Changing a batch size: the digits of its literal and nothing else.

Edits speak of bytes of the file, so that what is not replaced can't change, whatever its encoding or line ends.
"""

import difflib
import re
from dataclasses import dataclass

from skyline_lsp.source.site import Site
from skyline_lsp.source.text import decode, decode_as


class EditError(Exception):
    """An edit that can't be made; the message says why and what to do."""


class EditConflict(EditError):
    """The text to replace is not there any more: the file changed meanwhile."""


class EditRefused(EditError):
    """The site can't be made to give the batch size asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement in one file."""

    path: str
    """Absolute."""
    start: int
    """Byte offset in the file's bytes."""
    end: int
    old: str
    """What stands there."""
    new: str
    line: int
    """1-based."""
    start_column: int
    """0-based, in code points; the replaced text lies on one line."""
    end_column: int


def set_batch_size(site: Site, value: int) -> Edit:
    """The edit after which `site` gives batches of `value` samples.

    Raises `EditRefused` where the site is not editable or no literal there gives exactly `value`.
    """
    if not site.editable:
        raise EditRefused(site.reason)
    if value < 1:
        raise EditRefused(f"a batch size is at least 1, not {value}")
    if value * site.divisor % site.multiplier:
        near = max(1, round(value * site.divisor / site.multiplier)) * site.multiplier // site.divisor
        raise EditRefused(
            f"`{site.text}` is multiplied by {site.multiplier}, so a batch of {value} can't be had there; {near} can"
        )
    literal = value * site.divisor // site.multiplier
    return Edit(
        path=site.path,
        start=site.start,
        end=site.end,
        old=site.text,
        new=restyle(site.text, literal),
        line=site.line,
        start_column=site.column - 1,
        end_column=site.column - 1 + len(site.text),
    )


def apply(data: bytes, edit: Edit) -> bytes:
    """The file's bytes after `edit`. Raises `EditConflict` where `edit.old` does not stand at `edit.start`."""
    text = decode(data)
    if data[edit.start : edit.end] != edit.old.encode(text.encoding, "replace"):
        # A configuration file in UTF-16 has no coding line for `decode` to find.
        text = decode_as(data)
        if data[edit.start : edit.end] != edit.old.encode(text.encoding, "replace"):
            raise EditConflict(f"`{edit.old}` does not stand at line {edit.line} of {edit.path} any more")
    return data[: edit.start] + edit.new.encode(text.encoding) + data[edit.end :]


def unified_diff(path_shown: str, before: bytes, after: bytes) -> str:
    """The change from `before` to `after` as a patch, with LF line ends of its own."""
    old = _lines_with_ends(decode(before).text)
    new = _lines_with_ends(decode(after).text)
    out: list[str] = []
    for line in difflib.unified_diff(old, new, f"a/{path_shown}", f"b/{path_shown}"):
        out.append(line if line.endswith("\n") else line + "\n")
        if not line.endswith(("\n", "\r")) and not line.startswith(("---", "+++", "@@")):
            out.append("\\ No newline at end of file\n")
    return "".join(out)


def restyle(old: str, value: int) -> str:
    """`value` written as `old` is: its base, its letter case, its underscores."""
    match = re.fullmatch(r"(0[xX]|0[oO]|0[bB])?([0-9a-fA-F_]+)", old)
    if match is None:
        return str(value)
    prefix, digits = match.group(1) or "", match.group(2)
    base = {"x": "x", "o": "o", "b": "b"}.get(prefix[-1:].lower(), "d")
    new = format(value, base)
    if base == "x" and any(c in "ABCDEF" for c in digits):
        new = new.upper()
    group = len(digits) - digits.rfind("_") - 1 if "_" in digits.strip("_") else 0
    if group > 1:
        head = len(new) % group or group
        new = "_".join([new[:head], *(new[i : i + group] for i in range(head, len(new), group))])
        if prefix and digits.startswith("_"):
            prefix += "_"
    return prefix + new


def _lines_with_ends(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)
