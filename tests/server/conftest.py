"""Editors with a real server each, and the smallest project that can be profiled."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.server.editor import Editor

PROGRAM = """\
import torch


def skyline_model_provider():
    return torch.nn.Linear(4, 4)  # cost 1 2 1048576


def skyline_input_provider(batch_size=16):
    return (torch.randn(batch_size, 4),)


def skyline_iteration_provider(model):
    def iteration(inputs):
        model(inputs).sum().backward()  # cost 4 6 2097152

    return iteration
"""

StartEditor = Callable[..., Awaitable[Editor]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A root with one provider file, `train.py`; the batch size is on line 8, the iteration on line 12."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(PROGRAM)
    return root


@pytest_asyncio.fixture
async def start_editor(project: Path, tmp_path: Path) -> AsyncIterator[StartEditor]:
    """Starts editors on the project, all with one cache; they are ended after the test."""
    started: list[Editor] = []

    async def start_one(
        client: str = "vscode-1.139.1",
        *,
        settings: dict[str, Any] | None = None,
        root: Path = project,
        start: bool = True,
        **options: Any,
    ) -> Editor:
        editor = Editor(root, tmp_path / "cache", client, settings=settings)
        started.append(editor)
        if start:
            await editor.start(**options)
        return editor

    yield start_one
    for editor in started:
        if not editor.stopped:
            await editor.finish()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """One editor with the project open, for tests that change nothing."""
    root = tmp_path_factory.mktemp("project")
    (root / "train.py").write_text(PROGRAM)
    editor = Editor(root, tmp_path_factory.mktemp("cache"))
    await editor.start()
    editor.open("train.py")
    yield editor
    await editor.finish()
