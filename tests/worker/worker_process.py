"""Speaks to a real worker process, started as the server starts it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skyline_lsp import protocol
from skyline_lsp.protocol import (
    Entry,
    EntryKind,
    Failure,
    Goal,
    Measure,
    Override,
    RunResult,
    RunSpec,
    Status,
    from_json,
    to_json,
)

MAIN = Path(protocol.__file__).parents[1] / "worker" / "__main__.py"
QUICK = Measure(warm_up=1, min_iterations=1, max_iterations=1)

Message = dict[str, Any]


@dataclass
class Run:
    """A run, and what the worker said during it."""

    result: RunResult
    messages: list[Message] = field(default_factory=list)

    @property
    def output(self) -> str:
        return "".join(one["params"]["text"] for one in self.messages if one.get("method") == "output")

    @property
    def stages(self) -> list[str]:
        return [one["params"]["stage"] for one in self.messages if one.get("method") == "progress"]


class Worker:
    """One worker process and the conversation with it."""

    def __init__(
        self,
        *flags: str,
        python: Sequence[str] = (sys.executable,),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*python, str(MAIN), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._identity = 0

    def initialize(self, root: Path) -> protocol.InitializeResult:
        """(Re)set the project's root."""
        params = protocol.InitializeParams(protocol_version=protocol.PROTOCOL_VERSION, root=str(root))
        self._send("initialize", to_json(params))
        return from_json(protocol.InitializeResult, self.reply()["result"])

    def start(self, spec: RunSpec) -> int:
        """Ask for a run without waiting for it."""
        return self._send("run", to_json(spec))

    def cancel(self, spec: RunSpec) -> int:
        return self._send("cancel", {"run_id": spec.run_id})

    def run(self, spec: RunSpec) -> Run:
        """Run to the end."""
        self.start(spec)
        return self.finish()

    def finish(self, before: Sequence[Message] = ()) -> Run:
        """Wait for the reply of the run that was asked for last but cancellations."""
        messages: list[Message] = list(before)
        while True:
            message = self.receive()
            result = message.get("result")
            if isinstance(result, dict) and "run_id" in result:
                return Run(from_json(RunResult, result), messages)
            assert "error" not in message, message
            messages.append(message)

    def until(self, wanted: Callable[[Message], bool]) -> list[Message]:
        """Receive up to the message that is wanted."""
        messages = [self.receive()]
        while not wanted(messages[-1]):
            messages.append(self.receive())
        return messages

    def reply(self) -> Message:
        """The next message that is a reply."""
        return self.until(lambda message: "id" in message)[-1]

    def receive(self) -> Message:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker is gone: {self.process.wait()}"
        message: Message = json.loads(line)
        return message

    def _send(self, method: str, params: Any) -> int:
        assert self.process.stdin is not None
        self._identity += 1
        self.process.stdin.write(protocol.encode(protocol.request(self._identity, method, params)))
        self.process.stdin.flush()
        return self._identity

    def close(self, politely: bool = True) -> int:
        """Say good-bye, unless impolite, close the worker's input, and wait for its end."""
        if politely and self.process.poll() is None:
            # A process forked from this one may hold the input open.
            with suppress(OSError):
                self._send("shutdown", None)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


@contextmanager
def worker(*flags: str, **options: Any) -> Iterator[Worker]:
    """A worker for the length of a test."""
    process = Worker(*flags, **options)
    try:
        yield process
    finally:
        process.close()


_run_ids = iter(range(1, 1_000_000))


def spec(
    path: Path,
    kind: EntryKind = EntryKind.SCRIPT,
    *,
    goal: Goal = Goal.SAMPLE,
    batch_size: int | None = None,
    overrides: tuple[Override, ...] = (),
    time_limit_s: float | None = None,
    **entry: Any,
) -> RunSpec:
    """A run that measures as little as possible."""
    return RunSpec(
        run_id=next(_run_ids),
        goal=goal,
        entry=Entry(kind=kind, path=str(path), **entry),
        batch_size=batch_size,
        overrides=overrides,
        measure=QUICK,
        time_limit_s=time_limit_s,
    )


def failure_of(run: Run, status: Status = Status.FAILED) -> Failure:
    """The failure of a run that must have one."""
    assert run.result.status is status, run.result
    assert run.result.failure is not None
    return run.result.failure


def line_of(failure: Failure) -> tuple[str, int]:
    """File name and line where it happened."""
    assert failure.frames, failure
    return Path(failure.frames[-1].path).name, failure.frames[-1].line


def marked_line(source: str, mark: str = "# HERE") -> int:
    """The line of a program that holds the mark."""
    (line,) = [number for number, text in enumerate(source.splitlines(), start=1) if mark in text]
    return line
