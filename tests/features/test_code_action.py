"""What can be done at a line, in every editor."""

from dataclasses import replace
from typing import Any

from skyline_lsp.features import Action, ActionKind, Preview, State, code_actions
from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.source import apply
from tests.features.building import GIB, PROVIDERS, STEP, model_of, prediction_of, profile_of, snapshot_of


def actions_at(line: int, text: str = PROVIDERS, **given: Any) -> tuple[Action, ...]:
    return code_actions(snapshot_of(text, **given), line, line)


def titles(actions: tuple[Action, ...], kind: ActionKind) -> list[str]:
    return [action.title for action in actions if action.kind is kind]


def test_the_batch_size_can_be_set() -> None:
    """At the batch size, half, double and the powers of two around are one keystroke away, before any run."""
    actions = actions_at(6)
    assert titles(actions, ActionKind.REWRITE) == [f"Set batch size to {size}" for size in (4, 8, 32, 64, 128)]
    assert titles(actions, ActionKind.SOURCE) == [
        "Predict other batch sizes",
        "Find out whether batch size 16 fits another device",
        "Profile this training step",
        "Choose what to profile",
    ]


def test_an_edit_changes_the_digits_alone() -> None:
    """Applying an action leaves a source that differs in the number and in nothing else."""
    edits = [action.edit for action in actions_at(6) if action.edit is not None]
    assert edits
    for edit in edits:
        after = apply(PROVIDERS.encode(), edit).decode()
        assert after == PROVIDERS.replace("batch_size=16", f"batch_size={edit.new}")


def test_odd_sizes_have_powers_of_two_around() -> None:
    """A size that is no power of two can become one."""
    actions = actions_at(6, PROVIDERS.replace("=16", "=24"))
    assert titles(actions, ActionKind.REWRITE) == [f"Set batch size to {size}" for size in (8, 12, 16, 32, 48, 64, 96)]


def test_one_is_the_smallest() -> None:
    """No action leads below one sample."""
    actions = actions_at(6, PROVIDERS.replace("=16", "=1"))
    assert titles(actions, ActionKind.REWRITE) == [f"Set batch size to {size}" for size in (2, 4, 8)]


def test_limits_of_the_site_are_kept() -> None:
    """A size that the program would not use, or that no literal there gives, is not offered."""
    (site,) = snapshot_of(PROVIDERS).sites
    actions = actions_at(6, sites=(replace(site, maximum=40),))
    assert titles(actions, ActionKind.REWRITE) == [f"Set batch size to {size}" for size in (4, 8, 32)]
    multiplied = actions_at(6, sites=(replace(site, multiplier=3),))
    assert titles(multiplied, ActionKind.REWRITE) == [f"Set batch size to {size}" for size in (24, 96, 192)]


def test_titles_tell_the_effect() -> None:
    """With a model, an action's title says what it would do."""
    actions = actions_at(6, state=State.READY, profile=profile_of(STEP), model=model_of(8, 16, 32))
    double = next(action for action in actions if action.title.startswith("Set batch size to 32"))
    assert double.title == "Set batch size to 32: 178 samples/s (+11 %), peak 1.6 GiB (20 %)"
    assert "Predict other batch sizes" not in titles(actions, ActionKind.SOURCE)


def test_sizes_that_do_not_fit_are_not_offered() -> None:
    """Nobody is led into running out of memory."""
    profile = profile_of(STEP)
    profile = replace(profile, device=replace(profile.device, memory_bytes=round(1.2 * GIB)))
    actions = actions_at(6, state=State.READY, profile=profile, model=model_of(8, 16, 32))
    offered = [action.edit.new for action in actions if action.edit is not None]
    assert offered
    assert all(int(size) < 32 for size in offered)


def test_the_entry_has_them_too() -> None:
    """At the entry, the batch size can be set and found, wherever it is written."""
    (site,) = snapshot_of(PROVIDERS).sites
    actions = actions_at(9, sites=(replace(site, path="/project/config.py"),))
    assert [action.edit.path for action in actions if action.edit is not None] == ["/project/config.py"] * 5
    assert "Go to the batch size (config.py:6)" in titles(actions, ActionKind.SOURCE)


def test_any_line_of_the_workload_can_start_a_run() -> None:
    """Wherever the user is in the program, profiling is reachable; other files are left in peace."""
    entry = snapshot_of(PROVIDERS).entry
    profile = profile_of(STEP)
    assert titles(actions_at(1), ActionKind.SOURCE)[-1] == "Profile this training step"
    part = actions_at(1, "x\n", path="/project/net.py", entry=entry, sites=(), state=State.READY, profile=profile)
    assert titles(part, ActionKind.SOURCE) == [
        "Profile this training step again",
        "Open the interactive page",
        "Clear the profile",
    ]
    assert actions_at(1, "x\n", path="/project/other.py", entry=entry, sites=(), profile=profile) == ()


def test_a_run_can_be_cancelled() -> None:
    """During a run, the action is to end it, and nothing starts another one."""
    actions = actions_at(6, state=State.RUNNING)
    commands = [action.command.name for action in actions if action.command is not None]
    assert "skyline.cancel" in commands
    assert "skyline.profile" not in commands
    assert "skyline.predict" not in commands


def test_out_of_memory_has_a_remedy() -> None:
    """Where memory ran out, the fix is a smaller batch, half of it first."""
    failure = Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message="Out of memory.",
        frames=(Frame(path="/project/train.py", line=11, function="iteration"),),
    )
    actions = actions_at(11, state=State.FAILED, failure=failure)
    fixes = [action for action in actions if action.kind is ActionKind.QUICK_FIX]
    assert [action.title for action in fixes] == ["Set batch size to 8", "Set batch size to 4", "Profile again"]
    assert [action.preferred for action in fixes] == [True, False, False]
    assert all(action.fixes is not None and action.fixes.code == "out_of_memory" for action in fixes)
    assert "Profile this training step again" not in titles(actions, ActionKind.SOURCE)


def test_other_failures_can_be_tried_again() -> None:
    """At a line that failed, profiling again is the fix once the user has mended it."""
    failure = Failure(
        kind=FailureKind.EXCEPTION,
        message="no",
        frames=(Frame(path="/project/train.py", line=11, function="iteration"),),
    )
    actions = actions_at(11, state=State.FAILED, failure=failure)
    assert titles(actions, ActionKind.QUICK_FIX) == ["Profile again"]
    assert titles(actions_at(12, state=State.FAILED, failure=failure), ActionKind.QUICK_FIX) == []


def test_preview_is_applied_first() -> None:
    """The size that is being previewed is the preferred one, and offered once."""
    actions = actions_at(
        6,
        state=State.READY,
        profile=profile_of(STEP),
        preview=Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180)),
    )
    rewrites = [action for action in actions if action.kind is ActionKind.REWRITE]
    assert rewrites[0].title == "Set batch size to 32, as previewed"
    assert rewrites[0].preferred
    assert [action.edit.new for action in rewrites if action.edit is not None].count("32") == 1
    assert "Clear the preview" in titles(actions, ActionKind.SOURCE)


def test_a_line_s_own_site_is_set() -> None:
    """On a line with a site that is not the best one, it is that site which the actions change."""
    (best,) = snapshot_of(PROVIDERS).sites
    own = replace(best, path="/project/train.py", line=12, value=64, text="64", rank=1)
    edits = [action.edit for action in actions_at(12, sites=(best, own)) if action.edit is not None]
    assert {edit.line for edit in edits} == {12}
    assert "128" in {edit.new for edit in edits}


def test_evaluation_is_not_retuned() -> None:
    """The batch size of evaluation has no training step to be retuned by."""
    (site,) = snapshot_of(PROVIDERS).sites
    actions = actions_at(6, sites=(replace(site, evaluation=True),))
    assert titles(actions, ActionKind.REWRITE) == []


def test_a_range_has_the_actions_of_its_lines() -> None:
    """A selection over several lines has what each of them has."""
    shown = snapshot_of(PROVIDERS)
    assert code_actions(shown, 1, 20) == code_actions(shown, 6, 9)
