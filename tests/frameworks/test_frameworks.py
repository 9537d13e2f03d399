"""Frameworks that own the loop: their iterations are found, and costs stand at the user's lines."""

import shutil
import zipfile
from pathlib import Path

import pytest

from skyline_lsp.protocol import Goal, LineCost, Override, PhaseKind, Profile, Status
from skyline_lsp.source import find_sites, set_batch_size
from tests.source.projects import DiskFiles
from tests.worker.worker_process import Run, Worker, marked_line, spec

PROGRAMS = Path(__file__).with_name("programs")

BATCHES = {"lightning_fit": (32, 1), "transformers_trainer": (6, 2), "accelerate_loop": (8, 4)}
"""Program -> batch size, micro-batches."""


@pytest.fixture(scope="module", params=sorted(BATCHES))
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, alone in its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    return Path(shutil.copy(PROGRAMS / f"{request.param}.py", folder))


@pytest.fixture(scope="module")
def profiled(framework_worker: Worker, program: Path) -> Run:
    """A profile of the program."""
    framework_worker.initialize(program.parent)
    return framework_worker.run(spec(program, goal=Goal.PROFILE))


@pytest.fixture
def profile(profiled: Run) -> Profile:
    assert profiled.result.status is Status.DONE, profiled.result
    assert profiled.result.profile is not None
    return profiled.result.profile


def line_at(profile: Profile, program: Path, mark: str) -> LineCost:
    """What the marked line costs."""
    number = marked_line(program.read_text(encoding="utf-8"), f"# {mark}")
    (line,) = [line for line in profile.lines if line.line == number]
    return line


def test_iteration(profile: Profile, program: Path) -> None:
    """An iteration is one step of the one optimizer, with the batches that went into it."""
    assert (profile.batch_size, profile.micro_batches) == BATCHES[program.stem]
    assert [use.steps for use in profile.optimizers] == [1]
    samples = profile.batch_size * profile.micro_batches
    assert profile.iteration.samples_per_second == pytest.approx(1000 * samples / profile.iteration.run_time_ms)
    assert profile.warnings == ()


def test_lines_of_the_user(profile: Profile, program: Path) -> None:
    """Operations are charged to the user's lines, forward and backward, once for each batch."""
    for mark in ("FIRST", "MODEL", "LOSS"):
        line = line_at(profile, program, mark)
        assert line.forward_ms > 0
        assert line.backward_ms > 0
        assert line.invocations == profile.micro_batches
    assert line_at(profile, program, "FIRST").self_flop > 0


def test_work_of_the_library(profile: Profile, program: Path) -> None:
    """What the library does by itself, the optimizer's step among it, is the cost of the line that called it."""
    line = line_at(profile, program, "LIBRARY")
    assert line.self_forward_ms > 0
    assert [use.line for use in profile.optimizers] == [line.line]
    total = sum(cost.self_forward_ms + cost.self_backward_ms for cost in profile.lines) + profile.untracked_ms
    assert total == pytest.approx(profile.iteration.run_time_ms)


def test_phases(profile: Profile, program: Path) -> None:
    """Loading data is a phase, and stands at the line that takes the batches; the other phases are told apart."""
    kinds = {phase.kind for phase in profile.phases if phase.run_time_ms > 0}
    assert kinds >= {PhaseKind.DATA_LOADING, PhaseKind.FORWARD, PhaseKind.BACKWARD, PhaseKind.OPTIMIZER}
    taken_at = "LOADER" if program.stem == "accelerate_loop" else "LIBRARY"
    assert {use.line for use in profile.loaders} == {line_at(profile, program, taken_at).line}
    if program.stem == "transformers_trainer":
        samples = profile.batch_size * profile.micro_batches
        assert line_at(profile, program, "DATA").invocations == samples


def test_stop_writes_nothing(profiled: Run, program: Path) -> None:
    """Stopping in the middle of training makes no framework save a checkpoint or report an interruption."""
    saved = [path for path in program.parent.rglob("*") if path.suffix in (".ckpt", ".pt", ".safetensors", ".bin")]
    assert saved == []
    assert "interrupt" not in profiled.output.lower()


def test_proof(framework_worker: Worker, program: Path) -> None:
    """The batch size is found where the framework is given it, and another number there is another batch."""
    framework_worker.initialize(program.parent)
    size, micro_batches = BATCHES[program.stem]
    site = find_sites(DiskFiles(str(program.parent)), str(program))[0]
    assert site.value == size
    edit = set_batch_size(site, 5)
    override = Override(path=edit.path, start=edit.start, end=edit.end, old=edit.old, new=edit.new)
    for overrides, expected in (((), size), ((override,), 5)):
        batch = framework_worker.run(spec(program, goal=Goal.PROVE, overrides=overrides)).result.batch
        assert batch is not None
        assert batch.shapes[0][0] == expected
        assert batch.micro_batches == micro_batches


def test_two_optimizers(framework_worker: Worker, tmp_path: Path) -> None:
    """With two optimizers stepped by hand an iteration is one step of each; validation in between is not what the model
    trains on, and checkpoints that the program writes are whole.
    """
    program = Path(shutil.copy(PROGRAMS / "lightning_gan.py", tmp_path))
    framework_worker.initialize(tmp_path)
    result = framework_worker.run(spec(program, goal=Goal.PROFILE)).result
    assert result.profile is not None, result
    assert (result.profile.batch_size, result.profile.micro_batches) == (20, 1)
    assert result.batch is not None
    assert result.batch.shapes[0][0] == 20
    source = program.read_text(encoding="utf-8")
    lines = {marked_line(source, f"# {mark}") for mark in ("CRITIC", "GENERATOR")}
    assert {use.line for use in result.profile.optimizers} == lines
    checkpoints = list(tmp_path.rglob("*.ckpt"))
    assert checkpoints
    assert all(zipfile.is_zipfile(checkpoint) for checkpoint in checkpoints)


def test_cancel(framework_worker: Worker, program: Path) -> None:
    """A run is cancelled at once, whatever handlers of signals the framework has put up, and says where it was."""
    framework_worker.initialize(program.parent)
    asked = spec(program, goal=Goal.PROFILE)
    framework_worker.start(asked)
    before = framework_worker.until(
        lambda message: message.get("method") == "progress" and message["params"]["stage"] == "warming_up"
    )
    framework_worker.cancel(asked)
    run = framework_worker.finish(before)
    assert run.result.status is Status.CANCELLED
