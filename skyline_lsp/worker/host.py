"""The worker's main process: speaks with the server, and gives each run a process of its own.

On Linux it is the warm parent: it has imported torch, never touched an accelerator, and forks. It runs no user code
and makes no threads there. What a run leaves behind, processes or news, is dealt with before the run is answered.
"""

import codecs
import contextlib
import gc
import os
import platform
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from skyline_lsp import protocol
from skyline_lsp.protocol import (
    PROTOCOL_VERSION,
    DecodeError,
    Decoder,
    Failure,
    FailureKind,
    InitializeParams,
    InitializeResult,
    Method,
    Output,
    Progress,
    RpcError,
    RunId,
    RunResult,
    RunSpec,
    Stage,
    Status,
    from_json,
    to_json,
)
from skyline_lsp.worker import child, postmortem, preload
from skyline_lsp.worker.channel import Channel
from skyline_lsp.worker.child import FORK_BROKEN, MODULES, RESULT, Job
from skyline_lsp.worker.events import Event, Events, SelectEvents, Source, ThreadEvents
from skyline_lsp.worker.postmortem import Death
from skyline_lsp.worker.processes import RunFolder, RunningChild, adopt_orphans, fork, start_fresh
from skyline_lsp.worker.project import Project

_NVML_CHECK: Final = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it, asking whether there is a CUDA device does not make CUDA unusable after a fork."""

_LEAVE_SIGNALS: Final = ("SIGTERM", "SIGHUP", "SIGINT")

_IDLE_LIMIT_S = 3600.0
"""An idle host ends itself after so long: a warm one holds some hundred megabytes."""
_LEAVING_S = 10.0
"""How long a process may take to end after it has told its result: its exit handlers run then."""
_HEARTBEAT_S = 2.0
_FLUSH_S = 0.25
"""Output without a line's end is passed on after so long."""
_OUTPUT_CHARACTERS = 1_000_000
"""Output of one run beyond this is left out, except for its end."""
_TAIL_CHARACTERS = 20_000
_PIECE_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the host works; for tests, and for systems that need another way."""

    fork: bool = sys.platform == "linux"
    threads: bool = sys.platform == "win32"
    """Wait by threads, which excludes forking."""
    idle_limit_s: float = _IDLE_LIMIT_S


class Host:
    """Serves one server through two descriptors."""

    def __init__(self, requests: int, replies: int, options: Options) -> None:
        self._requests = requests
        self._replies = replies
        self._channel = Channel(replies)
        self._options = options
        self._events: Events = ThreadEvents() if options.threads else SelectEvents()
        self._fork = options.fork and not options.threads
        self._decoder = Decoder()
        self._root: str | None = None
        self._torch_version: str | None = None
        self._problem: str | None = None
        self._stamp: tuple[int, ...] = ()
        self._own_environment: list[str] = []
        self._run: _Run | None = None
        self._probe: RunningChild | None = None
        self._probe_answer = Decoder()
        self._to_probe: list[str] = []
        self._to_import: list[str] = []
        self._unfit: set[str] = set()
        self._guard: preload.ForkGuard | None = None
        self._ending = False
        self._last_news = time.monotonic()

    def serve(self) -> None:
        """Serve until the server is gone or says so."""
        adopt_orphans()
        for name in _LEAVE_SIGNALS:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _leave)
        self._warm_up()
        self._events.watch(Source.REQUESTS, self._requests)
        try:
            while not self._ending:
                for event in self._events.wait(self._patience_s()):
                    self._handle(event)
                self._look_at_clock()
        except OSError as error:
            # The server is gone; there is nobody to tell but the log.
            if not self._ending:
                print(f"skyline-lsp worker: {error}", file=sys.stderr)
        finally:
            self._end_probe()
            if self._run is not None:
                self._run.child.kill()
                self._run.child.end_descendants()
                self._run.child.close()

    def _warm_up(self) -> None:
        self._stamp = preload.installation_stamp()
        if self._fork and _NVML_CHECK not in os.environ:
            os.environ[_NVML_CHECK] = "1"
            self._own_environment.append(_NVML_CHECK)
        self._torch_version, self._problem = preload.import_torch()
        if self._fork and self._problem is None:
            preload.import_quietly("skyline_lsp.worker.program")
        if self._fork:
            self._guard = preload.ForkGuard()
            gc.collect()
            # Keeps the collector of every child away from what they all share.
            gc.freeze()

    # -- waiting -----------------------------------------------------------------------------------------------

    def _patience_s(self) -> float | None:
        """How long to wait for an event, at most."""
        now = time.monotonic()
        run = self._run
        if run is None:
            if self._to_import:
                return 0.0
            return max(0.0, self._last_news + self._options.idle_limit_s - now)
        times = [run.heartbeat]
        if run.deadline is not None:
            times.append(run.deadline)
        if run.output.pending:
            times.append(now + _FLUSH_S)
        return max(0.0, min(times) - now)

    def _look_at_clock(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        run = self._run
        if run is None:
            if self._to_import:
                self._import_next()
            elif self._probe is None and now - self._last_news >= self._options.idle_limit_s:
                self._ending = True
            return
        self._last_news = now
        if run.output.pending and now - run.output.since >= _FLUSH_S:
            self._send_output(run.output.flush())
        if run.deadline is not None and now >= run.deadline:
            self._time_is_up(run)
        if now >= run.heartbeat:
            run.heartbeat = now + _HEARTBEAT_S
            if run.progress is not None and run.progress.stage in (Stage.STARTING, Stage.LOADING):
                message = f"{run.progress.message} ({now - run.started:.0f} s)"
                progress = Progress(run_id=run.spec.run_id, stage=run.progress.stage, message=message)
                self._channel.notify(Method.PROGRESS.value, progress)

    def _handle(self, event: Event) -> None:
        if event.source is Source.REQUESTS:
            self._last_news = time.monotonic()
            self._receive(event.data)
        elif self._run is not None:
            self._hear(self._run, event)
        elif self._probe is not None:
            self._hear_probe(self._probe, event)

    # -- requests ----------------------------------------------------------------------------------------------

    def _receive(self, data: bytes) -> None:
        if not data:
            self._ending = True
            return
        for message in _messages(self._decoder, data):
            identity = message.get("id")
            if not isinstance(identity, int):
                continue
            try:
                answered, result = self._answer(identity, str(message.get("method")), message.get("params"))
            except DecodeError as error:
                self._channel.send(protocol.reply_error(identity, RpcError(str(error), code=-32602)))
            except RpcError as error:
                self._channel.send(protocol.reply_error(identity, error))
            else:
                if answered:
                    self._channel.send(protocol.reply(identity, to_json(result)))

    def _answer(self, identity: int, method: str, params: Any) -> tuple[bool, Any]:
        """Whether there is an answer already, and the answer."""
        if method == Method.INITIALIZE:
            return True, self._initialize(from_json(InitializeParams, params))
        if method == Method.RUN:
            return self._start(identity, from_json(RunSpec, params))
        if method == Method.CANCEL:
            self._cancel(from_json(RunId, params).run_id)
            return True, None
        if method == Method.SHUTDOWN:
            self._ending = True
            return True, None
        raise RpcError(f"there is no method {method!r}", code=-32601)

    def _initialize(self, params: InitializeParams) -> InitializeResult:
        self._root = params.root
        return InitializeResult(
            protocol_version=PROTOCOL_VERSION,
            python_version=platform.python_version(),
            executable=sys.executable,
            torch_version=self._torch_version,
            problem=self._problem,
            fork=self._fork,
        )

    def _start(self, identity: int, spec: RunSpec) -> tuple[bool, RunResult | None]:
        if self._root is None:
            raise RpcError("`initialize` comes first", code=-32002)
        if self._run is not None:
            raise RpcError(f"run {self._run.spec.run_id} is under way; cancel it first", code=-32803)
        self._end_probe()
        changed = preload.installation_stamp() != self._stamp
        if self._problem is not None and not changed:
            failure = Failure(kind=FailureKind.ENVIRONMENT, message=self._problem)
            return True, RunResult(run_id=spec.run_id, status=Status.FAILED, failure=failure)
        self._launch(identity, spec, warm=not changed)
        if changed and self._run is not None:
            # What this process has imported is not what is installed: a new one takes over after this run.
            self._run.last = True
        return False, None

    def _launch(self, identity: int, spec: RunSpec, warm: bool) -> None:
        folder = RunFolder()
        job = Job(root=self._root or "", folder=folder.path, spec=spec)
        # Libraries have read the environment when they were imported: another one needs a fresh process.
        same = all(os.environ.get(name) == value for name, value in (spec.entry.environment or {}).items())
        if self._fork and warm and same:
            process = fork(lambda messages: self._be_child(job, messages), folder, with_output=True)
        else:
            environment = {name: value for name, value in os.environ.items() if name not in self._own_environment}
            environment.update(spec.entry.environment or {})
            process = start_fresh(job, folder, environment, ask_by_pipe=self._options.threads)
        now = time.monotonic()
        self._run = _Run(
            identity=identity,
            spec=spec,
            child=process,
            project=Project(job.root, (spec.entry.path,)),
            started=now,
            heartbeat=now + _HEARTBEAT_S,
            deadline=now + spec.time_limit_s if spec.time_limit_s is not None else None,
            killed_before=_killed_for_memory(),
        )
        self._watch(process)

    def _watch(self, process: RunningChild) -> None:
        self._events.watch(Source.MESSAGES, process.messages)
        if process.output is not None:
            self._events.watch(Source.OUTPUT, process.output)
        self._events.watch_process(process.pid, process.process)

    def _be_child(self, job: Job, messages: int) -> NoReturn:
        self._forget_host()
        for name in self._own_environment:
            os.environ.pop(name, None)
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            # Python seeds its own generator anew after a fork; NumPy does not.
            numpy_random.seed()
        child.run(job, Channel(messages, lambda: postmortem.exit_process(1)))

    def _forget_host(self) -> None:
        """In a forked child: let go of what is the host's."""
        self._events.close()
        for name in _LEAVE_SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self._requests)
        os.close(self._replies)

    def _cancel(self, run_id: int) -> None:
        run = self._run
        if run is None or run.spec.run_id != run_id or run.status is not None:
            return
        frames = self._whereabouts(run)
        run.status = Status.CANCELLED
        if frames:
            where = f"line {frames[-1].line} of {os.path.basename(frames[-1].path)}"
            run.failure = Failure(kind=FailureKind.EXITED, message=f"Cancelled at {where}.", frames=frames)
        run.child.kill()

    def _time_is_up(self, run: "_Run") -> None:
        run.deadline = None
        if run.result is None and run.status is None:
            frames = self._whereabouts(run)
            run.status = Status.FAILED
            limit = run.spec.time_limit_s or 0.0
            message = f"The run took longer than its limit of {limit:g} s and was ended. Raise `timeLimitSeconds`."
            run.failure = Failure(kind=FailureKind.TIME_LIMIT, message=message, frames=frames)
        run.child.kill()

    def _whereabouts(self, run: "_Run") -> tuple[protocol.Frame, ...]:
        since = run.child.ask_where()
        return postmortem.whereabouts(run.child.trace(), since, run.project)

    # -- the run under way -------------------------------------------------------------------------------------

    def _hear(self, run: "_Run", event: Event) -> None:
        if event.source is Source.OUTPUT:
            self._send_output(run.output.feed(event.data))
        elif event.source is Source.MESSAGES:
            for message in _messages(run.decoder, event.data):
                self._relay(run, str(message.get("method")), message.get("params"))
        else:
            self._finish(run, event.code)

    def _relay(self, run: "_Run", method: str, params: Any) -> None:
        if method == RESULT:
            run.result = params
            run.deadline = time.monotonic() + _LEAVING_S
        elif method == MODULES:
            run.modules = params
        elif method == FORK_BROKEN:
            run.fork_broken = True
        elif method in (Method.PROGRESS, Method.PARTIAL):
            if method == Method.PROGRESS:
                run.progress = from_json(Progress, params)
            self._channel.notify(method, params)

    def _send_output(self, text: str) -> None:
        if text and self._run is not None:
            self._channel.notify(Method.OUTPUT.value, Output(run_id=self._run.spec.run_id, text=text))

    def _finish(self, run: "_Run", code: int) -> None:
        """The run's process has ended: end what it left, hear it out, answer."""
        run.child.end_descendants()
        waiting = self._hear_out(run)
        self._send_output(run.output.close())
        for descriptor in (run.child.messages, run.child.output):
            if descriptor is not None:
                self._events.forget(descriptor)
        result = self._result(run, code)
        run.child.close()
        self._run = None
        if run.fork_broken and run.status is None:
            print("skyline-lsp worker: the accelerator can't be used after a fork; not forking", file=sys.stderr)
            self._fork = False
            self._launch(run.identity, run.spec, warm=False)
        else:
            self._channel.send(protocol.reply(run.identity, result))
            self._last_news = time.monotonic()
            if run.last:
                print("skyline-lsp worker: packages were installed meanwhile; a new worker takes over", file=sys.stderr)
                self._ending = True
            elif self._fork:
                self._start_probe(run.modules)
        for event in waiting:
            self._handle(event)

    def _hear_out(self, run: "_Run") -> list[Event]:
        """Take in what the process wrote before its end. Returns the events of others meanwhile."""
        others = []
        open_sources = {Source.MESSAGES, Source.OUTPUT}
        while open_sources and (events := self._events.wait(self._events.settle_s)):
            for event in events:
                if event.source in (Source.MESSAGES, Source.OUTPUT):
                    self._hear(run, event)
                    if not event.data:
                        open_sources.discard(event.source)
                else:
                    others.append(event)
                    if not event.data:
                        # The server is gone: it reports that again and again.
                        return others
        return others

    def _result(self, run: "_Run", code: int) -> Any:
        """The reply to the run, as JSON."""
        if run.status is not None:
            return to_json(RunResult(run_id=run.spec.run_id, status=run.status, failure=run.failure))
        if run.result is not None:
            return run.result
        death = Death(code=code, trace=run.child.trace(), memory_ran_out=_killed_for_memory() > run.killed_before)
        failure = postmortem.failure_of(death, run.project)
        return to_json(RunResult(run_id=run.spec.run_id, status=Status.FAILED, failure=failure))

    # -- what later runs will import ---------------------------------------------------------------------------

    def _start_probe(self, modules: list[str]) -> None:
        """Try out in a fork which of the modules this process may import."""
        known = {*self._unfit, *self._to_import}
        wanted = [name for name in preload.new_modules(modules) if name not in known]
        if not wanted:
            return

        def main(messages: int) -> NoReturn:
            self._forget_host()
            channel = Channel(messages, lambda: postmortem.exit_process(1))
            for name in preload.forkable(wanted):
                channel.notify(MODULES, name)
            postmortem.exit_process(0)

        self._to_probe = wanted
        self._probe_answer = Decoder()
        self._probe = fork(main, None, with_output=False)
        self._watch(self._probe)

    def _hear_probe(self, probe: RunningChild, event: Event) -> None:
        if event.source is Source.MESSAGES:
            for message in _messages(self._probe_answer, event.data):
                self._to_probe.remove(message["params"])
                self._to_import.append(message["params"])
        elif event.source is Source.ENDED:
            # What the process wrote last may still be on its way.
            for last in self._events.wait(0.0):
                if last.source is Source.MESSAGES:
                    self._hear_probe(probe, last)
                else:
                    self._handle(last)
            self._unfit.update(self._to_probe)
            self._end_probe()

    def _end_probe(self) -> None:
        """End it where it is; what it found so far holds."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.kill()
            probe.end_descendants()
            self._events.forget(probe.messages)
            probe.close()

    def _import_next(self) -> None:
        """Import one module ahead, as long as no probe is busy; a request waits no longer than this."""
        if self._probe is not None:
            return
        preload.import_quietly(self._to_import.pop(0))
        if self._guard is not None and not self._guard.intact():
            print("skyline-lsp worker: an import left a thread behind; not forking any more", file=sys.stderr)
            self._fork = False
            self._to_import = []
        if not self._to_import:
            gc.collect()
            gc.freeze()


@dataclass(slots=True, kw_only=True)
class _Run:
    """The run under way."""

    identity: int
    """Of the request that asked for it."""
    spec: RunSpec
    child: RunningChild
    project: Project
    started: float
    heartbeat: float
    """When to tell next that it is still loading."""
    deadline: float | None
    killed_before: int
    decoder: Decoder = field(default_factory=Decoder)
    output: "_Lines" = field(default_factory=lambda: _Lines())
    progress: Progress | None = None
    result: Any = None
    """`RunResult` as JSON, from the process."""
    modules: list[str] = field(default_factory=list)
    status: Status | None = None
    """How it ended by the host's doing."""
    failure: Failure | None = None
    fork_broken: bool = False
    last: bool = False
    """Whether the host ends itself after it."""


class _Lines:
    """Turns a program's output into text, cut at line ends where possible, and not without end."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = ""
        """An unfinished line."""
        self.since = 0.0
        """When the unfinished line was last added to."""
        self._passed = 0
        self._tail = ""
        self._dropped = 0

    def feed(self, data: bytes) -> str:
        """Take in bytes; returns the lines that are complete now."""
        text = self.pending + self._decoder.decode(data)
        # A progress bar goes back to the start of its line with each new state.
        cut = max(text.rfind("\n"), text.rfind("\r")) + 1
        if len(text) - cut > _PIECE_CHARACTERS:
            cut = len(text)
        self.pending = text[cut:]
        self.since = time.monotonic()
        return self._limit(text[:cut])

    def flush(self) -> str:
        """The unfinished line as it is."""
        text, self.pending = self.pending, ""
        return self._limit(text)

    def close(self) -> str:
        """All that is left, at the end."""
        text = self.flush() + self._limit(self._decoder.decode(b"", final=True))
        if self._dropped:
            text += f"\n[... {self._dropped} characters of output left out ...]\n{self._tail}"
        return text

    def _limit(self, text: str) -> str:
        room = max(0, _OUTPUT_CHARACTERS - self._passed)
        shown, rest = text[:room], text[room:]
        self._passed += len(shown)
        if rest:
            kept = self._tail + rest
            self._tail = kept[-_TAIL_CHARACTERS:]
            self._dropped += len(rest) - (len(self._tail) - (len(kept) - len(rest)))
        return shown


def _messages(decoder: Decoder, data: bytes) -> list[protocol.rpc.Message]:
    """The messages that the bytes complete; what is none is left out."""
    messages: list[protocol.rpc.Message] = []
    while True:
        try:
            messages.extend(decoder.feed(data))
            return messages
        except RpcError as error:
            print(f"skyline-lsp worker: {error}", file=sys.stderr)
            data = b""


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)


def _killed_for_memory() -> int:
    """How many processes the system has killed for want of memory so far: of this container, and of the machine."""
    total = 0
    places: list[tuple[Path, str]] = [(Path("/proc/vmstat"), "oom_kill ")]
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::"):
                places.append((Path("/sys/fs/cgroup" + line[3:]) / "memory.events", "oom_kill "))
    for path, name in places:
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.startswith(name):
                    total += int(line[len(name) :])
    return total
