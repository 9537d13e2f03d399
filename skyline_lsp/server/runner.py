"""Running programs as the settings want it: the right interpreter, the right worker, and every mishap as a result."""

import logging
import os
from collections.abc import Callable, Mapping

from skyline_lsp.protocol import Failure, FailureKind, Output, Partial, Progress, RunResult, RunSpec, Status
from skyline_lsp.server.interpreter import Interpreter, find_interpreter
from skyline_lsp.server.settings import Settings
from skyline_lsp.server.worker_client import WorkerClient, WorkerDied, WorkerError

_log = logging.getLogger(__name__)


class Runner:
    """One worker at a time, started at the first run and anew where the settings want another one."""

    def __init__(self, root: str, *, environ: Mapping[str, str], on_output: Callable[[Output], None]) -> None:
        self._root = root
        self._environ = environ
        self._on_output = on_output
        self._client: WorkerClient | None = None
        self._options: tuple[object, ...] = ()

    def interpreter(self, program: str, settings: Settings) -> Interpreter:
        """The interpreter for the program at a path."""
        return find_interpreter(
            root=self._root,
            setting=settings.python,
            near=os.path.dirname(program),
            remote=bool(settings.worker_command),
            environ=self._environ,
        )

    async def run(
        self,
        spec: RunSpec,
        settings: Settings,
        *,
        on_progress: Callable[[Progress], None],
        on_partial: Callable[[Partial], None],
    ) -> RunResult:
        """One run of a program; what goes wrong with the worker is the run's failure."""
        interpreter = self.interpreter(spec.entry.path, settings)
        if interpreter.problem is not None:
            return _failed(FailureKind.ENVIRONMENT, interpreter.problem)
        try:
            client = await self._worker(interpreter, settings)
            info = await client.start()
            if info.problem is not None:
                chosen = f"{interpreter.path} was chosen because of {interpreter.reason}."
                return _failed(FailureKind.ENVIRONMENT, f"{info.problem} {chosen}")
            return await client.run(spec, on_progress=on_progress, on_partial=on_partial)
        except WorkerDied as death:
            return _failed(FailureKind.CRASHED, str(death))
        except WorkerError as error:
            return _failed(FailureKind.ENVIRONMENT, str(error))

    async def close(self, *, at_once: bool = False) -> None:
        """End the worker; `at_once` does not wait for a run to be ended gently."""
        if self._client is None:
            return
        if at_once:
            self._client.kill()
        await self._client.close()

    async def _worker(self, interpreter: Interpreter, settings: Settings) -> WorkerClient:
        options = (interpreter.path, settings.worker_command, settings.environment)
        if self._client is not None and self._options != options:
            await self._client.close()
            self._client = None
        if self._client is None:
            _log.info("running programs with %s: %s", interpreter.path, interpreter.reason)
            self._options = options
            self._client = WorkerClient(
                python=interpreter.path,
                root=self._root,
                prefix=settings.worker_command,
                environment=dict(settings.environment),
                on_output=self._on_output,
                on_log=lambda line: _log.info("worker: %s", line),
            )
        return self._client


def _failed(kind: FailureKind, message: str) -> RunResult:
    return RunResult(run_id=0, status=Status.FAILED, failure=Failure(kind=kind, message=message))
