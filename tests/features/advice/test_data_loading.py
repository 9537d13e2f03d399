"""Advice on how batches come to the step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.protocol import (
    LoaderUse,
    Profile,
    Workload,
)
from tests.features.advice.cases import CPU, H200, advice_of, followed, sole
from tests.features.building import profile_of

SCRIPT = Workload(kind="script", path="train.py")
LOADING = """\
from torch.utils.data import DataLoader

def main():
    loader = DataLoader(data, batch_size=16)
    for x in loader:
        step(x)

if __name__ == "__main__":
    main()
"""
LOADING_TREE = "train.py:5 main 60 0\ntrain.py:6 main 40 0"


def loading(text: str = LOADING, *, tree: str = LOADING_TREE, **changes: Any) -> Profile:
    use = {"path": "train.py", "line": 5, "workers": 0, "pinned": False, "run_time_ms": 60.0, "processors": 8}
    fields = {name: changes.pop(name) for name in tuple(changes) if name in use}
    return profile_of(tree, loaders=(LoaderUse(**(use | fields)),), workload=SCRIPT, **changes)


def test_a_step_that_waits_for_its_data() -> None:
    """Loading that takes a good part of the step is told with its time, at the loader, with workers that keep up."""
    one = sole(loading(), LOADING)
    assert (one.code, one.line) == (AdviceCode.DATA_LOADING, 4)
    assert "waits 60 ms for its batch, 60 % of the iteration" in one.message
    assert "num_workers=2" in one.message
    assert "8 processors" in one.message
    after = followed(loading(), LOADING, 4)
    assert "DataLoader(data, batch_size=16, num_workers=2)" in after


def test_how_many_workers() -> None:
    """Enough to load a batch in the time of the rest of the step, but no more than there are processors."""
    tree = "train.py:5 main 90 0\ntrain.py:6 main 10 0"
    assert "num_workers=9" in sole(loading(tree=tree, run_time_ms=90.0, processors=32), LOADING).message
    assert "num_workers=4" in sole(loading(tree=tree, run_time_ms=90.0, processors=4), LOADING).message


def test_workers_that_can_not_keep_up() -> None:
    """Waiting in spite of workers asks for more of them, or for cheaper loading where all processors are at it."""
    one = sole(loading(workers=2), LOADING)
    assert "2 processes can't keep up. At this pace 5 could" in one.message
    assert "cheaper" in sole(loading(workers=8), LOADING).message


@pytest.mark.parametrize(
    "changes",
    [{"run_time_ms": 3.0}, {"processors": 1}],
    ids=["little", "one processor"],
)
def test_loading_that_is_not_worth_it(changes: Mapping[str, Any]) -> None:
    """Little waiting, or no processor to spare, is no reason for advice."""
    assert not advice_of(loading(**changes), LOADING)


@pytest.mark.parametrize(
    "text",
    [
        LOADING.replace("if __name__", "if name"),
        LOADING.replace("batch_size=16", "collate_fn=lambda x: x"),
        LOADING.replace("batch_size=16", "**options"),
    ],
    ids=["no main guard", "lambda", "unknown arguments"],
)
def test_no_fix_where_worker_processes_might_break_the_program(text: str) -> None:
    """Workers may have to import the program anew and to be sent its functions: without these there is advice only."""
    assert sole(loading(), text).change is None


def test_a_given_number_of_workers_is_replaced() -> None:
    """The number that stands there becomes another one."""
    text = LOADING.replace("batch_size=16", "16, num_workers=0")
    assert "DataLoader(data, 16, num_workers=2)" in followed(loading(), text, 4)


def test_a_loader_that_is_made_elsewhere() -> None:
    """Where it can't be told which loader it is, the advice stands at the loop."""
    assert sole(loading(), LOADING.replace("in loader", "in make_loader()")).line == 5


def test_copies_that_are_not_pinned() -> None:
    """On an accelerator, a line that copies batches out of ordinary memory is told, and the loader can pin them."""
    profile = loading(tree="train.py:5 main 2 0\ntrain.py:6 main 6 0 pageable=38MiB", run_time_ms=2.0, device=H200)
    one = sole(profile, LOADING)
    assert (one.code, one.line) == (AdviceCode.PINNED_MEMORY, 4)
    assert "Line 6 copies 38 MiB" in one.message
    assert "6.0 ms, 6 % of the iteration" in one.message
    assert "DataLoader(data, batch_size=16, pin_memory=True)" in followed(profile, LOADING, 4)
    assert not advice_of(replace(profile, device=CPU), LOADING)
    pinned = replace(profile.loaders[0], pinned=True)
    assert not advice_of(replace(profile, loaders=(pinned,)), LOADING)
