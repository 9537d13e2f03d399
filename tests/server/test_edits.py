"""Edits change the digits alone, and are believed by the text only."""

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.conftest import PROGRAM, StartEditor
from tests.server.editor import Editor, edited

SCRIPT = """\
import yaml
from torch.utils.data import DataLoader

train_loader = DataLoader(data, batch_size=32)
for batch in train_loader:
    model(batch).backward()
    optimizer.step()
"""


async def set_batch_size(editor: Editor, uri: str, size: int, **more: object) -> dict[str, object]:
    answer: dict[str, object] = await editor.command("skyline.setBatchSize", {"uri": uri, "batchSize": size, **more})
    return answer


@pytest.mark.parametrize("client", ["helix-25.07.1", "vscode-1.139.1", "emacs-eglot-1.17.30"])
async def test_columns_are_in_the_clients_units(client: str, start_editor: StartEditor, project: Path) -> None:
    """UTF-8, UTF-16, UTF-32: an astral character before the digits moves none of them."""
    program = PROGRAM.replace("(batch_size=16)", "(note='\U0001f600\u00e9', batch_size=16)")
    (project / "train.py").write_text(program, encoding="utf-8")
    editor = await start_editor(client)
    uri = editor.open("train.py")
    assert (await set_batch_size(editor, uri, 48))["applied"] is True
    assert editor.texts[uri] == program.replace("=16)", "=48)")
    (action,) = [action for action in await editor.actions(uri, 8) if action.title.startswith("Set batch size to 96")]
    assert action.edit is not None
    ((_, (edit,), _),) = edited(action.edit)
    editor.change(uri, edit.range, edit.new_text)
    assert editor.texts[uri] == program.replace("=16)", "=96)")


async def test_line_ends_and_marks_stay(start_editor: StartEditor, project: Path) -> None:
    """CR LF, a byte order mark, form feeds and U+2028 above the line."""
    text = ("\ufeff" + PROGRAM.replace("import torch\n", "import torch\n\f\n# \u2028\n")).replace("\n", "\r\n")
    (project / "train.py").write_bytes(text.encode())
    editor = await start_editor()
    uri = editor.open("train.py")
    answer = await set_batch_size(editor, uri, 8)
    assert (answer["applied"], answer["line"]) == (True, 10)
    assert editor.texts[uri] == text[1:].replace("=16)", "=8)")


async def test_an_edit_is_believed_by_the_text_and_not_by_the_clients_word(start_editor: StartEditor) -> None:
    """Neovim says "applied" of what it dropped."""
    editor = await start_editor("neovim-0.11.4")
    editor.drops_edits = True
    uri = editor.open("train.py")
    answer = await set_batch_size(editor, uri, 8)
    assert answer["applied"] is False
    assert editor.texts[uri] == PROGRAM
    await editor.until(lambda: any("was not changed" in message.message for message in editor.messages))


async def test_the_batch_size_that_is_there_needs_no_edit(start_editor: StartEditor) -> None:
    """And is a success."""
    editor = await start_editor()
    uri = editor.open("train.py")
    assert (await set_batch_size(editor, uri, 16))["applied"] is True
    assert editor.edits == []


async def test_a_site_is_named_by_its_line(start_editor: StartEditor) -> None:
    """And one that is not there is refused."""
    editor = await start_editor()
    uri = editor.open("train.py")
    with pytest.raises(JsonRpcException, match="No batch size is written at line 3") as raised:
        await set_batch_size(editor, uri, 8, site={"uri": uri, "line": 3})
    assert raised.value.code == types.LSPErrorCodes.RequestFailed
    assert (await set_batch_size(editor, uri, 8, site={"uri": uri, "line": 8}))["applied"] is True


async def test_the_user_is_asked_where_no_size_is_given(start_editor: StartEditor) -> None:
    """By the lens; the answer to the command does not wait for theirs."""
    editor = await start_editor()
    uri = editor.open("train.py")
    lens = next(
        lens.command
        for lens in await editor.lenses(uri)
        if lens.command is not None and lens.command.command == "skyline.setBatchSize"
    )
    editor.answer = "32"
    assert await editor.command(lens.command, *(lens.arguments or ())) is None
    await editor.until(lambda: "batch_size=32" in editor.texts[uri])
    editor.answer = None
    await editor.command(lens.command, *(lens.arguments or ()))
    await editor.until(lambda: len(editor.questions) == 2)
    assert len(editor.edits) == 1


async def test_a_script_is_sampled_as_the_edit_would_leave_it(start_editor: StartEditor, project: Path) -> None:
    """By the literal replaced in memory; the file stays as it is."""
    (project / "train.py").unlink()
    (project / "main.py").write_text(SCRIPT)
    editor = await start_editor()
    uri = editor.open("main.py")
    prediction = await editor.command("skyline.predict", {"uri": uri, "batchSize": 128})
    assert prediction["runTimeMs"]["low"] <= 74 <= prediction["runTimeMs"]["high"]
    first, *others = editor.runs()
    assert (first["overrides"], first["batch_size"]) == ([], None)
    assert others
    for run in others:
        (override,) = run["overrides"]
        assert SCRIPT.encode()[override["start"] : override["end"]].decode() == override["old"] == "32"
        assert run["goal"] == "sample"
    assert (project / "main.py").read_text() == SCRIPT
