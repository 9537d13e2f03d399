"""Positions in source text: encodings, byte order marks, line ends, UTF-16."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.source.text import SourceText, decode, decode_as, split_lines

_ENCODINGS = ["utf-8", "latin-1", "cp1252", "shift_jis", "euc_jp", "cp1251", "gb18030", "iso2022_jp", "koi8-r"]


def check_positions(source: SourceText, data: bytes) -> None:
    """Every code point's position, and its offset in the bytes, lead back to it."""
    for index, character in enumerate(source.text):
        if character in "\r\n":
            continue
        line, column = source.position(index)
        assert source.index(line, column) == index
        assert source.lines[line - 1][column] == character
        offset = source.byte_offset(line, column)
        assert source.byte_position(offset) == (line, column)
        assert source.column_of_utf16(line, source.utf16_column(line, column)) == column
        assert source.column_of_utf8(line, source.utf8_column(line, column)) == column
    assert len(data) >= len(source.bom)


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_offsets_are_of_the_bytes_in_the_file_whatever_their_encoding(encoding: str) -> None:
    """The digits after characters of several bytes are found where they lie in the file."""
    letters = {"latin-1": "é", "cp1252": "€é", "cp1251": "ж", "koi8-r": "ж"}.get(encoding, "漢字")
    data = f"# -*- coding: {encoding} -*-\ns = '{letters}'; batch = 64\n".encode(encoding)
    source = decode(data)
    assert source.problem is None
    column = source.lines[1].index("64")
    offset = source.byte_offset(2, column)
    assert data[offset : offset + 2].decode(encoding) == "64"
    check_positions(source, data)


def test_a_byte_order_mark_counts_in_bytes_and_not_in_columns() -> None:
    """The first character of a file with a mark is at column 0, byte 3."""
    source = decode(b"\xef\xbb\xbfbatch = 64\n")
    assert source.lines[0] == "batch = 64"
    assert source.byte_offset(1, 8) == 11
    assert source.byte_position(11) == (1, 8)


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_lines_end_where_pythons_tokenizer_ends_them(character: str) -> None:
    """Form feeds and Unicode separators stay inside their line, as in `ast`."""
    text = f"a = 'x{character}y'\nb = 2\n" if character != "\f" else "a = 1\f\nb = 2\n"
    source = decode(text.encode())
    assert len(source.lines) == 3
    assert ast.parse(text).body[1].lineno == 2


def test_all_three_line_ends_end_lines() -> None:
    """CR LF is one end, CR alone is one too."""
    assert split_lines("a\r\nb\rc\nd") == ("a", "b", "c", "d")
    source = decode(b"a\r\nb\rc\nd")
    assert [source.byte_offset(line, 0) for line in (1, 2, 3, 4)] == [0, 3, 5, 7]


def test_utf16_columns_count_astral_characters_twice() -> None:
    """What follows an emoji is two units further right."""
    source = decode("s = '😀'; b = 64\n".encode())
    column = source.lines[0].index("64")
    assert source.utf16_column(1, column) == column + 1
    assert source.column_of_utf16(1, column + 1) == column
    assert source.column_of_utf16(1, source.utf16_column(1, 5) + 1) == 5


def test_undecodable_bytes_keep_their_offsets() -> None:
    """A file that is not what it says can still be pointed into, and says what is wrong."""
    source = decode(b"x = '\xff\xfe'\nbatch = 64\n")
    assert source.problem is not None
    assert source.byte_offset(2, 8) == 17
    assert decode(b"# coding: no-such-codec\nx = 1\n").problem is not None


def test_columns_past_the_end_mean_the_end() -> None:
    """A stale position never raises."""
    source = decode(b"ab\ncd")
    assert source.index(1, 99) == 2
    assert source.byte_offset(9, 99) == 5
    assert source.byte_position(99) == (2, 2)


def test_configuration_files_may_be_utf16() -> None:
    """A YAML file with a UTF-16 mark has its offsets in its own bytes."""
    data = "batch: 64\n".encode("utf-16")
    source = decode_as(data)
    offset = source.byte_offset(1, 7)
    assert data[offset : offset + 4] == "64".encode("utf-16-le")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_has_consistent_positions(text: str) -> None:
    """Positions, offsets and both column counts agree for whatever Unicode holds."""
    data = text.encode()
    check_positions(decode_as(data), data)
