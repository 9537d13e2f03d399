"""Programs kept apart from those that the finder was made with: how often the best site is the right one."""

from pathlib import Path

import pytest

from skyline_lsp.source import apply, find_sites, set_batch_size
from tests.source.projects import Case, mark_of, read_case

_FOLDER = Path(__file__).with_name("heldout")
_CASES = sorted(_FOLDER.glob("*.case"))


def is_right(case: Case) -> bool:
    """Whether rank 1 is the marked literal, or nothing is offered where nothing is marked."""
    sites = find_sites(case.files, case.entry, case.arguments)
    if case.mark is None:
        return not any(site.editable and site.resolved and not site.evaluation for site in sites)
    return bool(sites) and sites[0].editable and mark_of(sites[0]) == case.mark


def test_rank_one_is_right_nearly_always() -> None:
    """At least 95 % of the programs."""
    wrong = [path.stem for path in _CASES if not is_right(read_case(path.read_text(encoding="utf-8")))]
    assert len(_CASES) >= 70
    assert len(wrong) <= 0.05 * len(_CASES), wrong


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.stem)
def test_no_edit_changes_anything_but_the_digits(path: Path) -> None:
    """Every editable site of every program, right or wrong, replaces its own digits and no other byte."""
    case = read_case(path.read_text(encoding="utf-8"))
    for site in find_sites(case.files, case.entry, case.arguments):
        if not site.editable:
            continue
        before = case.files.read(site.path)
        assert before is not None
        assert before[site.start : site.end] == site.text.encode()
        edit = set_batch_size(site, 48 * site.multiplier)
        after = apply(before, edit)
        assert after == before[: site.start] + edit.new.encode() + before[site.end :]
        assert int(edit.new, 0) == 48 * site.divisor
