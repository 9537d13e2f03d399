"""Running a program for a command: the worker, the progress shown meanwhile, and what is said when it fails."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from skyline_lsp.cli.failures import CommandError
from skyline_lsp.cli.project import Program, Project
from skyline_lsp.protocol import (
    EntryKind,
    Failure,
    Goal,
    InitializeResult,
    RunResult,
    RunSpec,
    Status,
)
from skyline_lsp.server.worker_client import WorkerClient, WorkerError
from skyline_lsp.server.workloads import run_spec
from skyline_lsp.source import EditError, Site, decode, find_sites, why_no_site
from skyline_lsp.terminal import ProgressLine, failure_lines, print_lines, progress_line, standard_consoles

T = TypeVar("T")


class ProgramFailed(CommandError):
    """The user's program did not come to a result."""

    def __init__(self, failure: Failure, program: Program, *, verbose: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self._program = program
        self._verbose = verbose

    def report(self) -> None:
        """Write the failure as compilers do, with the lines of the project that led to it."""
        project = self._program.project
        frames = [
            (project.shown(frame.path), frame.line, frame.function, _source_line(project, frame.path, frame.line))
            for frame in self.failure.frames
        ]
        _, console = standard_consoles()
        print_lines(console, failure_lines(self.failure.message, frames, path=project.shown(self._program.path)))
        if self._verbose and self.failure.traceback:
            console.print(self.failure.traceback, soft_wrap=True)


class Runner:
    """Runs one program, again and again where a command needs it."""

    def __init__(self, client: WorkerClient, program: Program, line: ProgressLine, *, verbose: bool) -> None:
        self._client = client
        self._program = program
        self._line = line
        self._verbose = verbose

    async def run(self, spec: RunSpec, *, label: str = "") -> RunResult:
        """One run to its end. Raises `ProgramFailed`, `CommandError`."""
        prefix = f"{label}: " if label else ""
        result = await self._client.run(
            spec, on_progress=lambda progress: self._line.update(prefix + progress.message, progress.fraction)
        )
        if result.status is Status.DONE:
            return result
        if result.failure is not None:
            raise ProgramFailed(result.failure, self._program, verbose=self._verbose)
        raise CommandError("The run was cancelled.")


def with_worker(program: Program, work: Callable[[Runner], Awaitable[T]], *, verbose: bool) -> T:
    """Do `work` with a worker that ends when it is done, also when the user interrupts it.

    Raises `CommandError`, `KeyboardInterrupt`.
    """
    return run_interruptible(_with_worker(program, work, verbose))


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with Ctrl-C cancelling `work` alone, so that it can end the worker in good order.

    Raises `KeyboardInterrupt` then. Python does so by itself from 3.11 on, and not where a signal hits another task.
    """

    async def interruptible() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # Event loops on Windows have no signal handlers; there Python's own way has to do.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, task.cancel)
        return await work

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _with_worker(program: Program, work: Callable[[Runner], Awaitable[T]], verbose: bool) -> T:
    _, console = standard_consoles()
    with progress_line(console, verbose=verbose) as line:
        client = client_for(program.project, line, verbose=verbose)
        try:
            line.update("starting")
            check_worker(await client.start())
            return await work(Runner(client, program, line, verbose=verbose))
        except WorkerError as error:
            raise CommandError(str(error)) from error
        finally:
            await client.close()


def client_for(project: Project, line: ProgressLine, *, verbose: bool, root: str | None = None) -> WorkerClient:
    """A worker in the project's interpreter, its output led to `line`."""
    return WorkerClient(
        python=project.interpreter.path,
        root=root or project.root,
        on_output=lambda output: line.output(output.text),
        on_log=lambda text: line.output(text.rstrip("\n") + "\n") if verbose else None,
    )


def check_worker(info: InitializeResult) -> None:
    """Raise `CommandError` where the worker can run nothing."""
    if info.problem is not None:
        raise CommandError(f"{info.executable}: {info.problem}")


def spec_for(program: Program, goal: Goal, batch_size: int | None = None) -> RunSpec:
    """A run of the program as it stands, or as it would be with another batch size. Raises `CommandError`."""
    entry, settings = program.entry, program.project.settings
    needs_site = batch_size is not None and entry.kind is not EntryKind.PROVIDER
    site = batch_size_site(program) if needs_site else None
    try:
        return run_spec(entry, settings, goal, batch_size=batch_size, site=site)
    except EditError as error:
        raise CommandError(f"The batch size can't be {batch_size}: {error}.") from error


def batch_size_site(program: Program) -> Site:
    """The place to write another batch size. Raises `CommandError` where there is none."""
    sites = find_sites(program.project.files, program.path, program.arguments)
    site = next((site for site in sites if site.editable and not site.evaluation), None)
    if site is None:
        why = why_no_site(program.project.files, program.path, program.arguments)
        raise CommandError(f"{program.project.shown(program.path)}: the batch size can't be changed: {why}.")
    return site


def _source_line(project: Project, path: str, line: int) -> str:
    data = project.files.read(path)
    lines = decode(data).lines if data is not None else ()
    return lines[line - 1] if 0 < line <= len(lines) else ""
