"""Folders, programs and settings: which project a file belongs to, what is run there, and how."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from skyline_lsp.server.uris import uri_of
from tests.server.conftest import PROGRAM, StartEditor
from tests.server.editor import FAKE_WORKER


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def status(editor: Any, name: str) -> Any:
    return await editor.command("skyline.status", {"uri": editor.uri(name)})


async def test_each_folder_has_its_own_session(start_editor: StartEditor, tmp_path: Path) -> None:
    """Two run at the same time; a folder that goes takes its results along."""
    for name in ("a", "b"):
        write(tmp_path / name / "train.py", PROGRAM)
    editor = await start_editor(root=tmp_path, folders=[tmp_path / "a", tmp_path / "b"])
    uris = [editor.open(f"{name}/train.py") for name in ("a", "b")]
    for uri in uris:
        await editor.command("skyline.profile", {"uri": uri})
    for uri in uris:
        await editor.profiled(uri)
    assert (await status(editor, "a/train.py"))["root"] == str(tmp_path / "a")
    closed = types.TextDocumentIdentifier(uri=uris[1])
    editor.text_document_did_close(types.DidCloseTextDocumentParams(text_document=closed))
    gone = types.WorkspaceFolder(uri=uri_of(str(tmp_path / "b")), name="b")
    editor.workspace_did_change_workspace_folders(
        types.DidChangeWorkspaceFoldersParams(event=types.WorkspaceFoldersChangeEvent(added=[], removed=[gone]))
    )
    await editor.until(lambda: editor.diagnosed(uris[1], "profile") is None)
    assert editor.diagnosed(uris[0], "profile") is not None


async def test_the_innermost_folder_counts(start_editor: StartEditor, tmp_path: Path) -> None:
    """Where one workspace folder lies in another."""
    write(tmp_path / "inner" / "train.py", PROGRAM)
    editor = await start_editor(root=tmp_path, folders=[tmp_path, tmp_path / "inner"])
    editor.open("inner/train.py")
    assert (await status(editor, "inner/train.py"))["root"] == str(tmp_path / "inner")


async def test_a_file_outside_of_any_folder_has_its_own_project(start_editor: StartEditor, tmp_path: Path) -> None:
    """The nearest marked folder upwards, else its own."""
    write(tmp_path / "lone" / "pkg" / "train.py", PROGRAM)
    write(tmp_path / "lone" / "pyproject.toml", "")
    write(tmp_path / "single" / "train.py", PROGRAM)
    editor = await start_editor(root=tmp_path, folders=[])
    editor.open("lone/pkg/train.py")
    editor.open("single/train.py")
    assert (await status(editor, "lone/pkg/train.py"))["root"] == str(tmp_path / "lone")
    assert (await status(editor, "single/train.py"))["root"] == str(tmp_path / "single")


async def test_a_folder_opened_through_a_link_is_one_project(start_editor: StartEditor, tmp_path: Path) -> None:
    """What is shown carries the client's spelling."""
    write(tmp_path / "real" / "train.py", PROGRAM)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    editor = await start_editor(root=tmp_path / "link")
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert sorted(await editor.hints(uri)) == [5, 14]


async def test_the_nearest_program_is_profiled_unless_the_user_chooses(
    start_editor: StartEditor, project: Path
) -> None:
    """By a path, or asked; and back again."""
    (project / "train.py").unlink()
    write(project / "a" / "provider.py", PROGRAM)
    write(project / "a" / "model.py", "x = 1\n")
    write(project / "b" / "provider.py", PROGRAM)
    editor = await start_editor()
    editor.open("a/model.py")
    editor.open("b/provider.py")
    await editor.command("skyline.sites", {"uri": editor.uri("a/model.py")})
    assert (await status(editor, "a/model.py"))["workload"]["path"] == "a/provider.py"
    assert (await status(editor, "b/provider.py"))["workload"]["path"] == "b/provider.py"
    chosen = await editor.command("skyline.chooseWorkload", {"path": str(project / "b" / "provider.py")})
    assert chosen["workload"]["path"] == "b/provider.py"
    assert (await status(editor, "a/model.py"))["workload"]["path"] == "b/provider.py"
    editor.answer = "open file"
    assert await editor.command("skyline.chooseWorkload") is None
    await editor.until(lambda: editor.questions)
    titles = [action.title for action in editor.questions[0].actions or ()]
    assert titles[:2] == ["a/provider.py", "b/provider.py"]
    assert (await status(editor, "a/model.py"))["workload"]["path"] == "a/provider.py"


async def test_a_project_without_a_program_says_what_to_write(start_editor: StartEditor, project: Path) -> None:
    """For profiling, predicting, and setting the batch size."""
    (project / "train.py").write_text("x = 1\n")
    editor = await start_editor()
    uri = editor.open("train.py")
    for command in ("skyline.profile", "skyline.predict", "skyline.setBatchSize"):
        with pytest.raises(JsonRpcException, match="skyline_model_provider"):
            await editor.command(command, {"uri": uri, "batchSize": 8})


async def test_programs_are_found_while_the_source_is_broken(start_editor: StartEditor) -> None:
    """Lenses stay where they are while a bracket is open, and move with their lines."""
    editor = await start_editor()
    uri = editor.open("train.py")

    async def line() -> list[int]:
        return [
            lens.range.start.line + 1
            for lens in await editor.lenses(uri)
            if lens.command is not None and lens.command.command == "skyline.profile"
        ]

    assert await line() == [12]
    editor.replace(uri, "import torch\n", "import torch\nx = (\n")
    assert await line() == [13]
    editor.replace(uri, "x = (\n", "")
    assert await line() == [12]


async def test_a_program_written_in_the_editor_is_found(start_editor: StartEditor, project: Path) -> None:
    """Before it is saved."""
    (project / "train.py").write_text("\n")
    editor = await start_editor()
    uri = editor.open("train.py")
    assert await editor.lenses(uri) == []
    editor.replace(uri, "\n", PROGRAM)
    while True:
        editor.refreshed.clear()
        if await editor.lenses(uri):
            break
        await editor.until(lambda: "lenses" in editor.refreshed)


async def test_run_configurations_reach_the_worker(start_editor: StartEditor, project: Path) -> None:
    """Program, arguments, folder, environment."""
    write(project / "scripts" / "run.py", PROGRAM.replace("skyline_", "other_") + "optimizer.step()  # train\n")
    settings = {
        "env": {"A": "1"},
        "timeLimitSeconds": 33,
        "measure": {"timeBudgetSeconds": 2},
        "device": "cpu",
        "run": {"small": {"program": "scripts/run.py", "args": ["--n", "3"], "cwd": "scripts", "env": {"B": "2"}}},
    }
    editor = await start_editor(settings=settings)
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(editor.uri("scripts/run.py"))
    (run,) = editor.runs()
    entry = run["entry"]
    assert (entry["kind"], entry["path"]) == ("script", str(project / "scripts" / "run.py"))
    assert (entry["arguments"], entry["working_directory"]) == (["--n", "3"], str(project / "scripts"))
    assert entry["environment"] == {"A": "1", "B": "2"}
    assert (run["time_limit_s"], run["measure"]["time_budget_s"], run["device"]) == (33, 2, "cpu")


async def test_a_module_is_run_as_one(start_editor: StartEditor, project: Path) -> None:
    """`python -m package`, by its `__main__`."""
    write(project / "pkg" / "__main__.py", "x = 1\n")
    editor = await start_editor(settings={"run": {"m": {"module": "pkg"}}})
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(editor.uri("pkg/__main__.py"))
    entry = editor.runs()[0]["entry"]
    assert (entry["kind"], entry["module"]) == ("module", "pkg")


async def test_bad_settings_are_told_once_and_defaults_count(start_editor: StartEditor) -> None:
    """By a message that names the setting."""
    editor = await start_editor(settings={"hints": {"thresholdPercent": "many"}})
    uri = editor.open("train.py")
    await editor.until(lambda: any("`hints.thresholdPercent`" in message.message for message in editor.messages))
    editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert sorted(await editor.hints(uri)) == [5, 14]
    assert sum("`hints.thresholdPercent`" in message.message for message in editor.messages) == 1


async def test_changed_settings_are_in_force_at_once(start_editor: StartEditor) -> None:
    """Hints off and on, a threshold."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    for setting, expected in (({"thresholdPercent": 50}, [14]), ({"enabled": False}, []), ({}, [5, 14])):
        editor.set_configuration(setting, section="skyline.hints")
        editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
        await editor.command("skyline.status", {"uri": uri})
        assert sorted(await editor.hints(uri)) == expected


async def test_a_repository_can_not_choose_what_is_executed(start_editor: StartEditor, project: Path) -> None:
    """The attempt is shown in pyproject.toml, and what it names is not run."""
    evil = write(project / "evil.py", f"open({str(project / 'executed')!r}, 'w')\n")
    write(
        project / "pyproject.toml",
        f"[tool.skyline]\nworker-command = ['python', '{evil}']\npython = '{evil}'\nprofile-on-save = false\n",
    )
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert not (project / "executed").exists()
    rows = editor.diagnostics[editor.uri("pyproject.toml")]
    assert [(row.code, row.range.start.line, row.severity) for row in rows] == [
        ("setting", 1, types.DiagnosticSeverity.Warning),
        ("setting", 2, types.DiagnosticSeverity.Warning),
    ]
    editor.replace(uri, "batch_size=16", "batch_size=8")
    editor.save(uri)
    assert (await status(editor, "train.py"))["state"] == "stale"


async def test_settings_in_pyproject_follow_its_saves(start_editor: StartEditor, project: Path) -> None:
    """No restart is needed."""
    write(project / "pyproject.toml", "[tool.skyline.hints]\nenabled = false\n")
    editor = await start_editor()
    uri = editor.open("train.py")
    settings = editor.open("pyproject.toml")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert await editor.hints(uri) == {}
    editor.replace(settings, "enabled = false", "enabled = true")
    editor.save(settings)
    await editor.command("skyline.status", {"uri": uri})
    assert sorted(await editor.hints(uri)) == [5, 14]


async def test_initialization_options_serve_a_client_without_configuration(
    start_editor: StartEditor, project: Path
) -> None:
    """And settings that it pushes outweigh them."""
    editor = await start_editor(start=False)
    assert editor.declared.workspace is not None
    editor.declared.workspace.configuration = False
    editor.initialization = {
        "workerCommand": [sys.executable, str(FAKE_WORKER)],
        "hints": {"enabled": False},
        "lenses": {"enabled": False},
    }
    await editor.start()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert await editor.hints(uri) == {}
    pushed = {"skyline": {"hints": {"enabled": True}}}
    editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=pushed))
    await editor.command("skyline.status", {"uri": uri})
    assert sorted(await editor.hints(uri)) == [5, 14]
    assert await editor.lenses(uri) == []


async def test_files_changed_by_others_make_results_stale(start_editor: StartEditor, project: Path) -> None:
    """And run nothing."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    editor.text_document_did_close(
        types.DidCloseTextDocumentParams(text_document=types.TextDocumentIdentifier(uri=uri))
    )
    (project / "train.py").write_text(PROGRAM.replace("=16", "=8"))
    os.utime(project / "train.py")
    event = types.FileEvent(uri=uri, type=types.FileChangeType.Changed)
    editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes=[event]))
    await editor.until(
        lambda: (row := editor.diagnosed(uri, "profile")) is not None and row.message.startswith("Before")
    )
    assert len(editor.runs()) == 1
