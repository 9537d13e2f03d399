"""When programs run, when they don't, and what becomes of it when they go wrong."""

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.conftest import PROGRAM, StartEditor
from tests.server.editor import LIMIT_S, Editor


async def profile(editor: Editor, uri: str) -> None:
    await editor.command("skyline.profile", {"uri": uri})


async def blocked(editor: Editor, message: str = "blocked") -> None:
    """Wait until the program blocks, by its progress."""

    def shown() -> bool:
        return any(message in (getattr(row, "message", None) or "") for row in all_progress(editor))

    await editor.until(shown)


def all_progress(editor: Editor) -> list[object]:
    return [row for rows in editor.progress_reports.values() for row in rows]


def write(editor: Editor, text: str, name: str = "train.py") -> str:
    (editor.root / name).write_text(text)
    return editor.open(name)


async def state(editor: Editor, uri: str) -> str:
    return (await editor.command("skyline.status", {"uri": uri}))["state"]


async def test_nothing_runs_because_a_folder_was_opened(start_editor: StartEditor) -> None:
    """Not on open, change or save, nor when features are asked for; not even the worker is started."""
    editor = await start_editor()
    uri = editor.open("train.py")
    editor.replace(uri, "batch_size=16", "batch_size=8")
    editor.save(uri)
    await editor.hints(uri)
    await editor.lenses(uri)
    await editor.hover(uri, 8)
    await editor.actions(uri, 8)
    assert await state(editor, uri) == "idle"
    assert await editor.finish() == 0
    assert editor.runs() == []
    assert not editor.logged("worker")


async def test_an_untrusted_workspace_is_not_run(start_editor: StartEditor) -> None:
    """The commands that would are refused with the way out; static features work."""
    editor = await start_editor(trusted=False, settings={"trusted": True})
    uri = editor.open("train.py")
    for command in ("skyline.profile", "skyline.predict"):
        with pytest.raises(JsonRpcException, match="not trusted"):
            await editor.command(command, {"uri": uri, "batchSize": 8})
    assert (await editor.command("skyline.sites", {"uri": uri}))[0]["batchSize"] == 16
    assert editor.runs() == []


async def test_a_save_profiles_again_after_the_first_run(start_editor: StartEditor) -> None:
    """Hints follow their lines meanwhile, the edited line's hint goes, and a save without a change runs nothing."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await profile(editor, uri)
    await editor.profiled(uri)
    editor.save(uri)
    editor.replace(uri, "import torch\n", "import torch\nimport math\n")
    editor.replace(uri, "nn.Linear(4, 4)  # cost 1", "nn.Linear(4, 4)  # cost 2")
    assert list(await editor.hints(uri)) == [15]
    assert await state(editor, uri) == "stale"
    summary = await editor.until(
        lambda: (row := editor.diagnosed(uri, "profile")) and row.message.startswith("Before") and row
    )
    assert summary.range.start.line == 13 - 1
    editor.save(uri)
    await editor.profiled(uri)
    assert list(await editor.hints(uri)) == [6, 15]
    assert len(editor.runs()) == 2


async def test_undoing_an_edit_makes_the_results_current_again(start_editor: StartEditor) -> None:
    """They are those of this very text."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await profile(editor, uri)
    await editor.profiled(uri)
    editor.replace(uri, "batch_size=16", "batch_size=17")
    assert await state(editor, uri) == "stale"
    editor.replace(uri, "batch_size=17", "batch_size=16")
    assert await state(editor, uri) == "ready"


async def test_saves_are_left_alone_where_the_user_wants_that(start_editor: StartEditor) -> None:
    """`profileOnSave` false."""
    editor = await start_editor(settings={"profileOnSave": False})
    uri = editor.open("train.py")
    await profile(editor, uri)
    await editor.profiled(uri)
    editor.replace(uri, "batch_size=16", "batch_size=8")
    editor.save(uri)
    assert await state(editor, uri) == "stale"
    assert len(editor.runs()) == 1


async def test_a_save_during_a_run_supersedes_it(start_editor: StartEditor) -> None:
    """The run under way ends, and one of the new text begins; a save of the same text leaves it alone."""
    editor = await start_editor()
    uri = write(editor, PROGRAM + "# worker: block\n")
    await profile(editor, uri)
    await blocked(editor)
    editor.save(uri)
    assert await state(editor, uri) == "running"
    editor.replace(uri, "# worker: block\n", "")
    editor.save(uri)
    await editor.profiled(uri)
    assert [run["run_id"] for run in editor.runs()] == [1, 2]


async def test_cancel_from_the_progress_bar_and_by_command(start_editor: StartEditor) -> None:
    """At once; the state is what it was before, and the next run works."""
    editor = await start_editor()
    uri = write(editor, PROGRAM + "# worker: block\n")
    await profile(editor, uri)
    await blocked(editor)
    (token,) = editor.progress_reports
    editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token=token))
    await editor.until(lambda: isinstance(editor.progress_reports[token][-1], types.WorkDoneProgressEnd))
    assert await state(editor, uri) == "idle"
    await profile(editor, uri)
    assert (await editor.command("skyline.cancel"))["cancelled"] is True
    assert (await editor.command("skyline.cancel"))["cancelled"] is False
    assert await state(editor, uri) == "idle"
    editor.replace(uri, "# worker: block\n", "")
    editor.save(uri)
    await editor.profiled(uri)


async def test_a_failure_is_shown_at_its_line_and_goes_with_the_next_success(start_editor: StartEditor) -> None:
    """It stays with its line through edits."""
    editor = await start_editor()
    uri = write(editor, PROGRAM.replace("(4, 4)  # cost 1 2 1048576", "(4, 4)  # worker: raise no such layer"))
    await profile(editor, uri)
    failure = await editor.until(lambda: editor.diagnosed(uri, "exception"))
    assert (failure.range.start.line, failure.severity) == (5 - 1, types.DiagnosticSeverity.Error)
    assert "no such layer" in failure.message
    assert await state(editor, uri) == "failed"
    editor.replace(uri, "import torch\n", "\n\nimport torch\n")
    await editor.until(
        lambda: (row := editor.diagnosed(uri, "exception")) is not None and row.range.start.line == 7 - 1
    )
    editor.replace(uri, "# worker: raise no such layer", "")
    editor.save(uri)
    await editor.profiled(uri)
    assert editor.diagnosed(uri, "exception") is None


async def test_the_death_of_the_worker_is_told_and_the_server_lives(start_editor: StartEditor) -> None:
    """With what it wrote last; the next run works."""
    editor = await start_editor()
    uri = write(editor, PROGRAM + "# worker: die 3\n")
    await profile(editor, uri)
    failure = await editor.until(lambda: editor.diagnosed(uri, "crashed"))
    assert "exited with code 3" in failure.message
    assert "dying now" in failure.message
    editor.replace(uri, "# worker: die 3\n", "")
    editor.save(uri)
    await editor.profiled(uri)


async def test_what_the_program_writes_reaches_the_log_alone(start_editor: StartEditor) -> None:
    """Never the protocol."""
    editor = await start_editor()
    uri = write(editor, PROGRAM + "# worker: print Content-Length: 3\n# worker: print hello\n")
    await profile(editor, uri)
    await editor.profiled(uri)
    await editor.until(lambda: editor.logged("Content-Length: 3\nhello"))


async def test_a_worker_that_can_run_nothing_says_why(start_editor: StartEditor) -> None:
    """At the program, with the interpreter that was chosen and the reason."""
    editor = await start_editor()
    (editor.root / "worker.json").write_text('{"problem": "torch is not installed there; install it."}')
    uri = editor.open("train.py")
    await profile(editor, uri)
    failure = await editor.until(lambda: editor.diagnosed(uri, "environment"))
    assert "torch is not installed there" in failure.message
    assert "was chosen because of" in failure.message


async def test_an_interpreter_that_is_not_there_is_said(start_editor: StartEditor) -> None:
    """Nothing else is run in its place."""
    editor = await start_editor(settings={"python": "nowhere/python", "workerCommand": []})
    uri = editor.open("train.py")
    await profile(editor, uri)
    failure = await editor.until(lambda: editor.diagnosed(uri, "environment"))
    assert "nowhere/python" in failure.message


async def test_results_are_there_again_when_the_project_is_opened_unchanged(
    start_editor: StartEditor, project: Path
) -> None:
    """At once and without a run; saves run nothing until the user asks again."""
    first = await start_editor()
    uri = first.open("train.py")
    await first.command("skyline.predict", {"uri": uri, "batchSize": 64})
    measured = (await first.command("skyline.status", {"uri": uri}))["measuredBatchSizes"]
    await first.finish()
    runs = len(first.runs())

    second = await start_editor("neovim-0.11.4")
    uri = second.open("train.py")
    await second.profiled(uri)
    assert list(await second.hints(uri)) == [5, 14]
    status = await second.command("skyline.status", {"uri": uri})
    assert status["measuredBatchSizes"] == measured
    second.replace(uri, "batch_size=16", "batch_size=48")
    second.save(uri)
    assert await state(second, uri) == "stale"
    await second.finish()
    assert len(second.runs()) == runs

    (project / "train.py").write_text(PROGRAM.replace("Linear", "Bilinear"))
    third = await start_editor()
    uri = third.open("train.py")
    assert await state(third, uri) == "idle"


async def test_samples_outlive_the_retuning_they_led_to(start_editor: StartEditor) -> None:
    """After the edit one run is needed, not one for each size."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.predict", {"uri": uri, "batchSize": 32})
    measured = (await editor.command("skyline.status", {"uri": uri}))["measuredBatchSizes"]
    runs = len(editor.runs())
    assert runs == len(measured) > 2
    await editor.command("skyline.setBatchSize", {"uri": uri, "batchSize": 32})
    editor.save(uri)
    await editor.profiled(uri)
    status = await editor.command("skyline.status", {"uri": uri})
    assert (status["profile"]["batchSize"], status["measuredBatchSizes"]) == (32, sorted({*measured, 32}))
    assert len(editor.runs()) == runs + 1


async def test_clear_forgets_and_disarms(start_editor: StartEditor) -> None:
    """No hints, no diagnostics, no run on save."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await profile(editor, uri)
    await editor.profiled(uri)
    await editor.command("skyline.clear", {"uri": uri})
    await editor.until(lambda: editor.diagnosed(uri, "profile") is None)
    assert await editor.hints(uri) == {}
    editor.replace(uri, "batch_size=16", "batch_size=8")
    editor.save(uri)
    assert await state(editor, uri) == "idle"


async def test_a_prediction_can_be_given_up(start_editor: StartEditor) -> None:
    """`$/cancelRequest` ends the measuring, too."""
    editor = await start_editor()
    uri = write(editor, PROGRAM + "# worker: block\n")
    params = types.ExecuteCommandParams(command="skyline.predict", arguments=[{"uri": uri, "batchSize": 8}])
    asked = asyncio.ensure_future(
        editor.protocol.send_request_async(types.WORKSPACE_EXECUTE_COMMAND, params, msg_id="the-prediction")
    )
    await blocked(editor)
    editor.cancel_request(types.CancelParams(id="the-prediction"))
    with pytest.raises(JsonRpcException) as raised:
        await asyncio.wait_for(asked, LIMIT_S)
    assert raised.value.code == types.LSPErrorCodes.RequestCancelled
    await editor.until(
        lambda: all(isinstance(rows[-1], types.WorkDoneProgressEnd) for rows in editor.progress_reports.values())
    )
    assert await state(editor, uri) == "idle"


async def test_a_run_at_another_batch_size_leaves_the_source_alone(start_editor: StartEditor) -> None:
    """`skyline.profile` with `batchSize`."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri, "batchSize": 64})
    summary = await editor.profiled(uri)
    assert "42 ms/iteration" in summary.message
    assert (editor.root / "train.py").read_text() == PROGRAM
