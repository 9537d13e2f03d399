"""What a snapshot brings together, and what a profile's index knows of a line."""

import pytest

from skyline_lsp.features import Index
from skyline_lsp.features.place import place, uri
from skyline_lsp.features.snapshot import RelatedLine, absolute_path, relative_path
from tests.features.building import MIB, PROVIDERS, STEP, profile_of, snapshot_of


def check_related(rows: tuple[RelatedLine, ...], expected: list[tuple[str, float, float, int]]) -> None:
    shown = [(f"{row.path}:{row.line}", row.forward_ms, row.backward_ms, row.invocations) for row in rows]
    assert shown == [
        (where, pytest.approx(forward), pytest.approx(backward), runs) for where, forward, backward, runs in expected
    ]


def test_callees_are_inclusive_and_sorted() -> None:
    """What a line calls is told with all that lies below it, the costliest first."""
    detail = Index(profile_of(STEP)).detail("train.py", 11)
    check_related(detail.calls, [("net.py:6", 13.2, 16.4, 16), ("net.py:7", 5, 8, 1)])
    assert detail.functions == ("iteration",)
    assert detail.peak_bytes == 348 * MIB
    assert detail.self_peak_bytes == 0
    assert detail.recompute_ms == 2


def test_callers_share_a_line_s_cost() -> None:
    """A line reached from two others tells how much each of them causes."""
    detail = Index(
        profile_of("""
train.py:1 step 0 0
  net.py:5 block 1 2 x3
train.py:2 step 0 0
  net.py:5 block 10 20
    net.py:9 inner 1 1
""")
    ).detail("net.py", 5)
    check_related(detail.callers, [("train.py:2", 11, 21, 1), ("train.py:1", 1, 2, 3)])
    check_related(detail.calls, [("net.py:9", 1, 1, 1)])
    assert detail.paths == 2


def test_recursion_counts_once() -> None:
    """A line below itself is not counted twice, and is not its own callee."""
    detail = Index(
        profile_of("""
tree.py:1 walk 1 0
  tree.py:1 walk 2 0
    tree.py:5 leaf 4 0
  tree.py:7 other 8 0
    tree.py:1 walk 16 0
      tree.py:7 other 32 0
""")
    ).detail("tree.py", 1)
    check_related(detail.calls, [("tree.py:7", 56, 0, 1), ("tree.py:5", 4, 0, 1)])


def test_unknown_line_has_no_detail() -> None:
    """A line that the tree does not have is no error."""
    detail = Index(profile_of(STEP)).detail("train.py", 999)
    assert (detail.calls, detail.callers, detail.paths) == ((), (), 0)


@pytest.mark.parametrize(
    ("path", "root", "relative"),
    [
        ("/project/a/b.py", "/project", "a/b.py"),
        ("/project/a/b.py", "/project/", "a/b.py"),
        ("/projects/b.py", "/project", "/projects/b.py"),
        ("/a.py", "/", "a.py"),
        ("C:\\work\\a\\b.py", "c:\\work", "a/b.py"),
        ("\\\\host\\share\\a.py", "\\\\host\\share", "a.py"),
        ("/project/a\\b.py", "/project", "a\\b.py"),
    ],
)
def test_paths_are_named_as_profiles_name_them(path: str, root: str, relative: str) -> None:
    """A file has the name that the worker gave it, on Windows too; a name is never cut within a folder's name."""
    assert relative_path(path, root) == relative


@pytest.mark.parametrize(
    ("path", "root", "absolute"),
    [
        ("a/b.py", "/project", "/project/a/b.py"),
        ("/elsewhere/b.py", "/project", "/elsewhere/b.py"),
        ("a/b.py", "C:\\work", "C:\\work\\a\\b.py"),
    ],
)
def test_paths_of_profiles_are_found_again(path: str, root: str, absolute: str) -> None:
    """A profile's path leads back to the file."""
    assert absolute_path(path, root) == absolute


def test_uri() -> None:
    """A link leads to the line, whatever is in the path."""
    assert uri("/project/a b#c.py") == "file:///project/a%20b%23c.py"
    assert uri("C:\\work\\a.py") == "file:///C:/work/a.py"
    assert place("a.py", 3, "/project").markdown == "[`a.py:3`](file:///project/a.py#L3)"


def test_entry_lines_are_those_of_its_file() -> None:
    """The iteration provider stands for the whole first, then the other providers; in other files nothing does."""
    shown = snapshot_of(PROVIDERS)
    assert shown.entry_lines() == (9, 3, 6)
    other = snapshot_of("x = 1\n", path="/project/net.py", entry=shown.entry)
    assert other.entry_lines() == ()


def test_batch_size_is_the_source_s() -> None:
    """The source says the batch size; where it does not, the measurement does."""
    profile = profile_of(STEP, batch_size=8)
    assert snapshot_of(PROVIDERS, profile=profile).batch_size == 16
    assert snapshot_of(PROVIDERS, profile=profile, sites=()).batch_size == 8
    assert snapshot_of("x = 1\n").batch_size is None
