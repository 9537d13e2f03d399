"""Where lines go when a file is edited."""

from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.source.lines import moved_lines


def check_moves(before: str, after: str, expected: dict[int, int]) -> None:
    """Each unchanged line's new number, and nothing of the changed ones."""
    assert moved_lines(before, after) == expected


def test_nothing_changed() -> None:
    """Every line stays."""
    check_moves("a\nb\nc", "a\nb\nc", {1: 1, 2: 2, 3: 3})


def test_an_inserted_line_pushes_the_rest_down() -> None:
    """Lines below an insertion move by one."""
    check_moves("a\nb\nc", "a\nnew\nb\nc", {1: 1, 2: 3, 3: 4})


def test_an_edited_line_is_gone() -> None:
    """The line that was typed in has no place any more; its neighbours stay."""
    check_moves("a\nx = 1\nc", "a\nx = 12\nc", {1: 1, 3: 3})


def test_a_removed_block_pulls_the_rest_up() -> None:
    """Lines below a deletion move up."""
    check_moves("a\nb\nc\nd\ne", "a\nd\ne", {1: 1, 4: 2, 5: 3})


def test_form_feeds_do_not_make_lines() -> None:
    """Line numbers are those of the editor."""
    check_moves("a\fb\nc", "new\na\fb\nc", {1: 2, 2: 3})


def test_line_ends_may_change() -> None:
    """Switching a file to CR LF moves nothing."""
    check_moves("a\nb\n", "a\r\nb\r\n", {1: 1, 2: 2, 3: 3})


def test_large_files_without_a_unique_line_are_still_matched() -> None:
    """Ten thousand lines that all recur, a few of them edited: all others are found."""
    lines = [f"line {i % 700}" for i in range(10_000)]
    edited = lines.copy()
    for at in (50, 4_000, 9_000):
        edited[at] = "edited"
    moved = moved_lines("\n".join(lines), "\n".join(edited))
    assert len(moved) == 10_000 - 3
    assert all(old == new for old, new in moved.items())


_LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "x = 1"]), max_size=30)


@given(_LINES, _LINES)
def test_moves_are_true_and_keep_their_order(before: list[str], after: list[str]) -> None:
    """A moved line has the same text in both, and no two cross."""
    moved = moved_lines("\n".join(before), "\n".join(after))
    old = before or [""]
    new = after or [""]
    assert all(old[a - 1] == new[b - 1] for a, b in moved.items())
    places = [moved[line] for line in sorted(moved)]
    assert places == sorted(set(places))
