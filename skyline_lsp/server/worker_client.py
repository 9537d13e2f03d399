"""The server's end of the worker: starts it, speaks with it, notices its death, ends it.

Free of pygls, since the command line uses it too. Everything runs on the event loop; nothing here waits for user code
without a limit or a way out.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil

import skyline_lsp
from skyline_lsp import protocol
from skyline_lsp.protocol import (
    PROTOCOL_VERSION,
    DecodeError,
    Decoder,
    InitializeParams,
    InitializeResult,
    Method,
    Output,
    Partial,
    Progress,
    RpcError,
    RunId,
    RunResult,
    RunSpec,
    from_json,
    to_json,
)

_log = logging.getLogger(__name__)

WORKER_MAIN: Final = Path(skyline_lsp.__file__).parent / "worker" / "__main__.py"
"""The file that the project's interpreter runs."""

_READ_BYTES: Final = 256 * 1024
_STDERR_LINES: Final = 30
_MAX_LINE_CHARACTERS: Final = 4000


class WorkerError(Exception):
    """The worker could not do what was asked; the message says why, for the user."""


class WorkerDied(WorkerError):
    """The worker's process ended, or did not answer in time and was ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the worker may take to answer, in seconds."""

    start_s: float = 180.0
    """Importing torch from a cold network disk takes more than a minute."""
    cancel_s: float = 10.0
    """From the wish to cancel to the end of the run; then the worker is killed."""
    shutdown_s: float = 3.0
    overtime_s: float = 30.0
    """Beyond a run's own time limit, which the worker watches itself."""


def _ignore(_: Any) -> None:
    pass


class WorkerClient:
    """One worker, started when it is first needed and again after it has died.

    `on_output` gets what the user's program writes, `on_log` the lines that the worker itself writes to its stderr.
    """

    def __init__(
        self,
        *,
        python: str,
        root: str,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        main: Path = WORKER_MAIN,
        on_output: Callable[[Output], None] = _ignore,
        on_log: Callable[[str], None] = _ignore,
        limits: Limits | None = None,
    ) -> None:
        self.command: tuple[str, ...] = (*prefix, python, str(main))
        self.root = root
        self._environment = dict(environment or {})
        self._on_output = on_output
        self._on_log = on_log
        self._limits = limits or Limits()
        self._connection: _Connection | None = None
        self._starting = asyncio.Lock()
        self._last_run_id = 0
        self._run: _Run | None = None

    @property
    def info(self) -> InitializeResult | None:
        """What the worker said of itself; None while none is alive."""
        connection = self._connection
        return connection.info if connection is not None and connection.alive else None

    async def start(self) -> InitializeResult:
        """Start the worker unless one is alive. Raises `WorkerError`."""
        async with self._starting:
            if (info := self.info) is not None:
                return info
            connection = await _Connection.open(
                self.command, self.root, self._environment, self._notified, self._on_log
            )
            self._connection = connection
            try:
                params = InitializeParams(protocol_version=PROTOCOL_VERSION, root=self.root)
                answer = await connection.ask(Method.INITIALIZE, to_json(params), self._limits.start_s)
                connection.info = self._checked(answer)
            except BaseException:
                connection.kill("it was ended because it did not start up")
                raise
            return connection.info

    async def run(
        self,
        spec: RunSpec,
        *,
        on_progress: Callable[[Progress], None] = _ignore,
        on_partial: Callable[[Partial], None] = _ignore,
    ) -> RunResult:
        """Run the user's program once and wait for the end. The run's id is chosen here.

        Cancelling the awaiting task cancels the run. Raises `WorkerError`.
        """
        if self._run is not None:
            raise WorkerError("The worker is busy with another run.")
        self._last_run_id += 1
        run = _Run(spec=replace(spec, run_id=self._last_run_id), on_progress=on_progress, on_partial=on_partial)
        self._run = run
        try:
            try:
                return await self._run_once(run)
            except WorkerDied:
                # An idle worker ends itself after a while, which may cross with the request.
                if run.started or run.cancelled:
                    raise
                return await self._run_once(run)
        finally:
            self._run = None
            run.ended.set()

    async def cancel(self) -> None:
        """Ask for the end of the run under way and wait for it; a worker that does not comply is killed."""
        run, connection = self._run, self._connection
        if run is None:
            return
        run.cancelled = True
        if connection is None or not connection.alive:
            return
        with contextlib.suppress(WorkerError):
            await connection.ask(Method.CANCEL, to_json(RunId(run_id=run.spec.run_id)), self._limits.cancel_s)
        try:
            await asyncio.wait_for(run.ended.wait(), self._limits.cancel_s)
        except asyncio.TimeoutError:
            connection.kill("it was ended because the run could not be cancelled")
            await run.ended.wait()

    async def close(self) -> None:
        """End the worker: politely, then by force."""
        connection = self._connection
        if connection is None or not connection.alive:
            return
        with contextlib.suppress(WorkerError):
            await connection.ask(Method.SHUTDOWN, None, self._limits.shutdown_s)
        connection.close_input()
        try:
            await asyncio.wait_for(connection.ended.wait(), self._limits.shutdown_s)
        except asyncio.TimeoutError:
            connection.kill("it was ended because it did not shut down")
            await connection.ended.wait()

    def kill(self) -> None:
        """End the worker at once."""
        if self._connection is not None:
            self._connection.kill("it was ended")

    async def _run_once(self, run: "_Run") -> RunResult:
        await self.start()
        connection = self._connection
        assert connection is not None
        limit = run.spec.time_limit_s
        asked = asyncio.ensure_future(
            connection.ask(Method.RUN, to_json(run.spec), None if limit is None else limit + self._limits.overtime_s)
        )
        try:
            answer = await asyncio.shield(asked)
        except asyncio.CancelledError:
            run.cancelled = True
            await self._end_cancelled(connection, run, asked)
            raise
        try:
            return from_json(RunResult, answer)
        except DecodeError as error:
            raise WorkerError(f"The worker's result can't be understood: {error}.") from error

    async def _end_cancelled(self, connection: "_Connection", run: "_Run", asked: "asyncio.Future[Any]") -> None:
        params = to_json(RunId(run_id=run.spec.run_id))
        with contextlib.suppress(WorkerError):
            await connection.ask(Method.CANCEL, params, self._limits.cancel_s)
        with contextlib.suppress(WorkerError, asyncio.TimeoutError):
            await asyncio.wait_for(asked, self._limits.cancel_s)
        if not asked.done() or asked.cancelled():
            connection.kill("it was ended because the run could not be cancelled")

    def _checked(self, answer: Any) -> InitializeResult:
        try:
            info = from_json(InitializeResult, answer)
        except DecodeError as error:
            raise WorkerError(f"The worker's first answer can't be understood: {error}.") from error
        if info.protocol_version != PROTOCOL_VERSION:
            raise WorkerError(
                f"The worker speaks version {info.protocol_version} of the protocol, the server version "
                f"{PROTOCOL_VERSION}: they are of different installations. Install skyline-lsp anew."
            )
        return info

    def _notified(self, method: str, params: Any) -> None:
        try:
            if method == Method.OUTPUT:
                self._on_output(from_json(Output, params))
                return
            if method == Method.PROGRESS:
                progress = from_json(Progress, params)
                if (run := self._current(progress.run_id)) is not None:
                    run.on_progress(progress)
            elif method == Method.PARTIAL:
                partial = from_json(Partial, params)
                if (run := self._current(partial.run_id)) is not None:
                    run.on_partial(partial)
            else:
                _log.warning("the worker sent an unknown message, %s", method)
        except DecodeError as error:
            _log.warning("the worker sent a message that can't be understood: %s", error)

    def _current(self, run_id: int) -> "_Run | None":
        run = self._run
        if run is None or run.spec.run_id != run_id:
            return None
        run.started = True
        return run


class _Run:
    """The run under way."""

    def __init__(
        self, *, spec: RunSpec, on_progress: Callable[[Progress], None], on_partial: Callable[[Partial], None]
    ) -> None:
        self.spec = spec
        self.on_progress = on_progress
        self.on_partial = on_partial
        self.started = False
        self.cancelled = False
        self.ended = asyncio.Event()


class _Connection:
    """One worker process, from its start to its end."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        notified: Callable[[str, Any], None],
        on_log: Callable[[str], None],
    ) -> None:
        self.info: InitializeResult | None = None
        self.ended = asyncio.Event()
        self._process = process
        self._notified = notified
        self._on_log = on_log
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._stderr_tail: deque[str] = deque(maxlen=_STDERR_LINES)
        self._reason: str | None = None
        self._tasks = (asyncio.create_task(self._read_stderr()), asyncio.create_task(self._read_messages()))

    @classmethod
    async def open(
        cls,
        command: Sequence[str],
        root: str,
        environment: Mapping[str, str],
        notified: Callable[[str, Any], None],
        on_log: Callable[[str], None],
    ) -> "_Connection":
        """Start the process. Raises `WorkerError` where there is no such program."""
        variables = {**os.environ, **environment}
        # Set by the framework builds of macOS, it would make the child believe that it is the server's interpreter.
        variables.pop("__PYVENV_LAUNCHER__", None)
        options: dict[str, Any] = {}
        if sys.platform == "win32":
            options["creationflags"] = subprocess.CREATE_NO_WINDOW
        else:
            # Without a controlling terminal, an `ssh` prefix can't scribble over the editor that shares it.
            options["start_new_session"] = True
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=root,
                env=variables,
                **options,
            )
        except (OSError, ValueError) as error:
            raise WorkerError(
                f"The worker can't be started with `{' '.join(command)}`: {error}. "
                "Check the settings `python` and `workerCommand`."
            ) from error
        return cls(process, notified, on_log)

    @property
    def alive(self) -> bool:
        return not self.ended.is_set() and self._reason is None

    async def ask(self, method: Method, params: Any, limit_s: float | None) -> Any:
        """Send a request and wait for its reply. Raises `WorkerError`, `WorkerDied` past the limit."""
        if not self.alive:
            raise WorkerDied(self._obituary())
        self._last_id += 1
        identity = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[identity] = future
        try:
            await self._send(protocol.request(identity, method.value, params))
            return await asyncio.wait_for(future, limit_s)
        except asyncio.TimeoutError:
            self.kill(f"it was ended because it did not answer `{method.value}` within {limit_s:g} s")
            raise WorkerDied(self._obituary()) from None
        finally:
            self._waiting.pop(identity, None)

    def close_input(self) -> None:
        """Tell the worker that nothing more will come."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self, reason: str) -> None:
        """End the process and everything it started."""
        if self.ended.is_set():
            return
        if self._reason is None:
            self._reason = reason
        _kill_tree(self._process.pid)
        self._fail_waiting()

    async def _send(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(protocol.encode(message))
            await stdin.drain()
        except (ConnectionError, RuntimeError):
            # The reader sees the end of the process, and gives those who wait the reason.
            _log.debug("the worker's input is closed")

    async def _read_messages(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        decoder = Decoder()
        try:
            while data := await stdout.read(_READ_BYTES):
                while True:
                    try:
                        for message in decoder.feed(data):
                            self._received(message)
                        break
                    except RpcError as error:
                        # Such as the greeting of a login shell behind `ssh`.
                        _log.warning("the worker wrote something that is no message: %s", error)
                        data = b""
        finally:
            await self._bury()

    def _received(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if isinstance(method, str):
            self._notified(method, message.get("params"))
            return
        future = self._waiting.get(message.get("id", -1))
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
        else:
            text = error.get("message") if isinstance(error, dict) else str(error)
            future.set_exception(WorkerError(f"The worker refused: {text}"))

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        pending = b""
        while data := await stderr.read(_READ_BYTES):
            *lines, pending = (pending + data).split(b"\n")
            if len(pending) > _MAX_LINE_CHARACTERS:
                lines.append(pending)
                pending = b""
            for line in lines:
                self._note(line)
        if pending:
            self._note(pending)

    def _note(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")[:_MAX_LINE_CHARACTERS]
        self._stderr_tail.append(text)
        self._on_log(text)

    async def _bury(self) -> None:
        """After the end of its output: wait for the process, and tell those who wait."""
        try:
            await asyncio.wait_for(self._process.wait(), 5.0)
        except asyncio.TimeoutError:
            self.kill("it was ended because it closed its output")
            await self._process.wait()
        with contextlib.suppress(asyncio.TimeoutError):
            # A grandchild that keeps stderr open must not keep the news from arriving.
            await asyncio.wait_for(self._tasks[0], 0.5)
        if self._reason is None:
            self._reason = _ending(self._process.returncode)
        self.ended.set()
        self._fail_waiting()

    def _fail_waiting(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(WorkerDied(self._obituary()))

    def _obituary(self) -> str:
        tail = "\n".join(self._stderr_tail).strip()
        return f"The worker is gone: {self._reason or 'it ended'}." + (f" It wrote last:\n{tail}" if tail else "")


def _ending(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
        return f"it was ended by signal {name}{hint}"
    return f"it exited with code {code}"


def _kill_tree(pid: int) -> None:
    """End a process with all its descendants; those in sessions of their own would outlive a group's signal."""
    try:
        process = psutil.Process(pid)
        family = [*process.children(recursive=True), process]
    except psutil.Error:
        return
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()
