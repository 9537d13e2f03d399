"""From opening a file to its costs and another batch size, as each real editor would go through it."""

import pytest

from tests.server.conftest import StartEditor
from tests.server.editor import client_names, edited


@pytest.mark.parametrize("client", client_names())
async def test_the_main_job_in_every_editor(client: str, start_editor: StartEditor) -> None:
    """Open, profile, see the costs, predict, retune by the digits alone; with what this client declares."""
    editor = await start_editor(client)
    uri = editor.open("train.py")
    commands = [lens.command for lens in await editor.lenses(uri) if lens.command is not None]
    profile = next(command for command in commands if command.title == "Profile this training step")
    assert await editor.hints(uri) == {}
    assert editor.runs() == []

    started = await editor.command(profile.command, *(profile.arguments or ()))
    assert started["state"] == "running"
    summary = await editor.profiled(uri)
    assert summary.range.start.line == 12 - 1
    assert "18 ms/iteration" in summary.message
    hints = await editor.hints(uri)
    assert {line: "%" in text and "fwd" in text and "MiB" in text for line, text in hints.items()} == {
        5: True,
        14: True,
    }
    hover = await editor.hover(uri, 14)
    assert hover is not None
    assert "56 %" in hover
    titles = [lens.command.title for lens in await editor.lenses(uri) if lens.command is not None]
    assert any("18 ms/iteration" in title for title in titles)
    assert any(title.startswith("batch size 16") for title in titles)

    actions = await editor.actions(uri, 8)
    double = next(action for action in actions if action.title.startswith("Set batch size to 32"))
    assert double.edit is not None
    ((document, (edit,), version),) = edited(double.edit)
    assert (document, edit.new_text) == (uri, "32")
    assert version == (1 if double.edit.document_changes is not None else None)

    prediction = await editor.command("skyline.predict", {"uri": uri, "batchSize": 64})
    assert prediction["runTimeMs"]["low"] <= 42 <= prediction["runTimeMs"]["high"]
    assert prediction["peakBytes"]["low"] <= 7_400_000 <= prediction["peakBytes"]["high"]
    assert prediction["fits"] is True

    answer = await editor.command("skyline.setBatchSize", {"uri": uri, "batchSize": 48})
    assert (answer["applied"], answer["line"], answer["old"], answer["new"]) == (True, 8, "16", "48")
    before = (editor.root / "train.py").read_text()
    assert editor.texts[uri] == before.replace("batch_size=16", "batch_size=48")
    assert await editor.finish() == 0
