"""Advice in the editor: shown, followed, switched off."""

from pathlib import Path

from lsprotocol import types

from tests.server.conftest import PROGRAM, StartEditor
from tests.server.editor import edited

WASTEFUL = PROGRAM.replace(
    "        model(inputs).sum()",
    "        model.zero_grad(set_to_none=False)  # cost 1 0 0\n        model(inputs).sum()",
)
LINE = 14


async def test_advice_is_shown_and_followed(start_editor: StartEditor, project: Path) -> None:
    """It is information at its line with a code of its own, and its quick fix changes what it speaks of alone."""
    (project / "train.py").write_text(WASTEFUL)
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    advice = await editor.until(lambda: editor.diagnosed(uri, "zero-grad"))
    assert advice.severity == types.DiagnosticSeverity.Information
    assert advice.range.start.line == LINE - 1
    fix = next(action for action in await editor.actions(uri, LINE) if action.title.startswith("Let gradients go"))
    assert fix.kind == types.CodeActionKind.QuickFix
    assert [row.code for row in fix.diagnostics or ()] == ["zero-grad"]
    assert fix.edit is not None
    ((_, (edit,), _),) = edited(fix.edit)
    assert edit.new_text == "True"
    line = WASTEFUL.splitlines()[LINE - 1]
    assert line[edit.range.start.character : edit.range.end.character] == "False"


async def test_advice_is_switched_off_by_the_setting(start_editor: StartEditor, project: Path) -> None:
    """A code in the setting is not shown, nor is its fix."""
    (project / "train.py").write_text(WASTEFUL)
    editor = await start_editor(settings={"advice": {"disabled": ["zero-grad"]}})
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert editor.diagnosed(uri, "zero-grad") is None
    assert not [action for action in await editor.actions(uri, LINE) if "gradients" in action.title]
