"""The scripts of the corpus through the real worker: the batch, the iteration, and the proof of the batch-size site.

A dozen shapes in every run of the tests; all with SKYLINE_ALL_SCRIPTS=1.
"""

import hashlib
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("torch")

from skyline_lsp.cli.sites import another_size, follows
from skyline_lsp.protocol import BatchReport, EntryKind, FailureKind, Goal, Override, Peaks, RunSpec, Status
from skyline_lsp.source import find_sites, set_batch_size
from tests.source.corpus import SCRIPTS, Expected, corpus
from tests.source.projects import DiskFiles
from tests.worker.worker_process import Worker, failure_of, spec

pytestmark = pytest.mark.torch

_FEW = (
    "accumulate_micro_batches.py",
    "automatic_size.py",
    "exits_early.py",
    "expression_product.py",
    "gan_options.py",
    "language_model.py",
    "lbfgs_closure.py",
    "missing_data.py",
    "no_optimizer.py",
    "package_modules/train.py",
    "run_as_module/experiment/__main__.py",
    "yaml_file/train.py",
)
_FAILURES = {"no_optimizer": FailureKind.NO_ITERATION, "raises": FailureKind.EXCEPTION}
_PEAKS = Peaks(flop_per_second={"float32": 1e10}, bytes_per_second=1e10, launch_ms=0.01)


def chosen() -> list[Expected]:
    """The scripts to run."""
    every = os.environ.get("SKYLINE_ALL_SCRIPTS")
    return [expected for expected in corpus() if every or expected.entry in _FEW]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the corpus: some of the scripts write."""
    copy = tmp_path_factory.mktemp("corpus") / "scripts"
    shutil.copytree(SCRIPTS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def hashes(folder: Path) -> dict[str, str]:
    """What the files of the corpus hold."""
    names = [path.relative_to(SCRIPTS) for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(name): hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def project_of(expected: Expected, scripts: Path) -> Path:
    return scripts / expected.entry.split("/")[0] if "/" in expected.entry else scripts


def spec_of(expected: Expected, scripts: Path, goal: Goal, overrides: tuple[Override, ...] = ()) -> RunSpec:
    asked = spec(
        scripts / expected.entry,
        EntryKind.MODULE if expected.module else EntryKind.SCRIPT,
        goal=goal,
        module=expected.module,
        arguments=expected.arguments,
        overrides=overrides,
    )
    return replace(asked, peaks=_PEAKS)


def batch_of(process: Worker, asked: RunSpec) -> BatchReport:
    result = process.run(asked).result
    assert result.status is Status.DONE, result
    assert result.batch is not None
    return result.batch


@pytest.mark.parametrize("expected", chosen(), ids=lambda expected: expected.entry)
def test_profile(warm_worker: Worker, scripts: Path, expected: Expected) -> None:
    """A profile has the script's batch, its micro-batches and its optimizers; one that can't be measured says why."""
    warm_worker.initialize(project_of(expected, scripts))
    before = hashes(scripts)
    run = warm_worker.run(spec_of(expected, scripts, Goal.PROFILE))
    assert hashes(scripts) == before
    if kind := _FAILURES.get(expected.ends):
        assert failure_of(run).kind is kind
        return
    if expected.ends == "exits" and run.result.status is Status.FAILED:
        assert failure_of(run).kind is FailureKind.EXITED
        return
    profile, batch = run.result.profile, run.result.batch
    assert run.result.status is Status.DONE, run.result
    assert profile is not None
    assert profile.micro_batches == expected.micro_batches
    if expected.batch_size:
        assert profile.batch_size == expected.batch_size
        samples = expected.batch_size * expected.micro_batches
        assert profile.iteration.samples_per_second == pytest.approx(1000 * samples / profile.iteration.run_time_ms)
    if batch is not None:
        assert batch.shapes[0][0] == expected.leading
        assert batch.micro_batches == expected.micro_batches
    # Some of the scripts end before the last step of a measurement, which is when optimizers are looked at.
    if not any("ended before" in warning for warning in profile.warnings):
        assert len(profile.optimizers) == expected.optimizers


@pytest.mark.parametrize(
    "expected",
    [one for one in chosen() if one.path and one.ends in ("returns", "exits")],
    ids=lambda expected: expected.entry,
)
def test_proof(warm_worker: Worker, scripts: Path, expected: Expected) -> None:
    """With another number at the site the model is fed another batch, and no file changes."""
    folder = project_of(expected, scripts)
    warm_worker.initialize(folder)
    site = find_sites(DiskFiles(str(folder)), str(scripts / expected.entry), expected.arguments)[0]
    other = another_size(site)
    edit = set_batch_size(site, other)
    override = Override(path=edit.path, start=edit.start, end=edit.end, old=edit.old, new=edit.new)
    contents = hashes(scripts)
    before = batch_of(warm_worker, spec_of(expected, scripts, Goal.PROVE))
    after = batch_of(warm_worker, spec_of(expected, scripts, Goal.PROVE, (override,)))
    assert before.shapes[0][0] == expected.leading
    assert before.micro_batches == expected.micro_batches
    assert follows(before, after, other, Fraction(other, site.batch_size))
    assert hashes(scripts) == contents
