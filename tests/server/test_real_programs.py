"""The whole way with the real worker: programs that behave, and programs that do anything."""

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.editor import Editor

pytestmark = [
    pytest.mark.torch,
    # Looked for, not imported: nothing here needs torch but the worker.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.asyncio(loop_scope="module"),
]

PROGRAM = """\
import torch


def skyline_model_provider():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU())


def skyline_input_provider(batch_size=32):
    return (torch.randn(batch_size, 3, 64, 64),)


def skyline_iteration_provider(model):
    def iteration(inputs):
{body}
        output = model(inputs)
        output.sum().backward()

    return iteration
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """One editor and one worker for all: what one program does must not harm the next."""
    root = tmp_path_factory.mktemp("project")
    settings = {
        "python": sys.executable,
        "workerCommand": [],
        "measure": {"timeBudgetSeconds": 0.3},
        "predictionBudgetSeconds": 10,
    }
    editor = Editor(root, tmp_path_factory.mktemp("cache"), settings=settings)
    await editor.start()
    yield editor
    assert await editor.finish() == 0


async def profile(editor: Editor, name: str, body: str = "        pass") -> str:
    """Start a run of a program whose iteration does something first; the URI of its file."""
    path = Path(editor.root / f"{name}.py")
    path.write_text(PROGRAM.format(body=body))
    uri = editor.open(path.name)
    await editor.command("skyline.profile", {"uri": uri})
    return uri


async def failed(editor: Editor, uri: str) -> types.Diagnostic:
    """Wait for the diagnostic of a failure."""
    return await editor.until(
        lambda: next(
            (row for row in editor.diagnostics.get(uri, ()) if row.severity == types.DiagnosticSeverity.Error), None
        )
    )


async def check_lives(editor: Editor) -> None:
    """The next run works."""
    uri = await profile(editor, "next")
    await editor.profiled(uri)
    await editor.command("skyline.clear", {"uri": uri})
    await editor.until(lambda: editor.diagnosed(uri, "profile") is None)


async def test_a_model_is_profiled_predicted_and_retuned(editor: Editor) -> None:
    """The main job."""
    uri = await profile(editor, "main_job")
    await editor.profiled(uri)
    assert 15 in await editor.hints(uri)
    status = await editor.command("skyline.status", {"uri": uri})
    assert (status["profile"]["batchSize"], status["profile"]["device"]["kind"]) == (32, "cpu")
    asked = editor.command("skyline.predict", {"uri": uri, "batchSize": 48})
    (answer,) = await asyncio.gather(asked, return_exceptions=True)
    if isinstance(answer, JsonRpcException):
        # On a machine that is busy with something else time may not grow with the batch.
        assert "can't be predicted" in answer.message
    else:
        estimate = answer["samplesPerSecond"]
        assert 0 < estimate["low"] <= estimate["value"] <= estimate["high"]
    status = await editor.command("skyline.status", {"uri": uri})
    assert len(status["measuredBatchSizes"]) > 1
    assert (await editor.command("skyline.setBatchSize", {"uri": uri, "batchSize": 48}))["applied"] is True
    editor.save(uri)
    status = await editor.reaches(uri, "ready")
    assert status["profile"]["batchSize"] == 48


@pytest.mark.parametrize(
    ("name", "body", "written"),
    [
        ("prints", "        print('from print')", "from print"),
        ("writes", "        import os; os.write(1, b'from descriptor one\\n')", "from descriptor one"),
        ("echoes", "        import subprocess; subprocess.run(['echo', 'from a child'])", "from a child"),
    ],
)
async def test_what_a_program_writes_reaches_the_log(editor: Editor, name: str, body: str, written: str) -> None:
    """By whatever way it is written; the profile comes all the same."""
    uri = await profile(editor, name, body)
    await editor.profiled(uri)
    await editor.until(lambda: editor.logged(written))


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("raises", "        raise ValueError('as the test wishes')", "as the test wishes"),
        ("exits", "        import sys; sys.exit(3)", "exit"),
        ("aborts", "        import os; os.abort()", "SIGABRT"),
    ],
)
async def test_a_program_that_ends_badly_is_told_at_its_line(editor: Editor, name: str, body: str, told: str) -> None:
    """An exception, an exit, an abort; and the next run works."""
    uri = await profile(editor, name, body)
    failure = await failed(editor, uri)
    assert told in failure.message
    assert failure.range.start.line == 14 - 1
    await check_lives(editor)


async def test_an_endless_loop_is_cancelled(editor: Editor) -> None:
    """And the next run works."""
    uri = await profile(editor, "loops", "        while True: pass")
    await editor.until(
        lambda: any(
            "warming up" in (getattr(row, "message", None) or "")
            for rows in editor.progress_reports.values()
            for row in rows[1:]
            if "loops" in (rows[0].title or "")
        )
    )
    assert (await editor.command("skyline.cancel", {"uri": uri}))["cancelled"] is True
    assert (await editor.command("skyline.status", {"uri": uri}))["state"] == "idle"
    await check_lives(editor)


async def test_a_missing_provider_is_told_where_it_belongs(editor: Editor) -> None:
    """Before and after a run."""
    path = editor.root / "missing.py"
    path.write_text("def skyline_model_provider():\n    return None\n")
    uri = editor.open("missing.py")
    warning = await editor.until(lambda: editor.diagnosed(uri, "missing_provider"))
    assert "skyline_input_provider" in warning.message
    await editor.command("skyline.profile", {"uri": uri})
    failure = await failed(editor, uri)
    assert failure.code == "missing_provider"


SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 8
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(4096, 4)), batch_size=BATCH_SIZE)
for epoch in range(1000):
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


async def test_a_script_is_profiled_and_its_site_proven(editor: Editor) -> None:
    """An unmodified script has costs, its constant is the site, and measuring another batch size proves it."""
    (editor.root / "train.py").write_text(SCRIPT)
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    assert await editor.hints(uri)
    assert (await editor.command("skyline.sites", {"uri": uri}))[0]["proven"] is None
    prediction = await editor.command("skyline.predict", {"uri": uri, "batchSize": 16})
    assert prediction["batchSize"] == 16
    site = (await editor.command("skyline.sites", {"uri": uri}))[0]
    assert (site["line"], site["proven"]) == (4, True)
    await editor.command("skyline.setBatchSize", {"uri": uri, "batchSize": 16})
    assert editor.texts[uri] == SCRIPT.replace("BATCH_SIZE = 8", "BATCH_SIZE = 16")


async def test_what_mixed_precision_gains_is_measured(editor: Editor) -> None:
    """The program runs as it is and under autocast, and both are told; what can't be measured is refused."""
    uri = await profile(editor, "mixed")
    await editor.profiled(uri)
    measure = {"uri": uri, "code": "mixed-precision", "autocast": "bfloat16"}
    both = await editor.command("skyline.measureAdvice", measure)
    assert both["before"]["batchSize"] == both["after"]["batchSize"] == 32
    assert both["after"]["peakBytes"] < both["before"]["peakBytes"]
    assert both["text"].startswith("Under bfloat16 autocast an iteration of batch size 32 takes ")
    assert (await editor.command("skyline.status", {"uri": uri}))["state"] == "ready"
    with pytest.raises(JsonRpcException, match="what can be measured is 'mixed-precision'"):
        await editor.command("skyline.measureAdvice", {**measure, "code": "zero-grad"})
    with pytest.raises(JsonRpcException, match="give one of bfloat16, float16"):
        await editor.command("skyline.measureAdvice", {**measure, "autocast": "int8"})
