"""Open documents stay what the editor shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.server.documents import Change, Document, Documents, apply_change
from skyline_lsp.server.positions import Encoding, code_points_of, line_starts, split_lines, units_of

TEXT = st.text(st.sampled_from("ab\u00e9\U0001f600\n\r\f\u2028\t "), max_size=30)


def check_change(text: str, change: Change, expected: str, encoding: Encoding = Encoding.UTF16) -> None:
    assert apply_change(text, change, encoding) == expected


def test_an_edit_after_a_form_feed_lands_on_its_line() -> None:
    """Form feeds, vertical tabs and U+2028 end no line."""
    text = "a\n\f\nb = '\u2028'\nc = 1\n"
    check_change(text, Change(start=(3, 4), end=(3, 5), text="22"), "a\n\f\nb = '\u2028'\nc = 22\n")


def test_lone_carriage_returns_end_lines() -> None:
    """LSP has three line ends."""
    check_change("a\rb\r\nc", Change(start=(1, 0), end=(2, 0), text=""), "a\rc")


@pytest.mark.parametrize(("encoding", "column"), [(Encoding.UTF8, 8), (Encoding.UTF16, 6), (Encoding.UTF32, 5)])
def test_columns_count_what_was_negotiated(encoding: Encoding, column: int) -> None:
    """An astral character is four, two or one."""
    check_change("s='\U0001f600'", Change(start=(0, column - 1), end=(0, column), text="!"), "s='\U0001f600!", encoding)


def test_positions_past_the_end_are_clamped() -> None:
    """A column past a line's end is its end, a line past the last is the text's end."""
    check_change("a\nb", Change(start=(0, 99), end=(0, 99), text="!"), "a!\nb")
    check_change("a\n", Change(start=(7, 0), end=(9, 0), text="!"), "a\n!")


@given(before=TEXT, after=TEXT, data=st.data(), encoding=st.sampled_from(Encoding))
def test_any_edit_gives_the_editors_text(before: str, after: str, data: st.DataObject, encoding: Encoding) -> None:
    """An edit between two offsets, sent as positions, replaces what lies between them."""
    bounds = [i for i in range(len(before) + 1) if not (0 < i < len(before) and before[i - 1 : i + 1] == "\r\n")]
    start, end = sorted((data.draw(st.sampled_from(bounds)), data.draw(st.sampled_from(bounds))))

    def position(offset: int) -> tuple[int, int]:
        starts = line_starts(before)
        line = max(i for i, begin in enumerate(starts) if begin <= offset)
        return line, units_of(before[starts[line] : offset], encoding)

    change = Change(start=position(start), end=position(end), text=after)
    assert apply_change(before, change, encoding) == before[:start] + after + before[end:]


@given(text=TEXT, encoding=st.sampled_from(Encoding))
def test_columns_convert_back_and_forth(text: str, encoding: Encoding) -> None:
    """Every code point's column survives the way to the client and back."""
    for line in split_lines(text):
        for column in range(len(line) + 1):
            assert code_points_of(line, units_of(line[:column], encoding), encoding) == column


def test_documents_are_found_by_any_spelling_of_their_path(tmp_path) -> None:
    """A link to a file is the file."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    documents = Documents()
    document = Document(uri="file:///x", path=str(tmp_path / "real" / "a.py"), version=1, text="")
    documents.open(document)
    found = documents.at_path(str(tmp_path / "link" / "a.py"))
    assert found is not None
    assert found.uri == document.uri
    documents.close("file:///x")
    assert documents.at_path(str(tmp_path / "real" / "a.py")) is None


def test_a_change_of_an_unknown_document_is_no_fault() -> None:
    """A client's slip does not end the server."""
    assert Documents().change("file:///nowhere", 2, ["text"], Encoding.UTF16) is None
