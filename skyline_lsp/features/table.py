"""Small tables that read well both as Markdown source and as plain text.

Some editors render Markdown tables, others show their source, others accept plain text only. So the Markdown form is
padded into columns too, and the plain form has no markup at all.
"""

import re
from dataclasses import dataclass

_SPECIAL = re.compile(r"[\\`*_\[\]|~]|<(?=[A-Za-z/!?])|&(?=[#A-Za-z])|^[ \t]*[#>+-](?= )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell whose Markdown is more than its text, such as a link."""

    plain: str
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under a header. The first column and those without a name are aligned left, the others right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]

    def left(self) -> tuple[bool, ...]:
        """Whether each column is aligned left: names and remarks are, numbers are not."""
        return tuple(i == 0 or not name for i, name in enumerate(self.header))

    def plain(self, indent: str = "") -> str:
        """Columns held apart by two spaces."""
        grid = [[_plain(cell) for cell in row] for row in (self.header, *self.rows)]
        return "\n".join((indent + line).rstrip() for line in _align(grid, self.left(), "  "))

    def markdown(self) -> str:
        """A pipe table."""
        grid = [[_markdown(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(3, *(len(row[i]) for row in grid)) for i in range(len(self.header))]
        left = self.left()
        rule = ["-" * width if left[i] else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
        padded = _align([*grid[:1], rule, *grid[1:]], left, " | ")
        return "\n".join(f"| {line} |" for line in padded)


def used_columns(table: Table) -> Table:
    """The table without the columns, other than the first, in which every cell is empty."""
    keep = [i for i in range(len(table.header)) if i == 0 or any(_plain(row[i]) for row in table.rows)]
    return Table(
        header=tuple(table.header[i] for i in keep),
        rows=tuple(tuple(row[i] for i in keep) for row in table.rows),
    )


def escape(text: str) -> str:
    """Text of the user's, such as a message, so that Markdown shows it as it is."""
    return _SPECIAL.sub(lambda match: match.group()[:-1] + "\\" + match.group()[-1], text)


def code(text: str) -> str:
    """Text as a Markdown code span, whatever it holds."""
    text = " ".join(text.split())
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(cell: str | Cell) -> str:
    return cell.plain if isinstance(cell, Cell) else cell


def _markdown(cell: str | Cell) -> str:
    # A pipe ends a cell even within a code span.
    return cell.markdown.replace("\\|", "|").replace("|", "\\|") if isinstance(cell, Cell) else escape(cell)


def _align(grid: list[list[str]], left: tuple[bool, ...], between: str) -> list[str]:
    widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
    return [
        between.join(
            cell.ljust(width) if left[i] else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in grid
    ]
