"""Edits of a batch size: the digits change, and nothing else, whatever surrounds them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.source import (
    Edit,
    EditConflict,
    EditRefused,
    Site,
    SiteKind,
    apply,
    find_sites,
    set_batch_size,
    unified_diff,
)
from skyline_lsp.source.edits import restyle
from tests.source.projects import ROOT, MemoryFiles

_ENTRY = f"{ROOT}/train.py"
_STEP = "for x in DataLoader(data, batch_size={name}):{end}    model(x).sum().backward(){end}"


def find_best(data: bytes) -> Site:
    """The best site of a one-file program."""
    return find_sites(MemoryFiles(files={_ENTRY: data}), _ENTRY)[0]


def check_edit(data: bytes, value: int, expected: bytes) -> None:
    """Setting the best site's batch size gives exactly `expected`, and finding again gives `value`."""
    site = find_best(data)
    edit = set_batch_size(site, value)
    assert apply(data, edit) == expected
    assert find_best(expected).batch_size == value


def program(line: str, name: str = "batch_size", end: str = "\n", head: str = "") -> str:
    """A program whose batch size is bound by `line`."""
    return f"{head}from torch.utils.data import DataLoader{end}{line}{end}{_STEP.format(name=name, end=end)}"


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("batch_size = 64  # fits", 128, "batch_size = 128  # fits"),
        ("batch_size: 'int' = 64; x = 64", 8, "batch_size: 'int' = 8; x = 64"),
        ("batch_size = 1_024", 2048, "batch_size = 2_048"),
        ("batch_size = 1_024", 512, "batch_size = 512"),
        ("batch_size = 0x40", 255, "batch_size = 0xff"),
        ("batch_size = 0X4F", 255, "batch_size = 0XFF"),
        ("batch_size = 0o100", 8, "batch_size = 0o10"),
        ("batch_size = 0b1_0000", 5, "batch_size = 0b101"),
        ("batch_size = int('64')", 9, "batch_size = int('9')"),
        ("batch_size = (\t64 ,)[0]", 7, "batch_size = (\t7 ,)[0]"),
        ("s = '😀𝄞'; batch_size = 64", 7, "s = '😀𝄞'; batch_size = 7"),
        ("batch_size = 4 * 8", 64, "batch_size = 4 * 16"),
        ("batch_size = 64 // 4", 32, "batch_size = 128 // 4"),
        ("epochs, batch_size = 64, 64", 65, "epochs, batch_size = 64, 65"),
    ],
)
def test_styles_are_kept(before: str, value: int, after: str) -> None:
    """Underscores, bases, quotes, comments, tabs, astral characters and factors."""
    check_edit(program(before).encode(), value, program(after).encode())


def test_windows_line_ends_marks_and_missing_last_line_end_are_kept() -> None:
    """CR LF, a byte order mark, a form feed, and a file that ends in the middle of a line."""
    before = program("batch_size = 64", end="\r\n", head="\f").rstrip("\r\n")
    after = before.replace("64", "256")
    check_edit(b"\xef\xbb\xbf" + before.encode(), 256, b"\xef\xbb\xbf" + after.encode())


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "shift_jis", "euc_jp", "cp1251", "gb18030"])
def test_other_encodings_are_kept(encoding: str) -> None:
    """Characters of the file's own encoding before the digits, and the coding line."""
    letters = {"latin-1": "é", "cp1252": "€", "cp1251": "ж"}.get(encoding, "漢字")
    before = program(f"s = '{letters}'; batch_size = 64  # {letters}", head=f"# coding: {encoding}\n")
    check_edit(before.encode(encoding), 100, before.replace("64", "100").encode(encoding))


def test_minus_one_is_replaced_whole() -> None:
    """A size to be found automatically becomes the number."""
    check_edit(program("batch_size = -1").encode(), 32, program("batch_size = 32").encode())


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("c.yaml", "batch_size: '64'  # quoted\n", "batch_size: '128'  # quoted\n"),
        ("c.yaml", "# 64\n{batch_size: 64, lr: 64}\n", "# 64\n{batch_size: 128, lr: 64}\n"),
        ("c.json", '{"lr": 64, "batch_size":64}', '{"lr": 64, "batch_size":128}'),
        ("c.toml", "batch_size = 0x40 # 64", "batch_size = 0x80 # 64"),
    ],
)
def test_configuration_files_keep_comments_and_quotes(name: str, before: str, after: str) -> None:
    """YAML, JSON and TOML change by their digits, as Python does."""
    reader = {"yaml": "yaml.safe_load", "json": "json.load", "toml": "tomllib.load"}[name.split(".")[1]]
    text = program(f"import yaml, json, tomllib\ncfg = {reader}(open('{name}', 'rb'))", "int(cfg['batch_size'])")
    path = f"{ROOT}/{name}"
    files = {_ENTRY: text.encode(), path: before.encode()}
    site = find_sites(MemoryFiles(files=files), _ENTRY)[0]
    assert site.path == path
    edit = set_batch_size(site, 128)
    assert apply(before.encode(), edit) == after.encode()
    again = find_sites(MemoryFiles(files={**files, path: after.encode()}), _ENTRY)[0]
    assert again.batch_size == 128


def test_an_unreachable_size_is_refused_with_the_nearest() -> None:
    """`4 * 8` can't give 30 by its digits."""
    site = find_best(program("batch_size = 4 * 8").encode())
    with pytest.raises(EditRefused, match="32 can"):
        set_batch_size(site, 30)


@pytest.mark.parametrize("value", [0, -1, -64])
def test_sizes_below_one_are_refused(value: int) -> None:
    """No batch is empty."""
    site = find_best(program("batch_size = 64").encode())
    with pytest.raises(EditRefused):
        set_batch_size(site, value)


def test_a_site_that_is_not_editable_refuses_with_its_reason() -> None:
    """A power is to be changed by hand."""
    site = find_best(program("batch_size = 2 ** 6").encode())
    assert not site.editable
    with pytest.raises(EditRefused, match="by hand"):
        set_batch_size(site, 32)


def test_a_file_that_changed_meanwhile_conflicts() -> None:
    """What is to be replaced must stand there."""
    data = program("batch_size = 64").encode()
    edit = set_batch_size(find_best(data), 32)
    with pytest.raises(EditConflict, match="line 2"):
        apply(b"#\n" + data, edit)
    with pytest.raises(EditConflict):
        apply(b"", edit)


def test_the_diff_shows_the_one_line() -> None:
    """A patch that `patch` would take, with a remark where the file has no last line end."""
    before, after = b"a = 1\nb = 64", b"a = 1\nb = 32"
    assert unified_diff("train.py", before, after) == (
        "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 64\n\\ No newline at end of file\n"
        "+b = 32\n\\ No newline at end of file\n"
    )
    assert unified_diff("train.py", before, before) == ""


def test_columns_count_code_points() -> None:
    """The edit's columns lead to the digits in the decoded line."""
    data = program("s = '😀'; batch_size = 64").encode()
    edit = set_batch_size(find_best(data), 8)
    line = data.decode().split("\n")[edit.line - 1]
    assert line[edit.start_column : edit.end_column] == "64"
    assert isinstance(edit, Edit)


_LITERALS = st.builds(
    lambda value, style: style(value),
    st.integers(min_value=1, max_value=10**7),
    st.sampled_from([str, hex, oct, bin, lambda value: f"{value:_}", lambda value: f"0X{value:X}", "{:#_x}".format]),
)
_TRIVIA = st.text(
    alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="'\\\u2028\u2029\x85"), max_size=12
)


@given(_LITERALS, st.integers(min_value=1, max_value=10**7), _TRIVIA, st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_literal_takes_any_value(literal: str, value: int, trivia: str, end: str) -> None:
    """Only the digits differ afterwards, and they read as the value asked for."""
    line = f"s = '{trivia}'; batch_size = {literal}  # {trivia}"
    data = program(line, end=end).encode()
    site = find_best(data)
    assert site.kind is SiteKind.CONSTANT
    edit = set_batch_size(site, value)
    after = apply(data, edit)
    start = data.index(f"batch_size = {literal}".encode()) + len(b"batch_size = ")
    assert site.start == start
    assert after == data[:start] + edit.new.encode() + data[start + len(literal) :]
    assert find_best(after).batch_size == value
    assert int(edit.new, 0) == value


@given(_LITERALS, st.integers(min_value=0, max_value=10**9))
def test_restyling_keeps_the_base(literal: str, value: int) -> None:
    """A number written as another is keeps its prefix and reads as itself."""
    new = restyle(literal, value)
    assert int(new, 0) == value
    prefix = literal[:2] if literal[:1] == "0" and literal[1:2].isalpha() else ""
    assert new.startswith(prefix)
