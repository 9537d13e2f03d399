"""One warm worker for all tests that do not harm it."""

from collections.abc import Iterator

import pytest

from tests.worker.worker_process import Worker, worker


@pytest.fixture(scope="session")
def warm_worker() -> Iterator[Worker]:
    """A forking worker, shared: each test sets its own root."""
    pytest.importorskip("torch")
    with worker() as process:
        yield process
