"""What the command line draws: annotated source, failures, and progress. Takes plain values; prints through rich.

Nothing of a program's text reaches the terminal unescaped, and columns are counted in cells, so that wide characters
keep their places.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

CONTEXT_LINES = 2
"""Lines shown around an annotated one."""

WIDEST_CODE = 72
"""Where lines are not cut: cells after which a long line of code no longer moves its neighbours' notes."""

NARROWEST_CODE = 24
"""Cells that code keeps in a narrow terminal, whatever its notes take."""

# C0, C1 and DEL steer the terminal; the bidirectional controls would show code in another order than it runs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What stands at the end of a line."""

    text: str
    share: float | None = None
    """Part of the whole that the line costs by itself, 0 to 1: decides the colour."""


class ProgressLine(Protocol):
    """Where a command reports how far it is, and what the user's program wrote."""

    def update(self, message: str, fraction: float | None = None) -> None:
        """Show `message`; `fraction` is from 0 to 1, or None where not known."""

    def output(self, text: str) -> None:
        """Pass on what the user's program wrote."""


def console_for(stream: IO[str]) -> Console:
    """A console that colours a terminal only, honours NO_COLOR, and never fails on a character it cannot encode."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return Console(file=stream, highlight=False, markup=False, emoji=False, legacy_windows=False)


def print_lines(console: Console, lines: Sequence[Text]) -> None:
    """Print each line as one line, however wide."""
    for line in lines:
        console.print(line, soft_wrap=True)


def printable(text: str, tab_size: int = 4) -> str:
    """One line of source as it can be shown: tabs as spaces, control characters as a replacement character."""
    pieces = _UNPRINTABLE.sub("\ufffd", text).split("\t")
    shown = pieces[0]
    for piece in pieces[1:]:
        shown += " " * (tab_size - cell_len(shown) % tab_size) + piece
    return shown


def annotated_source(
    lines: Sequence[str],
    notes: Mapping[int, Note],
    above: Mapping[int, Sequence[str]] | None = None,
    *,
    title: str = "",
    context: int | None = CONTEXT_LINES,
    width: int | None = None,
    colour: bool = False,
) -> list[Text]:
    """Source with notes at the ends of its lines (1-based) and remarks above them; `title` stands above the notes.

    `context` lines are kept around each annotated line, all of them with None. Lines are cut to `width` cells, the
    notes last; None cuts nothing.
    """
    above = above or {}
    shown = [printable(line) for line in lines]
    kept = _kept_lines(len(shown), set(notes) | set(above), context)
    if not kept:
        return []
    gutter = len(str(kept[-1]))
    code_width = _code_width([cell_len(shown[line - 1]) for line in kept if line in notes], notes, width, gutter)
    highlighted = _highlight(shown) if colour else [Text(line) for line in shown]

    drawn: list[Text] = []
    if title:
        drawn.append(_cut(Text(" " * (gutter + 3 + code_width + 2) + title, style="dim"), width))
    previous = kept[0] - 1
    for line in kept:
        if line != previous + 1:
            drawn.append(Text(" " * gutter + " :", style="dim"))
        previous = line
        code = highlighted[line - 1]
        indent = " " * (len(code.plain) - len(code.plain.lstrip()))
        for remark in above.get(line, ()):
            remark_row = (
                Text().append(" " * gutter + " | ", style="dim").append(indent + printable(remark), style="italic")
            )
            drawn.append(_cut(remark_row, width))
        note = notes.get(line)
        row = Text().append(f"{line:>{gutter}} | ", style="dim")
        row.append_text(code if note is None else _fitted(code, code_width, hard=width is not None))
        if note is not None:
            row.append("  ").append(note.text, style=_heat(note.share))
        drawn.append(_cut(row, width))
    return drawn


def failure_lines(message: str, frames: Sequence[tuple[str, int, str, str]], *, path: str) -> list[Text]:
    """A failure as compilers write it, so that editors and terminals can jump to it.

    `frames` are (path, line, function, source line), outermost first; the last is where it happened. `path` is the
    program's, for a failure without frames.
    """
    where = f"{frames[-1][0]}:{frames[-1][1]}" if frames else path
    head, *more = message.splitlines() or [""]
    lines = [Text().append(f"{where}: ", style="bold").append("error: ", style="bold red").append(printable(head))]
    lines += [Text("  " + printable(line)) for line in more]
    for frame_path, line, function, source in frames:
        lines.append(Text(f"  {frame_path}:{line} in {function}", style="dim"))
        if source.strip():
            lines.append(Text(f"    {line} | {printable(source.strip())}"))
    return lines


@contextmanager
def progress_line(console: Console, *, verbose: bool) -> Iterator[ProgressLine]:
    """Show progress: as one moving line on a terminal, as lines with `verbose`, not at all otherwise."""
    if not console.is_terminal:
        yield _PlainProgress(console, verbose=verbose)
        return
    bar = Progress(
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        console=console,
        transient=True,
    )
    with bar:
        line = _LiveProgress(bar)
        yield line
        line.flush()


class _PlainProgress:
    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._last = ""

    def update(self, message: str, fraction: float | None = None) -> None:
        if self._verbose and message != self._last:
            self._last = message
            self._console.print(Text(message), soft_wrap=True)

    def output(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


class _LiveProgress:
    """Prints the program's output above the moving line, a whole line at a time: half a line would be overdrawn."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None)
        self._half_line = ""

    def update(self, message: str, fraction: float | None = None) -> None:
        self._bar.update(self._task, description=message, total=None if fraction is None else 1.0, completed=fraction)

    def output(self, text: str) -> None:
        *whole, self._half_line = (self._half_line + text).split("\n")
        for line in whole:
            self._print(line)

    def flush(self) -> None:
        if self._half_line:
            self._print(self._half_line)
            self._half_line = ""

    def _print(self, line: str) -> None:
        # What a carriage return would overwrite is left out, as a terminal shows it.
        self._bar.console.print(Text(printable(line.rstrip("\r").rsplit("\r", 1)[-1])), soft_wrap=True)


def _kept_lines(count: int, marked: set[int], context: int | None) -> list[int]:
    if context is None:
        return list(range(1, count + 1))
    kept = {line for mark in marked for line in range(mark - context, mark + context + 1)}
    return sorted(line for line in kept if 1 <= line <= count)


def _code_width(lengths: Sequence[int], notes: Mapping[int, Note], width: int | None, gutter: int) -> int:
    longest = max(lengths, default=0)
    if width is None:
        return min(longest, WIDEST_CODE)
    room = width - gutter - 3 - 2 - max((cell_len(note.text) for note in notes.values()), default=0)
    return min(longest, max(room, NARROWEST_CODE))


def _fitted(code: Text, width: int, *, hard: bool) -> Text:
    """`code` filled up to `width` cells; cut to it, with a mark, where `hard`."""
    length = cell_len(code.plain)
    if length <= width:
        return code + Text(" " * (width - length))
    return _cut(code, width) if hard else code


def _cut(line: Text, width: int | None) -> Text:
    if width is None or cell_len(line.plain) <= width:
        return line
    if width <= 3:
        return Text(set_cell_size(line.plain, width))
    kept = chop_cells(line.plain, width - 3)[0]
    cut = line[: len(kept)]
    cut.append("..." + " " * (width - 3 - cell_len(kept)), style="dim")
    return cut


def _highlight(lines: Sequence[str]) -> list[Text]:
    from rich.syntax import Syntax  # only for colours, and slow to import

    text = Syntax("", "python", theme="ansi_dark").highlight("\n".join(lines))
    highlighted = list(text.split("\n", allow_blank=True))
    return highlighted[: len(lines)]


def _heat(share: float | None) -> str:
    if share is None or share < 0.01:
        return "cyan"
    if share < 0.05:
        return "yellow"
    return "bold red"


def standard_consoles() -> tuple[Console, Console]:
    """Consoles for standard output and standard error."""
    return console_for(sys.stdout), console_for(sys.stderr)
