"""Configuration files: every integer knows where it stands, and only it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.source.config_files import ConfigError, integers, read_config
from skyline_lsp.source.site import SiteKind


def check_integers(kind: SiteKind, text: str, expected: dict[str, str], encoding: str = "utf-8") -> None:
    """The dotted keys that have a position, each with the text that stands there in the bytes."""
    data = text.encode(encoding)
    found = {}
    for keys, scalar in integers(read_config(data, kind)):
        position = scalar.position
        assert position is not None
        bare = encoding.removesuffix("-sig")
        size = len(position.text.encode(bare if bare != "utf-16" else "utf-16-le"))
        there = data[position.start : position.start + size].decode(bare if bare != "utf-16" else "utf-16-le")
        assert there == position.text
        line = text.replace("\r\n", "\n").split("\n")[position.line - 1]
        assert line[position.column : position.column + len(position.text)] == position.text
        found[".".join(keys)] = position.text
    assert found == expected


def test_yaml_block_and_flow() -> None:
    """Nested mappings in both styles, comments, quotes, hexadecimal, underscores."""
    check_integers(
        SiteKind.YAML,
        "train:\n  batch_size: 64  # per GPU\n  lr: 0.1\nval: {bs: 0x20, size: '128', name: \"x1\"}\nbig: 1_024\n",
        {"train.batch_size": "64", "val.bs": "0x20", "val.size": "128", "big": "1_024"},
    )


def test_yaml_anchors_and_merges_point_to_the_anchor() -> None:
    """A merged key's number stands where the anchor has it."""
    check_integers(
        SiteKind.YAML,
        "base: &base\n  bs: 8\ntrain:\n  <<: *base\n  lr: 1\n",
        {"base.bs": "8", "train.bs": "8", "train.lr": "1"},
    )


def test_yaml_after_astral_characters_and_a_mark() -> None:
    """Characters outside the BMP and a byte order mark shift bytes, not columns."""
    check_integers(SiteKind.YAML, "a: '😀'\nb: {c: '😀', d: 7}\n", {"b.d": "7"}, encoding="utf-8-sig")


def test_yaml_in_utf16() -> None:
    """Offsets are of the UTF-16 bytes."""
    check_integers(SiteKind.YAML, "a: 1\nbatch: 64\n", {"a": "1", "batch": "64"}, encoding="utf-16")


def test_json_with_tabs_and_comments() -> None:
    """Tabs, which YAML refuses, and comments, which many tools allow."""
    check_integers(
        SiteKind.JSON,
        '{\n\t"a": {"batch": 32, "f": 1.5}, // why\n\t/* no */ "l": [1, {"x": "64"}],\n\t"s": "a\\"b", "e": 1e3\n}\n',
        {"a.batch": "32", "l.0": "1", "l.1.x": "64"},
    )


def test_toml_everywhere_a_number_may_stand() -> None:
    """Tables, dotted keys, inline tables, arrays of tables, strings that look like numbers, dates, floats."""
    check_integers(
        SiteKind.TOML,
        'title = "batch = 7"\nbatch = 0x40 # 64\n[train]\nbatch_size = 1_024\nlr = 1.5\nwhen = 2020-01-02\n'
        'opt = { steps = 3, name = "a 5" }\nsizes = [ 8,\n  16 ]\n[[runs]]\nbs = 2\n[[runs]]\nbs = 4\n[a.b]\nc.d = 9\n',
        {
            "batch": "0x40",
            "train.batch_size": "1_024",
            "train.opt.steps": "3",
            "train.sizes.0": "8",
            "train.sizes.1": "16",
            "runs.0.bs": "2",
            "runs.1.bs": "4",
            "a.b.c.d": "9",
        },
    )


def test_toml_with_windows_line_ends() -> None:
    """CR LF files have their numbers found too."""
    check_integers(SiteKind.TOML, "[t]\r\nbatch = 5\r\n", {"t.batch": "5"})


def test_ini_sections() -> None:
    """Options of the section they stand in; comments left alone."""
    check_integers(
        SiteKind.INI,
        "[eval]\nbatch = 8\n[train]\nBatch_Size = 32 ; fits\nlr = 0.1\n",
        {"eval.batch": "8", "train.batch_size": "32"},
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SiteKind.YAML, "a: [1,"),
        (SiteKind.YAML, "a: b: c"),
        (SiteKind.JSON, '{"a": 1'),
        (SiteKind.JSON, '{"a": }'),
        (SiteKind.JSON, "{} x"),
        (SiteKind.TOML, "a = \n"),
        (SiteKind.INI, "a = 1\n"),
        (SiteKind.JSON, "[" * 5000),
    ],
)
def test_broken_files_say_so(kind: SiteKind, text: str) -> None:
    """A file that is not of its format raises the one error there is for it."""
    with pytest.raises(ConfigError):
        read_config(text.encode(), kind)


_NUMBERS = st.integers(min_value=0, max_value=10**9)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), _NUMBERS, min_size=1, max_size=6))
def test_toml_positions_survive_an_edit(values: dict[str, int]) -> None:
    """Each position, given other digits, changes the value of its own key alone."""
    text = "".join(f"{key} = {value}\n" for key, value in values.items())
    for keys, scalar in integers(read_config(text.encode(), SiteKind.TOML)):
        position = scalar.position
        assert position is not None
        edited = text[: position.start] + "12345" + text[position.start + len(position.text) :]
        changed = {k[0]: s.value for k, s in integers(read_config(edited.encode(), SiteKind.TOML))}
        assert changed == {**values, keys[0]: 12345}


def test_yaml_documents_stand_one_after_the_other() -> None:
    """Numbers of every document of a file are found."""
    check_integers(
        SiteKind.YAML, "a: 1\n---\ntrain:\n  batch_size: 16\n---\n", {"0.a": "1", "1.train.batch_size": "16"}
    )
