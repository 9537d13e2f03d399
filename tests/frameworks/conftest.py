"""Real frameworks, in an environment of their own: `make test-frameworks` makes it and runs these tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.worker_process import Worker, worker

FOLDER = Path(__file__).parent
PYTHON = os.environ.get("SKYLINE_FRAMEWORKS_PYTHON", str(FOLDER.parents[1] / ".venv-frameworks" / "bin" / "python"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out unless their marker is asked for."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.frameworks)
            if "frameworks" not in config.getoption("markexpr"):
                item.add_marker(pytest.mark.skip(reason="needs large packages; run `make test-frameworks`"))


@pytest.fixture(scope="session")
def framework_worker() -> Iterator[Worker]:
    """A worker in the environment with the frameworks."""
    with worker(python=(PYTHON,)) as process:
        yield process
