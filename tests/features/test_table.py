"""Tables in both forms."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.features.table import Cell, Table, code, escape, used_columns

TABLE = Table(header=("calls", "time", "saved"), rows=(("a.py:1", "12 ms", ""), ("b.py:20", "3 ms", "")))


def test_plain_columns_are_aligned() -> None:
    """Plain text has names on the left, numbers on the right, and no markup."""
    assert TABLE.plain() == "calls     time  saved\na.py:1   12 ms\nb.py:20   3 ms"


def test_markdown_columns_are_aligned() -> None:
    """Markdown reads as a table even where its source is shown."""
    assert TABLE.markdown() == (
        "| calls   |  time | saved |\n"
        "| ------- | ----: | ----: |\n"
        "| a.py:1  | 12 ms |       |\n"
        "| b.py:20 |  3 ms |       |"
    )


def test_empty_columns_can_go() -> None:
    """A column in which no row has anything is not shown."""
    assert used_columns(TABLE).header == ("calls", "time")


def test_a_pipe_stays_in_its_cell() -> None:
    """What the user wrote can't break a row into more cells."""
    row = (Cell(plain="a|b", markdown=code("a|b")), "c|d")
    table = Table(header=("x", "y"), rows=(row,))
    assert table.markdown().splitlines()[2] == "| `a\\|b` | c\\|d |"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b *c* [d]", "a\\_b \\*c\\* \\[d\\]"),
        ("<0.1 %", "<0.1 %"),
        ("<script>", "\\<script>"),
        ("# no title", "\\# no title"),
        ("a - b", "a - b"),
        ("- no item", "\\- no item"),
    ],
)
def test_escape(text: str, shown: str) -> None:
    """Markdown shows the user's text as it is, and numbers need no escapes."""
    assert escape(text) == shown


@given(st.text(st.characters(codec="ascii")))
def test_code_span_holds_its_text(text: str) -> None:
    """A code span ends where it should, whatever backticks the text has."""
    span = code(text)
    if not span:
        assert not text.strip()
        return
    fence = len(span) - len(span.lstrip("`"))
    inner = span[fence:-fence]
    assert span == "`" * fence + inner + "`" * fence
    assert max((len(run) for run in re.findall("`+", inner)), default=0) < fence
    assert inner.split() == text.split()
