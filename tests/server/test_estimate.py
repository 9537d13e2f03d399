"""Whether the program fits a device that isn't here, asked in the editor of the real worker."""

import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pygls.exceptions import JsonRpcException

from tests.server.editor import Editor

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.asyncio(loop_scope="module"),
]

PROGRAM = """\
import torch


def skyline_model_provider():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU())


def skyline_input_provider(batch_size=4):
    return (torch.randn(batch_size, 3, 66, 66),)


def skyline_iteration_provider(model):
    def iteration(inputs):
        output = model(inputs)
        loss = output.sum()
        loss.backward()
        {last}

    return iteration
"""
SIZE_LINE, DEFINITION_LINE = 8, 12
SETTINGS = {
    "python": sys.executable,
    "workerCommand": [],
    "devices": ["24GiB"],
    "measure": {"timeBudgetSeconds": 0.3},
    "predictionBudgetSeconds": 10,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """One editor and one worker for all."""
    editor = Editor(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("cache"), settings=SETTINGS)
    await editor.start()
    yield editor
    assert await editor.finish() == 0


def open_program(editor: Editor, name: str, last: str = "return loss") -> str:
    """A program with a last statement of its own; its URI."""
    (Path(editor.root) / name).write_text(PROGRAM.format(last=last))
    return editor.open(name)


async def lens_titles(editor: Editor, uri: str) -> list[str]:
    return [lens.command.title for lens in await editor.lenses(uri) if lens.command is not None]


async def test_a_batch_that_this_machine_could_not_hold_is_answered_for(editor: Editor) -> None:
    """Nothing is allocated: 16 planes of 64 x 64 floats a sample, and those of the input, give terabytes."""
    uri = open_program(editor, "huge.py")
    answer = await editor.command("skyline.estimate", {"uri": uri, "device": "A100-40GB", "batchSize": 10_000_000})
    assert (answer["fits"], answer["allocated"]) == (False, False)
    assert answer["peakBytes"]["value"] > 10_000_000 * 16 * 64 * 64 * 4
    assert "does not fit" in answer["text"]


async def test_the_answer_stands_at_the_batch_size_and_at_the_step(editor: Editor) -> None:
    """Lens and hover have the asked device and the settings' one; another batch size in the source is a question again,
    and the answer outlives the session."""
    uri = open_program(editor, "shown.py")
    assert "fits 24GiB?" in await lens_titles(editor, uri)
    answer = await editor.command("skyline.estimate", {"uri": uri, "device": "A100-40GB"})
    assert answer["batchSize"] == 4
    assert answer["runTimeMs"] is None
    titles = await lens_titles(editor, uri)
    assert any(title.startswith("A100 SXM 40GB: peak") and title.endswith("of 40 GiB, fits") for title in titles)
    assert any(title.startswith("24GiB: peak") for title in titles)
    assert "with allowance" in (await editor.hover(uri, DEFINITION_LINE) or "")
    assert "A100 SXM 40GB" in (await editor.hover(uri, SIZE_LINE, 45) or "")

    editor.replace(uri, "batch_size=4", "batch_size=6")
    assert "fits A100 SXM 40GB?" in await lens_titles(editor, uri)
    editor.replace(uri, "batch_size=6", "batch_size=4")
    editor.replace(uri, "Conv2d(3, 16", "Conv2d(3, 32")
    assert "fits A100 SXM 40GB?" in await lens_titles(editor, uri)

    other = Editor(editor.root, editor.cache, settings=SETTINGS)
    await other.start()
    again = other.open("shown.py")
    while not any(title.startswith("A100 SXM 40GB: peak") for title in await lens_titles(other, again)):
        seen = len(other.refreshed)
        await other.until(lambda seen=seen: len(other.refreshed) > seen)  # type: ignore[misc]
    await other.finish()


async def test_time_is_estimated_from_a_profile(editor: Editor) -> None:
    """Once the step was profiled here, the answer has the time there, as an interval."""
    uri = open_program(editor, "timed.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    answer = await editor.command("skyline.estimate", {"uri": uri, "device": "A100-40GB"})
    assert answer["timedBatchSize"] == 4
    assert 0 < answer["runTimeMs"]["low"] < answer["runTimeMs"]["value"] < answer["runTimeMs"]["high"]
    assert "an iteration, estimate" in answer["text"]


async def test_a_line_that_needs_values_is_named_and_real_runs_are_made(editor: Editor) -> None:
    """Where tensors without data won't do, the peak comes from real runs, and the answer says which line it was."""
    uri = open_program(editor, "values.py", last="print(loss.item())")
    answer = await editor.command("skyline.estimate", {"uri": uri, "device": "24GiB"})
    assert (answer["fits"], answer["allocated"]) == (True, True)
    assert "values.py:17: This line needs the values of a tensor" in answer["text"]
    assert answer["peakBytes"]["low"] > 4 * 16 * 64 * 64 * 4


async def test_an_unknown_device_is_answered_with_its_neighbours(editor: Editor) -> None:
    """A name with a slip in it is refused, and the nearest names are told."""
    uri = open_program(editor, "unknown.py")
    with pytest.raises(JsonRpcException, match=r"near: .*A100"):
        await editor.command("skyline.estimate", {"uri": uri, "device": "A1000"})


async def test_without_a_device_the_user_is_asked(editor: Editor) -> None:
    """The settings' devices are offered first, then those of the table, as `skyline.devices` lists them."""
    uri = open_program(editor, "asked.py")
    editor.answer = "24GiB"
    assert await editor.command("skyline.estimate", {"uri": uri}) is None
    await editor.until(lambda: any("Batch size 4 on 24GiB: peak" in one.message for one in editor.messages))
    names = [device["device"] for device in await editor.command("skyline.devices", {"uri": uri})]
    assert names[0] == "24GiB"
    assert [action.title for action in editor.questions[-1].actions or ()] == names
