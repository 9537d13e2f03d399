"""Scripts in the shapes of public training code: the site is the one expected, and its edit changes digits only."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyline_lsp.source import (
    EntryPointKind,
    analyse,
    apply,
    find_entry_point,
    find_sites,
    set_batch_size,
    why_no_site,
)
from tests.source.corpus import Expected, corpus, entries_on_disk
from tests.source.projects import DiskFiles

_ALL = pytest.mark.parametrize("expected", corpus(), ids=lambda expected: expected.entry)


def check_digits_only(before: bytes, after: bytes, start: int, old: str, new: str) -> None:
    """`after` is `before` with `old` at `start` replaced by `new`, byte for byte."""
    assert before[start : start + len(old)] == old.encode()
    assert after == before[:start] + new.encode() + before[start + len(old) :]
    assert set(new) <= set("0123456789abcdefABCDEFxXoO_")


def test_every_script_has_its_expectations() -> None:
    """None is forgotten, in either direction, and there are enough."""
    assert entries_on_disk() == {expected.entry.split("/")[0] for expected in corpus()}
    assert len(corpus()) >= 30


@_ALL
def test_the_best_site_is_the_expected_one(expected: Expected) -> None:
    """Rank 1 is the literal that the sidecar names, or there is none and the reason is told."""
    files = DiskFiles(str(expected.folder))
    sites = find_sites(files, expected.entry_path, expected.arguments)
    if expected.site_path is None:
        assert not any(site.editable and site.resolved and not site.evaluation for site in sites)
        assert "no batch size" in why_no_site(files, expected.entry_path, expected.arguments)
        return
    best = sites[0]
    assert (best.path, best.line, best.column, best.text, best.value, best.kind.value, best.editable) == (
        expected.site_path,
        expected.line,
        expected.column,
        expected.text,
        expected.value,
        expected.kind,
        expected.editable,
    )
    assert best.rank == 0
    assert not best.evaluation
    assert best.reason
    if best.value > 0:
        assert best.batch_size == expected.batch_size
    assert why_no_site(files, expected.entry_path, expected.arguments) == ""


@_ALL
def test_every_script_is_an_entry_point(expected: Expected) -> None:
    """Each is offered for profiling as a script."""
    entry = find_entry_point(expected.entry_path, Path(expected.entry_path).read_bytes())
    if "/" in expected.entry and expected.module is not None:
        return
    assert entry is not None
    assert entry.kind is EntryPointKind.SCRIPT


@_ALL
@pytest.mark.parametrize("factor", [1, 2, 1024])
def test_the_edit_changes_digits_only(expected: Expected, factor: int) -> None:
    """Whatever the encoding, the line ends and the style: the digits change, and finding again gives the new value."""
    if expected.site_path is None:
        return
    files = DiskFiles(str(expected.folder))
    site = find_sites(files, expected.entry_path, expected.arguments)[0]
    wanted = abs(site.batch_size) * factor
    if site.maximum is not None and wanted > site.maximum:
        # Beyond it, the limit's own literal is the site.
        return
    before = Path(site.path).read_bytes()
    edit = set_batch_size(site, wanted)
    after = apply(before, edit)
    check_digits_only(before, after, site.start, site.text, edit.new)

    class Edited(DiskFiles):
        def read(self, path: str) -> bytes | None:
            return after if path == site.path else super().read(path)

    again = find_sites(Edited(str(expected.folder)), expected.entry_path, expected.arguments)[0]
    assert (again.path, again.line, again.column, again.kind) == (site.path, site.line, site.column, site.kind)
    assert again.batch_size == wanted


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(corpus()), st.integers(0, 200), st.integers(0, 12), st.booleans())
def test_no_program_in_the_middle_of_an_edit_is_too_broken(expected: Expected, at: int, size: int, cut: bool) -> None:
    """With lines taken out or half a line typed, finding gives an answer and a reason, whatever is left."""
    lines = Path(expected.entry_path).read_bytes().splitlines(keepends=True)
    at = min(at, len(lines))
    middle = [lines[at][: size * 3]] if cut and at < len(lines) else []
    broken = b"".join([*lines[:at], *middle, *lines[at + (1 if cut else size) :]])

    class Broken(DiskFiles):
        def read(self, path: str) -> bytes | None:
            return broken if path == expected.entry_path else super().read(path)

    found = analyse(Broken(str(expected.folder)), expected.entry_path, expected.arguments)
    usable = [site for site in found.sites if site.editable and site.resolved and not site.evaluation]
    assert usable or found.reason
