"""The scripts of the corpus really run, their iterations are what the sidecar says, and their sites are proven.

Six of them in every run of the tests; all with SKYLINE_ALL_SCRIPTS=1.
"""

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from skyline_lsp.source import apply, find_sites, set_batch_size
from tests.source.corpus import SCRIPTS, Expected, corpus
from tests.source.projects import DiskFiles

_FEW = (
    "mnist_style.py",
    "gan_options.py",
    "accumulate_micro_batches.py",
    "missing_data.py",
    "yaml_file/train.py",
    "positional_alias.py",
)
_OBSERVER = str(Path(__file__).with_name("observe.py"))

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the observer forks, for speed"),
]


def chosen() -> list[Expected]:
    """The scripts to run."""
    every = os.environ.get("SKYLINE_ALL_SCRIPTS")
    return [expected for expected in corpus() if every or expected.entry in _FEW]


def observe(runs: list[dict[str, object]]) -> list[dict[str, list[list[object]]]]:
    """Run scripts under the observer, in one process and its forks."""
    done = subprocess.run(
        [sys.executable, _OBSERVER], input=json.dumps(runs), capture_output=True, text=True, check=True, timeout=150
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def run_of(expected: Expected, folder: Path) -> dict[str, object]:
    """How a user would start the script, which lies below `folder` as it does below tests/scripts."""
    directory = folder / expected.entry.split("/")[0] if "/" in expected.entry else folder
    return {
        "path": str(folder / expected.entry),
        "module": expected.module,
        "arguments": list(expected.arguments),
        "directory": str(directory),
    }


def leading_sizes(events: list[list[object]]) -> list[object]:
    """First dimensions of what the model was fed, in order."""
    return [event[1] for event in events if event[0] == "forward"]


def check_structure(expected: Expected, events: list[list[object]]) -> None:
    """Optimizers and backward passes of an iteration, and the first batch."""
    steps = [event[1] for event in events if event[0] == "step"]
    assert len(set(steps)) == expected.optimizers
    sizes = leading_sizes(events)
    if sizes:
        assert sizes[0] == expected.leading
    if not steps:
        return
    last = max(set(steps), key=lambda step: steps.index(step))  # type: ignore[arg-type, return-value]
    ends = [i for i, event in enumerate(events) if event == ["step", last]]
    passes = [sum(event[0] == "backward" for event in events[a:b]) for a, b in pairwise([0, *ends])]
    assert expected.backward_passes in passes


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict, dict | None]]:
    """Reports of every chosen script as it stands, and with its site set to one more than it is."""
    scripts = chosen()
    copy = tmp_path_factory.mktemp("edited") / "scripts"
    shutil.copytree(SCRIPTS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    runs = [run_of(expected, SCRIPTS) for expected in scripts]
    edited = [expected for expected in scripts if expected.site_path is not None]
    for expected in edited:
        site = find_sites(DiskFiles(str(expected.folder)), expected.entry_path, expected.arguments)[0]
        target = copy / os.path.relpath(site.path, SCRIPTS)
        target.write_bytes(apply(target.read_bytes(), set_batch_size(site, expected.batch_size + site.multiplier)))
    reports = observe([*runs, *(run_of(expected, copy) for expected in edited)])
    plain, after = reports[: len(runs)], reports[len(runs) :]
    by_entry = dict(zip([expected.entry for expected in edited], after, strict=True))
    return {
        expected.entry: (report, by_entry.get(expected.entry)) for expected, report in zip(scripts, plain, strict=True)
    }


@pytest.mark.parametrize("expected", chosen(), ids=lambda expected: expected.entry)
def test_the_script_runs_as_the_sidecar_says(expected: Expected, observed: dict) -> None:
    """It ends as expected, and its iterations have the expected structure."""
    report, _ = observed[expected.entry]
    assert report["ends"] == {"no_optimizer": "returns"}.get(expected.ends, expected.ends)
    check_structure(expected, report["events"])


@pytest.mark.parametrize("expected", chosen(), ids=lambda expected: expected.entry)
def test_the_site_is_proven(expected: Expected, observed: dict) -> None:
    """With another number at the site, the model is fed another batch: of just that size, where it comes first."""
    report, edited = observed[expected.entry]
    before = leading_sizes(report["events"])
    if edited is None or not before:
        return
    after = leading_sizes(edited["events"])
    changed = expected.batch_size + (after[0] - before[0] if expected.leading == expected.batch_size else 1)
    assert after != before or expected.leading != expected.batch_size
    if expected.leading == expected.batch_size:
        assert after[0] == changed > expected.batch_size
