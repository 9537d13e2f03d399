"""What stands above what is profiled and above the batch size."""

from dataclasses import replace
from typing import Any

import pytest

from skyline_lsp.features import Command, Options, Preview, State, code_lenses
from skyline_lsp.protocol import Failure, FailureKind, Frame
from tests.features.building import GIB, PROVIDERS, STEP, model_of, prediction_of, profile_of, snapshot_of


def check_lenses(expected: list[tuple[int, str, str]], **given: Any) -> tuple[Command, ...]:
    """The lenses of `PROVIDERS` are these: line, title, command."""
    lenses = code_lenses(snapshot_of(PROVIDERS, **given))
    assert [(lens.line, lens.command.title, lens.command.name) for lens in lenses] == expected
    return tuple(lens.command for lens in lenses)


SET = (6, "batch size 16 | set...", "skyline.setBatchSize")


def test_idle_offers_the_first_run() -> None:
    """Before anything ran, the entry offers to profile, and the batch size can be set already."""
    profile = check_lenses([SET, (9, "Profile this training step", "skyline.profile")])[1]
    assert profile.arguments == ({"path": "/project/train.py"},)


def test_running_can_be_cancelled() -> None:
    """A run tells what it is busy with, and clicking that ends it."""
    check_lenses(
        [SET, (9, "Profiling: timing iteration 3 of 12 (cancel)", "skyline.cancel")],
        state=State.RUNNING,
        progress="timing iteration 3 of 12",
    )


def test_running_keeps_the_last_figures() -> None:
    """While a changed source is measured again, the old figures stay, marked."""
    check_lenses(
        [
            SET,
            (
                9,
                "Profiling: starting (cancel) | ~100 ms/iteration (+-2) | 160 samples/s | peak 1 GiB of 8 GiB (12 %)",
                "skyline.cancel",
            ),
        ],
        state=State.RUNNING,
        outdated=True,
        profile=profile_of(STEP),
    )


def test_ready_tells_the_figures() -> None:
    """A profile tells time with its spread, throughput and peak of capacity, and can be taken again."""
    check_lenses(
        [
            SET,
            (6, "predict other sizes", "skyline.predict"),
            (
                9,
                "100 ms/iteration (+-2) | 160 samples/s | peak 1 GiB of 8 GiB (12 %) | profile again",
                "skyline.profile",
            ),
        ],
        state=State.READY,
        profile=profile_of(STEP),
    )


def test_unknown_figures_are_left_out() -> None:
    """Without a known batch size there is no throughput, and without a capacity no share of it."""
    profile = profile_of(STEP, batch_size=None)
    profile = replace(
        profile,
        device=replace(profile.device, memory_bytes=None),
        iteration=replace(profile.iteration, samples_per_second=0.0, iterations=1),
    )
    lenses = code_lenses(snapshot_of(PROVIDERS, state=State.READY, profile=profile))
    assert lenses[-1].command.title == "100 ms/iteration | peak 1 GiB | profile again"


def test_stale_is_marked() -> None:
    """Figures of an older source are marked, and say so when pointed at."""
    lens = code_lenses(snapshot_of(PROVIDERS, state=State.STALE, profile=profile_of(STEP)))[-1]
    assert lens.command.title.startswith("~100 ms/iteration")
    assert lens.command.tooltip == "The source has changed since; profile it again"


FRAME = Frame(path="/project/net.py", line=6, function="Net.forward")


@pytest.mark.parametrize(
    ("frames", "name", "arguments"),
    [
        ((FRAME,), "skyline.show", {"path": "/project/net.py", "line": 6}),
        ((), "skyline.status", {"path": "/project/train.py"}),
    ],
)
def test_failure_can_be_shown(frames: tuple[Frame, ...], name: str, arguments: dict[str, Any]) -> None:
    """A failure says in short what happened; clicking leads there, and the run can be tried again."""
    failure = Failure(kind=FailureKind.EXCEPTION, message="ValueError: no\nSecond line. Third.", frames=frames)
    shown = check_lenses(
        [
            SET,
            (9, "Profiling failed: ValueError: no Second line (show)", name),
            (9, "profile again", "skyline.profile"),
        ],
        state=State.FAILED,
        failure=failure,
    )
    assert shown[1].arguments == (arguments,)


def test_a_long_failure_is_cut() -> None:
    """A lens stays on its line."""
    failure = Failure(kind=FailureKind.EXCEPTION, message="word " * 100)
    lens = code_lenses(snapshot_of(PROVIDERS, state=State.FAILED, failure=failure))[1]
    assert len(lens.command.title) < 140


def test_predicted_sizes_can_be_chosen() -> None:
    """With a model, the most useful sizes stand beside the present one with what they would do."""
    model = model_of(8, 16, 32)
    shown = snapshot_of(PROVIDERS, state=State.READY, profile=profile_of(STEP), model=model)
    here = [lens.command for lens in code_lenses(shown) if lens.line == 6]
    assert here[0].title == "batch size 16 | set..."
    assert 2 <= len(here) <= 4
    sizes = [command.arguments[0]["batchSize"] for command in here[1:]]  # type: ignore[index,call-overload]
    assert sizes == sorted(sizes)
    assert 16 not in sizes
    assert all(f"{size}: " in command.title for size, command in zip(sizes, here[1:], strict=True))
    assert all("samples/s (+" in command.title for command in here[1:])
    assert here[1].arguments[0]["site"] == {"path": "/project/train.py", "line": 6}  # type: ignore[index,call-overload]


def test_sizes_that_do_not_fit_are_not_offered() -> None:
    """A size that is predicted to run out of memory has no lens."""
    profile = profile_of(STEP)
    profile = replace(profile, device=replace(profile.device, memory_bytes=round(1.2 * GIB)))
    shown = snapshot_of(PROVIDERS, state=State.READY, profile=profile, model=model_of(8, 16, 32))
    sizes = [
        lens.command.arguments[0].get("batchSize")  # type: ignore[union-attr]
        for lens in code_lenses(shown)
        if lens.line == 6
    ]
    assert 32 not in sizes
    assert 64 not in sizes


def test_preview_can_be_applied_or_cleared() -> None:
    """Under a preview, both lenses say that it is one and lead out of it."""
    check_lenses(
        [
            (6, "batch size 16, shown as 32 | apply", "skyline.setBatchSize"),
            (6, "clear preview", "skyline.clearPreview"),
            (
                9,
                "pred 180 ms/iteration (162 to 198 ms) | 178 samples/s | peak 2 GiB of 8 GiB (25 %) | clear preview",
                "skyline.clearPreview",
            ),
        ],
        state=State.READY,
        profile=profile_of(STEP),
        preview=Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=2 * GIB)),
    )


def test_a_batch_size_elsewhere_is_led_to() -> None:
    """Where the batch size is written in another file, the entry says where, and that file has the lenses."""
    shown = snapshot_of(PROVIDERS)
    (site,) = shown.sites
    moved = (replace(site, path="/project/config.py", line=3),)
    check_lenses(
        [
            (9, "Profile this training step", "skyline.profile"),
            (9, "batch size 16 (config.py:3)", "skyline.show"),
        ],
        sites=moved,
    )
    other = snapshot_of("a = 1\n\nbatch_size = 16\n", path="/project/config.py", entry=shown.entry, sites=moved)
    assert [(lens.line, lens.command.title) for lens in code_lenses(other)] == [(3, "batch size 16 | set...")]


def test_lenses_can_be_switched_off() -> None:
    """The user's setting goes before everything."""
    check_lenses([], options=Options(lenses_enabled=False))


def test_other_files_have_none() -> None:
    """A file that is neither profiled nor holds the batch size has no lens."""
    assert code_lenses(snapshot_of("x = 1\n", path="/project/net.py", entry=snapshot_of(PROVIDERS).entry)) == ()
