"""One project while its editor is open: what was measured, what is being measured, and what to show of it.

Only a session changes state; handlers and features get snapshots. A session knows nothing of the language server
protocol: it is told of documents by path, and tells a `Listener` what became of it.
"""

import asyncio
import functools
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final, Protocol

from skyline_lsp.features import Diagnostic, Index, Options, Severity, Snapshot, State, diagnostics, snapshot
from skyline_lsp.prediction import Known, Model, Prediction, Spent, fit, next_batch_size, predict
from skyline_lsp.prediction.sampling import RANGE
from skyline_lsp.protocol import (
    Failure,
    FailureKind,
    Goal,
    Partial,
    Profile,
    Progress,
    RunResult,
    RunSpec,
    Sample,
    Stage,
    Status,
)
from skyline_lsp.server.cache import ResultCache, content_digest
from skyline_lsp.server.documents import Documents, path_key
from skyline_lsp.server.interpreter import Interpreter, find_interpreter
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.settings import Reading, Settings
from skyline_lsp.server.source_index import SitesFound, SourceIndex
from skyline_lsp.server.worker_client import WorkerClient, WorkerDied, WorkerError
from skyline_lsp.server.workloads import entry_at, entry_for, run_spec, wished_path, workload_key
from skyline_lsp.source import (
    Edit,
    EditRefused,
    EntryPoint,
    EntryPointKind,
    Site,
    SourceText,
    decode,
    nearest_entry_point,
    set_batch_size,
)

_log = logging.getLogger(__name__)

SETTING: Final = "setting"
"""Code of a diagnostic about a setting in pyproject.toml."""
UNTRUSTED: Final = (
    "Profiling runs the project's code, and this workspace is not trusted. Trust it in your editor to profile it."
)
PYPROJECT: Final = "pyproject.toml"


_LOOK_PAUSE_S: Final = 0.15
# Where each stage begins on a progress bar, in percent: about what stages take of a run that compiles nothing.
_BEGINS: Final = {
    Stage.STARTING: 0,
    Stage.LOADING: 5,
    Stage.WARMING_UP: 15,
    Stage.TIMING: 30,
    Stage.TRACING: 65,
    Stage.MEMORY: 85,
}


class Refused(Exception):
    """What the user asked for can't be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a run is busy with, for a progress bar."""

    title: str
    message: str
    percentage: int | None = None


class Listener(Protocol):
    """Who is told of what a session does."""

    def changed(self) -> None:
        """What there is to show may have changed."""
        ...

    def activity(self, session: "Session", activity: Activity | None) -> None:
        """What the session is busy with; None when it is idle again."""
        ...

    def output(self, text: str) -> None:
        """The user's program wrote something."""
        ...

    def notice(self, text: str) -> None:
        """Something that the user should see now."""
        ...


@dataclass(eq=False, slots=True, kw_only=True)
class _Workload:
    """One program and what is known of it."""

    path: str
    armed: bool = False
    """Whether the user has had it run, so that saving may run it again."""
    restored: bool = False
    """Whether the cache was asked."""
    measured_at_s: float = 0.0
    index: Index | None = None
    """Of the last whole profile."""
    partial: Index | None = None
    """Of a profile under way."""
    files: dict[str, str] = field(default_factory=dict)
    """What the profile depends on: relative path -> SHA-256."""
    texts: dict[str, str] = field(default_factory=dict)
    """Relative path -> text when it was measured, where that is known."""
    failure: Failure | None = None
    failure_texts: dict[str, str] = field(default_factory=dict)
    """Absolute path -> text when it failed."""
    samples: tuple[Sample, ...] = ()
    samples_key: str | None = None
    out_of_memory: tuple[int, ...] = ()
    """Batch sizes that ran out of memory."""
    unmeasurable: tuple[int, ...] = ()
    """Batch sizes that could not be measured for another reason."""
    spent: tuple[Spent, ...] = ()
    remarks: tuple[str, ...] = ()
    """What went wrong in measuring other batch sizes, each a sentence."""
    model: Model | None = None

    @property
    def profile(self) -> Profile | None:
        return self.index.profile if self.index is not None else None


@dataclass(eq=False, slots=True, kw_only=True)
class _Job:
    """A run, or several for one purpose, for a workload."""

    workload: _Workload
    title: str
    digests: dict[str, str | None]
    """Path of each open document -> digest of its file when the job was started."""
    task: "asyncio.Task[None] | None" = None
    progress: Progress | None = None
    progressed_s: int = 0
    """When, in whole seconds."""
    superseded: bool = False
    refusal: str | None = None
    """Why it came to no result, where that is not the workload's failure."""


class Session:
    """One root and the programs below it."""

    def __init__(
        self,
        root: str,
        *,
        documents: Documents,
        cache: ResultCache,
        listener: Listener,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self.root = root
        self.files = ProjectFiles(root, documents)
        self._index = SourceIndex(self.files)
        self._documents = documents
        self._cache = cache
        self._listener = listener
        self._environ = environ
        self._monotonic = monotonic
        self._now = now
        self._reading: Reading | None = None
        self._workloads: dict[str, _Workload] = {}
        self._scan: asyncio.Task[None] | None = None
        self._scan_again = False
        self._changed_paths: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self._chosen: str | None = None
        self._last_path: str | None = None
        self._job: _Job | None = None
        self._worker_free = asyncio.Lock()
        self._client: WorkerClient | None = None
        self._client_options: tuple[object, ...] = ()

    # What the editor tells.

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._reading.settings if self._reading is not None else Settings()

    def apply_settings(self, reading: Reading) -> None:
        """Take new settings; a run under way goes on with the old ones."""
        if reading == self._reading:
            return
        self._reading = reading
        for workload in self._workloads.values():
            workload.restored = workload.restored and workload.index is not None
            self._look_soon(workload.path)
        self._listener.changed()

    def document_opened(self, path: str) -> None:
        """A document below the root was opened."""
        self._last_path = path
        self._start_scan()
        self._look_soon(path)
        self._listener.changed()

    def document_changed(self, path: str) -> None:
        """A document's text changed."""
        self._last_path = path
        self._look_soon(path)
        self._listener.changed()

    def document_saved(self, path: str) -> None:
        """A document was written to disk: profile again, where the user has asked for that."""
        self._last_path = path
        self._listener.changed()
        workload = self._workload_for(path)
        settings = self.settings
        if workload is None or not (workload.armed and settings.profile_on_save and settings.trusted):
            return
        if self._runs(workload):
            assert self._job is not None
            digests = self._job.digests
            concerns = path not in digests or digests[path] != self.files.digest(path, on_disk=True)
        elif workload.failure is not None or workload.index is None:
            concerns = True
        else:
            concerns = not self._is_current(workload)
        if concerns:
            self._start(workload, "Profiling", functools.partial(self._profile, batch_size=None))

    def files_changed(self) -> None:
        """Files came, went or were changed outside of the editor."""
        self.files.forget_listing()
        self._start_scan()
        self._listener.changed()

    # What the user asks for.

    async def profile(self, path: str | None, batch_size: int | None = None) -> dict[str, Any]:
        """Start a run of the program that belongs to a file, in place of one under way; its status once it began.

        Raises `Refused`.
        """
        workload = await self._demanded(path)
        if batch_size is not None and self._point(workload).kind is EntryPointKind.SCRIPT:
            await self.batch_size_edit(workload.path, batch_size, None)
        workload.armed = True
        self._start(workload, "Profiling", functools.partial(self._profile, batch_size=batch_size))
        return self._status(workload)

    async def cancel(self) -> bool:
        """End what is under way; tells whether there was something."""
        job = self._job
        if job is None or job.task is None:
            return False
        job.task.cancel()
        await asyncio.wait({job.task})
        return True

    async def clear(self, path: str | None) -> None:
        """Forget what is shown of a program, and run it on saves no more."""
        workload = self._workload_for(path or self._last_path)
        if workload is None:
            return
        if self._runs(workload):
            await self.cancel()
        # Not from the cache either, until the project is opened anew.
        self._workloads[workload.path] = _Workload(path=workload.path, restored=True)
        self._listener.changed()

    async def predict(self, path: str | None, batch_size: int) -> Prediction:
        """What another batch size would do; measures what is missing for an answer. Raises `Refused`."""
        workload = await self._demanded(path)
        workload.armed = True
        if self._runs(workload):
            await self._outcome()
        if workload.index is None or not self._is_current(workload):
            self._start(workload, "Profiling", functools.partial(self._profile, batch_size=None))
            await self._outcome()
        if workload.failure is not None:
            raise Refused(workload.failure.message)
        if self._runs(workload):
            await self._outcome()
        elif self._next_size(workload, batch_size, None) is not None:
            self._start(workload, "Measuring other batch sizes of", functools.partial(self._sample, wanted=batch_size))
            await self._outcome()
        if workload.profile is None or workload.model is None:
            raise Refused(" ".join(("Nothing was measured to predict from.", *workload.remarks)))
        prediction = predict(workload.model, batch_size, workload.profile.device.memory_bytes)
        if prediction is None:
            raise Refused(" ".join((f"Batch size {batch_size} can't be predicted.", *workload.model.problems)))
        return prediction

    def problems(self, path: str | None) -> tuple[str, ...]:
        """What limits the trust in a program's predictions, each a sentence."""
        workload = self._workload_for(path or self._last_path)
        if workload is None or workload.model is None:
            return ()
        return tuple(dict.fromkeys((*workload.remarks, *workload.model.problems)))

    async def programs(self) -> tuple[EntryPoint, ...]:
        """Everything that could be profiled."""
        await self._scanned()
        return self._index.entry_points()

    def choose(self, path: str | None) -> None:
        """Profile this file from now on, whatever is open; None goes back to the nearest. Raises `Refused`."""
        if path is not None and self.files.read(path) is None:
            raise Refused(f"There is no file {path} to profile.")
        self._chosen = path
        self._listener.changed()

    def status(self, path: str | None) -> dict[str, Any]:
        """The state of the program that belongs to a file, as JSON."""
        return self._status(self._workload_for(path or self._last_path))

    async def sites(self, path: str | None) -> SitesFound:
        """Where the batch size of the program that belongs to a file is written."""
        workload = await self._found(path)
        return SitesFound(sites=(), reason=self._nothing()) if workload is None else self._sites(workload)

    async def batch_size_edit(self, path: str | None, batch_size: int, where: tuple[str, int] | None) -> Edit:
        """The edit that sets a batch size, at a given path and line or at the best site. Raises `Refused`."""
        found = await self.sites(path)
        if where is not None:
            key = path_key(where[0])
            site = next((s for s in found.sites if path_key(s.path) == key and s.line == where[1]), None)
            if site is None:
                raise Refused(f"No batch size is written at line {where[1]} of {where[0]} any more.")
        else:
            site = found.best or next(iter(found.sites), None)
        if site is None:
            raise Refused(f"The batch size can't be changed: {found.reason}.")
        try:
            return set_batch_size(site, batch_size)
        except EditRefused as refusal:
            raise Refused(f"The batch size can't be set to {batch_size}: {refusal}.") from refusal

    # What is shown.

    def snapshot(self, path: str) -> Snapshot:
        """One file at this moment."""
        return self._snapshot(path, self._workload_for(path))

    def diagnostics(self) -> dict[str, tuple[Diagnostic, ...]]:
        """Every diagnostic of the project, by absolute path."""
        found: dict[str, list[Diagnostic]] = {}
        shown = {id(workload): workload for workload in self._workloads.values() if workload.index or workload.failure}
        for document in self._documents:
            if self.files.holds(document.path) and (workload := self._workload_for(document.path)) is not None:
                shown[id(workload)] = workload
        for workload in shown.values():
            # Where lines are now is known to the snapshot of their own file.
            last = workload.failure.frames[-1:] if workload.failure is not None else ()
            for path in sorted({workload.path, *(frame.path for frame in last)}):
                rows = diagnostics(self._snapshot(path, workload))
                found.setdefault(path, []).extend(row for row in rows if row.path == path)
        for problem in self._reading.problems if self._reading is not None else ():
            if problem.line is not None:
                found.setdefault(self.pyproject, []).append(
                    Diagnostic(
                        path=self.pyproject,
                        line=problem.line,
                        column=None,
                        end_column=None,
                        severity=Severity.WARNING,
                        code=SETTING,
                        message=problem.message,
                    )
                )
        return {path: tuple(rows) for path, rows in found.items() if rows}

    @property
    def pyproject(self) -> str:
        """Absolute path of the project's pyproject.toml, be it there or not."""
        return os.path.join(self.root, PYPROJECT)

    def source(self, path: str) -> SourceText:
        """A file's text as the editor has it."""
        return self._index.source(path)

    def display_key(self) -> object:
        """Differs whenever something else is to be shown, other than through edits of the document itself."""
        shown = tuple(
            (
                workload.path,
                self._state(workload),
                id(workload.index),
                id(workload.partial),
                id(workload.model),
                id(workload.failure),
            )
            for workload in self._workloads.values()
        )
        job = self._job
        # A run reports often; once a second is enough for what is redrawn.
        progress = (job.progress.stage, job.progressed_s) if job is not None and job.progress is not None else None
        return (shown, progress, self._index.revision, self._chosen, id(self._reading))

    async def close(self) -> None:
        """End everything that was started."""
        self._index.stop()
        for task in (self._scan, self._looking):
            if task is not None:
                task.cancel()
        if self._client is not None and self._job is not None:
            # The editor is closing, and does not wait for a run to be ended gently.
            self._client.kill()
        await self.cancel()
        if self._client is not None:
            await self._client.close()

    # Which program a file belongs to.

    async def _demanded(self, path: str | None) -> _Workload:
        """The program that belongs to a file, for a run that the user asks for. Raises `Refused`."""
        if not self.settings.trusted:
            raise Refused(UNTRUSTED)
        workload = await self._found(path)
        if workload is None:
            raise Refused(self._nothing())
        return workload

    async def _found(self, path: str | None) -> _Workload | None:
        """The program that belongs to a file, all about it found out anew."""
        path = path or self._last_path
        if path is not None:
            await asyncio.to_thread(self._index.update_entry, path)
        if path is None or self._index.entry_at(path) is None:
            await self._scanned()
        workload = self._workload_for(path)
        if workload is not None:
            await self._look_at(workload)
        return workload

    async def _look_at(self, workload: _Workload) -> None:
        await asyncio.to_thread(self._index.update_sites, workload.path, self._arguments())
        # Only now: samples are kept by the source without the batch size's digits.
        if not workload.restored and self._reading is not None:
            workload.restored = True
            self._restore(workload)

    async def prepared(self, path: str) -> None:
        """Wait until a file has been looked at once, so that there is something to show of it."""
        if not self._index.knows_entry(path):
            await asyncio.to_thread(self._index.update_entry, path)
        workload = self._workload_for(path)
        if workload is not None and not self._index.knows_sites(workload.path, self._arguments()):
            await self._look_at(workload)

    def _look_soon(self, path: str) -> None:
        """Find out anew about a document that changed, when its user pauses."""
        self._changed_paths.add(path)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while self._changed_paths:
            # One look for a burst of key strokes. Threads, since following a program takes longer than a hover may.
            await asyncio.sleep(_LOOK_PAUSE_S)
            revision = self._index.revision
            while self._changed_paths:
                path = self._changed_paths.pop()
                await asyncio.to_thread(self._index.update_entry, path)
                workload = self._workload_for(path)
                if workload is not None:
                    await self._look_at(workload)
            if self._index.revision != revision:
                self._listener.changed()

    def _nothing(self) -> str:
        if self._index.entry_points():
            return "It is not clear which program is meant: open it, or choose one with `skyline.chooseWorkload`"
        return (
            "There is nothing to profile in this project yet: write a file with the functions "
            "`skyline_model_provider`, `skyline_input_provider` and `skyline_iteration_provider`, or a script that "
            "trains, or name the program in the setting `entryPoint`"
        )

    def _workload_for(self, path: str | None) -> _Workload | None:
        found = self._program_for(path)
        if found is None:
            return None
        workload = self._workloads.get(found)
        if workload is None:
            workload = self._workloads[found] = _Workload(path=found)
        return workload

    def _program_for(self, path: str | None) -> str | None:
        chosen = self._chosen or wished_path(self.settings, self.root)
        if chosen is not None:
            return chosen
        if path is not None and self._index.entry_at(path) is not None:
            return path
        points = self._index.entry_points()
        if path is None:
            return points[0].path if len(points) == 1 else None
        relative = self.files.relative(path)
        measured = [workload for workload in self._workloads.values() if relative in workload.files]
        if measured:
            return max(measured, key=lambda workload: workload.measured_at_s).path
        nearest = nearest_entry_point(points, path)
        return nearest.path if nearest is not None else None

    def _point(self, workload: _Workload) -> EntryPoint:
        return self._index.entry_at(workload.path) or entry_at(workload.path, self.files)

    def _sites(self, workload: _Workload) -> SitesFound:
        return self._index.sites(workload.path, self._arguments())

    def _arguments(self) -> tuple[str, ...]:
        """What the program is started with."""
        run = self.settings.active_run
        return run.arguments if run is not None else ()

    def _start_scan(self) -> None:
        if self._scan is not None and not self._scan.done():
            self._scan_again = True
            return
        self._scan = asyncio.create_task(self._scan_files())

    async def _scan_files(self) -> None:
        while True:
            self._scan_again = False
            await asyncio.to_thread(self._index.scan)
            if not self._scan_again:
                break
        self._listener.changed()

    async def _scanned(self) -> None:
        if self._scan is None:
            self._start_scan()
        assert self._scan is not None
        await asyncio.shield(self._scan)

    # Running.

    def _runs(self, workload: _Workload) -> bool:
        return self._job is not None and self._job.workload is workload

    def _start(self, workload: _Workload, title: str, work: Callable[[_Job], Coroutine[Any, Any, None]]) -> None:
        """Begin a job in place of the one under way, which is cancelled."""
        previous = self._job
        if previous is not None and previous.task is not None:
            previous.superseded = True
            previous.task.cancel()
        digests = {document.path: self.files.digest(document.path, on_disk=True) for document in self._documents}
        job = _Job(workload=workload, title=title, digests=digests)
        self._job = job
        job.task = asyncio.create_task(self._carry_out(job, work))
        job.task.add_done_callback(lambda _: self._ended(job))
        self._show(job)
        self._listener.changed()

    async def _carry_out(self, job: _Job, work: Callable[[_Job], Coroutine[Any, Any, None]]) -> None:
        # The one before may still be on its way out.
        async with self._worker_free:
            try:
                await work(job)
            except Exception as error:
                _log.exception("a run came to an end by a fault of the server")
                job.workload.failure = Failure(
                    kind=FailureKind.INTERNAL,
                    message=f"skyline-lsp itself failed ({type(error).__name__}: {error}); its log has the details.",
                )

    def _ended(self, job: _Job) -> None:
        job.workload.partial = None
        if self._job is job:
            self._job = None
            self._listener.activity(self, None)
            self._listener.changed()

    async def _outcome(self) -> None:
        """Wait for the end of the job under way. Raises `Refused` where it came to nothing."""
        job = self._job
        if job is None or job.task is None:
            return
        try:
            await asyncio.wait({job.task})
        except asyncio.CancelledError:
            # Who asked has lost interest.
            job.task.cancel()
            raise
        if job.superseded:
            raise Refused("The source was saved meanwhile, and is profiled anew; ask again then.")
        if job.task.cancelled():
            raise Refused("It was cancelled.")
        if job.refusal is not None:
            raise Refused(job.refusal)

    async def _profile(self, job: _Job, batch_size: int | None) -> None:
        workload, settings = job.workload, self.settings
        workload.failure, workload.partial = None, None
        await self._found(workload.path)
        point, site = self._point(workload), self._sites(workload).best
        inputs = self._inputs(site)
        try:
            entry = entry_for(point, settings, self.root)
            spec = run_spec(entry, settings, Goal.PROFILE, batch_size=batch_size, site=site)
        except EditRefused as refusal:
            job.refusal = str(refusal)
            return
        result = await self._run(job, spec)
        if result.status is Status.CANCELLED:
            return
        if result.failure is not None or result.profile is None:
            self._fail(workload, result.failure)
            return
        self._take(workload, result.profile, {**inputs, **result.profile.files}, site)
        if result.sample is not None:
            self._add_samples(workload, (result.sample,))
        await self._keep(workload)

    async def _sample(self, job: _Job, wanted: int) -> None:
        """Measure other batch sizes until `wanted` can be predicted, or time is up."""
        workload, settings = job.workload, self.settings
        await self._found(workload.path)
        entry = entry_for(self._point(workload), settings, self.root)
        site = self._sites(workload).best
        workload.remarks = ()
        deadline_s = self._monotonic() + settings.prediction_budget_s
        while (size := self._next_size(workload, wanted, deadline_s)) is not None:
            began_s = self._monotonic()
            try:
                spec = run_spec(entry, settings, Goal.SAMPLE, batch_size=size, site=site)
            except EditRefused as refusal:
                workload.unmeasurable += (size,)
                workload.remarks += (f"Batch size {size} can't be measured: {refusal}.",)
                continue
            result = await self._run(job, spec)
            if result.status is Status.CANCELLED:
                job.refusal = "It was cancelled."
                break
            if result.sample is not None:
                workload.spent += (Spent(batch_size=size, seconds=self._monotonic() - began_s),)
                self._add_samples(workload, (result.sample,))
            elif result.failure is not None and result.failure.kind is FailureKind.OUT_OF_MEMORY:
                workload.out_of_memory += (size,)
                self._fit(workload)
            else:
                workload.unmeasurable += (size,)
                workload.remarks += (self._why_no_sample(size, result.failure),)
        if self._next_size(workload, wanted, None) is not None:
            workload.remarks += (
                f"Measuring was ended after {settings.prediction_budget_s:g} s; "
                "a larger `predictionBudgetSeconds` would narrow the predictions.",
            )
        await self._keep_samples(workload)

    async def _run(self, job: _Job, spec: RunSpec) -> RunResult:
        """One run of the program; what goes wrong with the worker is the run's failure."""
        settings = self.settings
        interpreter = self._interpreter(job.workload, settings)

        def failed(kind: FailureKind, message: str) -> RunResult:
            return RunResult(run_id=0, status=Status.FAILED, failure=Failure(kind=kind, message=message))

        if interpreter.problem is not None:
            return failed(FailureKind.ENVIRONMENT, interpreter.problem)
        try:
            client = await self._worker(interpreter, settings)
            info = await client.start()
            if info.problem is not None:
                chosen = f"{interpreter.path} was chosen because of {interpreter.reason}."
                return failed(FailureKind.ENVIRONMENT, f"{info.problem} {chosen}")
            return await client.run(
                spec,
                on_progress=functools.partial(self._progressed, job),
                on_partial=functools.partial(self._came, job),
            )
        except WorkerDied as death:
            return failed(FailureKind.CRASHED, str(death))
        except WorkerError as error:
            return failed(FailureKind.ENVIRONMENT, str(error))

    async def _worker(self, interpreter: Interpreter, settings: Settings) -> WorkerClient:
        """The worker that the settings want; one of other settings is ended."""
        options = (interpreter.path, settings.worker_command, settings.environment)
        if self._client is not None and self._client_options != options:
            await self._client.close()
            self._client = None
        if self._client is None:
            _log.info("running programs with %s: %s", interpreter.path, interpreter.reason)
            self._client_options = options
            self._client = WorkerClient(
                python=interpreter.path,
                root=self.root,
                prefix=settings.worker_command,
                environment=dict(settings.environment),
                on_output=lambda output: self._listener.output(output.text),
                on_log=lambda line: _log.info("worker: %s", line),
            )
        return self._client

    def _interpreter(self, workload: _Workload, settings: Settings) -> Interpreter:
        return find_interpreter(
            root=self.root,
            setting=settings.python,
            near=os.path.dirname(workload.path),
            remote=bool(settings.worker_command),
            environ=self._environ,
        )

    def _progressed(self, job: _Job, progress: Progress) -> None:
        job.progress = progress
        job.progressed_s = int(self._monotonic())
        if self._job is job:
            self._show(job)
            self._listener.changed()

    def _came(self, job: _Job, partial: Partial) -> None:
        # A profile without lines would only take away what an earlier one shows.
        if self._job is job and (partial.profile.lines or job.workload.index is None):
            job.workload.partial = Index(partial.profile)
            self._listener.changed()

    def _show(self, job: _Job) -> None:
        progress = job.progress
        self._listener.activity(
            self,
            Activity(
                title=f"{job.title} {self.files.relative(job.workload.path)}",
                message=progress.message if progress is not None else "starting",
                percentage=_percentage(progress) if progress is not None else None,
            ),
        )

    # Results.

    def _fail(self, workload: _Workload, failure: Failure | None) -> None:
        workload.failure = failure or Failure(
            kind=FailureKind.INTERNAL, message="The worker gave no result and no reason; its log may have more."
        )
        texts = {}
        for path in {workload.path, *(frame.path for frame in workload.failure.frames)}:
            if (data := self.files.read_disk(path)) is not None:
                texts[path] = decode(data).text
        workload.failure_texts = texts
        if workload.failure.traceback:
            _log.info("the program failed:\n%s", workload.failure.traceback)

    def _take(self, workload: _Workload, profile: Profile, files: dict[str, str], site: Site | None) -> None:
        """Show a profile, measured now or restored."""
        workload.index, workload.files = Index(profile), files
        workload.failure, workload.failure_texts = None, {}
        workload.measured_at_s = self._monotonic()
        workload.texts = {}
        for relative, digest in files.items():
            path = self.files.absolute(relative)
            if self.files.digest(path, on_disk=True) == digest and (data := self.files.read_disk(path)) is not None:
                workload.texts[relative] = decode(data).text
        key = self._samples_key(workload, site)
        if key != workload.samples_key:
            workload.samples_key, workload.samples = key, ()
            workload.out_of_memory, workload.unmeasurable, workload.spent, workload.remarks = (), (), (), ()
            workload.model = None
            if key is not None:
                self._add_samples(workload, self._cache.samples(key))

    def _add_samples(self, workload: _Workload, samples: tuple[Sample, ...]) -> None:
        """Take samples in, the newest of a batch size counting."""
        by_size = {sample.batch_size: sample for sample in (*workload.samples, *samples)}
        workload.samples = tuple(by_size[size] for size in sorted(by_size))
        self._fit(workload)

    def _fit(self, workload: _Workload) -> None:
        profile = workload.profile
        # One sample says nothing of other sizes.
        if profile is None or len(workload.samples) < 2:
            workload.model = None
            return
        workload.model = fit(
            workload.samples,
            accelerator=profile.device.kind != "cpu",
            micro_batches=profile.micro_batches,
            out_of_memory=workload.out_of_memory,
        )

    def _next_size(self, workload: _Workload, wanted: int, deadline_s: float | None) -> int | None:
        """The batch size to measure next, None when enough is known or time is up."""
        profile, site = workload.profile, self._sites(workload).best
        if profile is None or profile.batch_size is None:
            return None
        centres = [profile.batch_size]
        # What is near a size that was measured can be predicted; a wish far away needs some of its own.
        if wanted > RANGE * profile.batch_size:
            centres.append(wanted // RANGE)
        elif wanted * RANGE < profile.batch_size:
            centres.append(wanted * RANGE)
        for centre in centres:
            known = Known(
                current=centre,
                samples=workload.samples,
                memory_bytes=profile.device.memory_bytes,
                out_of_memory=workload.out_of_memory,
                failed=workload.unmeasurable,
                maximum=site.maximum if site is not None else None,
                spent=workload.spent,
                seconds_left=None if deadline_s is None else max(0.0, deadline_s - self._monotonic()),
            )
            if (size := next_batch_size(known)) is not None:
                return size
        return None

    def _why_no_sample(self, size: int, failure: Failure | None) -> str:
        if failure is None:
            return f"Batch size {size} could not be measured."
        where = ""
        if failure.frames:
            frame = failure.frames[-1]
            where = f" ({self.files.relative(frame.path)}:{frame.line})"
        return f"The program does not run at batch size {size}{where}: {failure.message}"

    def _inputs(self, site: Site | None) -> dict[str, str]:
        """A configuration file that holds the batch size is no code that ran, but what ran depends on it."""
        if site is None or not self.files.holds(site.path):
            return {}
        digest = self.files.digest(site.path, on_disk=True)
        return {} if digest is None else {self.files.relative(site.path): digest}

    def _samples_key(self, workload: _Workload, site: Site | None) -> str | None:
        """Names what was measured: every file's content, the batch size's digits left out."""
        masked: dict[str, bytes] = {}
        if site is not None and self.files.holds(site.path):
            relative = self.files.relative(site.path)
            data = self.files.read_disk(site.path)
            if data is not None and self.files.digest(site.path, on_disk=True) == workload.files.get(relative):
                # The site is the editor's; it is the file's too where both have the same bytes.
                if self.files.read(site.path) != data:
                    return None
                masked[relative] = data[: site.start] + data[site.end :]
        return f"{self._workload_key(workload)}\n{content_digest(workload.files, masked)}"

    def _workload_key(self, workload: _Workload) -> str:
        settings = self.settings
        entry = entry_for(self._point(workload), settings, self.root)
        interpreter = self._interpreter(workload, settings)
        return workload_key(entry, settings, interpreter, self.files.relative(workload.path))

    async def _keep(self, workload: _Workload) -> None:
        profile = workload.profile
        assert profile is not None
        saved_at = self._now().isoformat(timespec="microseconds")
        # Compressing a large profile takes longer than a hover may wait; nothing else runs on this thread.
        await asyncio.to_thread(
            self._cache.save_profile, self._workload_key(workload), profile, workload.files, saved_at=saved_at
        )
        await self._keep_samples(workload)

    async def _keep_samples(self, workload: _Workload) -> None:
        if workload.samples_key is not None:
            await asyncio.to_thread(self._cache.save_samples, workload.samples_key, workload.samples)

    def _restore(self, workload: _Workload) -> None:
        """Show what was measured of these very files before."""

        def unchanged(files: Mapping[str, str]) -> bool:
            return all(self.files.digest(self.files.absolute(path)) == digest for path, digest in files.items())

        record = self._cache.find_profile(self._workload_key(workload), unchanged)
        if record is not None:
            self._take(workload, record.profile, record.files, self._sites(workload).best)
            self._listener.changed()

    # Showing.

    def _snapshot(self, path: str, workload: _Workload | None) -> Snapshot:
        settings = self.settings
        options = Options(
            hints_enabled=settings.hints_enabled,
            threshold_percent=settings.hints_threshold_percent,
            show_memory=settings.hints_memory,
            lenses_enabled=settings.lenses_enabled,
            summary_diagnostic=settings.diagnostics_summary,
        )
        source = self._index.source(path)
        if workload is None:
            return snapshot(path=path, source=source, root=self.root, options=options)
        found = self._sites(workload)
        state = self._state(workload)
        partial = workload.partial
        index = partial or workload.index
        progress = self._job.progress if self._job is not None and self._runs(workload) else None
        return snapshot(
            path=path,
            source=source,
            root=self.root,
            state=state,
            progress=progress.message if progress is not None else None,
            profile=index.profile if index is not None else None,
            index=index,
            line_of=self._line_of(workload, path) if partial is None else None,
            outdated=partial is None and index is not None and not self._is_fresh(workload),
            entry=self._point(workload),
            sites=found.sites,
            no_site_reason=found.reason,
            model=workload.model,
            failure=workload.failure if state is State.FAILED else None,
            failure_line_of=self._failure_line_of(workload, path),
            options=options,
        )

    def _state(self, workload: _Workload) -> State:
        if self._runs(workload):
            return State.RUNNING
        if workload.failure is not None:
            return State.FAILED
        if workload.index is None:
            return State.IDLE
        return State.READY if self._is_fresh(workload) else State.STALE

    def _is_fresh(self, workload: _Workload) -> bool:
        """Whether every file is, in the editor, as it was when measured."""
        files = self.files
        return all(files.digest(files.absolute(path)) == digest for path, digest in workload.files.items())

    def _is_current(self, workload: _Workload) -> bool:
        """Whether every file is, on disk, as it was when measured."""
        files = self.files
        return all(
            files.digest(files.absolute(path), on_disk=True) == digest for path, digest in workload.files.items()
        )

    def _line_of(self, workload: _Workload, path: str) -> Mapping[int, int] | None:
        before = workload.texts.get(self.files.relative(path))
        # Where the text that was measured is not at hand, no line can be told to be the one that was.
        return {} if before is None else self._index.moved(path, before)

    def _failure_line_of(self, workload: _Workload, path: str) -> Mapping[int, int] | None:
        before = workload.failure_texts.get(path) if workload.failure is not None else None
        return None if before is None else self._index.moved(path, before)

    def _status(self, workload: _Workload | None) -> dict[str, Any]:
        status: dict[str, Any] = {
            "root": self.root,
            "state": State.IDLE.value,
            "trusted": self.settings.trusted,
            "workload": None,
            "programs": [self.files.relative(point.path) for point in self._index.entry_points()],
        }
        if workload is None:
            return status
        job = self._job if self._runs(workload) else None
        profile, failure = workload.profile, workload.failure
        point, found, interpreter = (
            self._point(workload),
            self._sites(workload),
            self._interpreter(workload, self.settings),
        )
        status |= {
            "state": self._state(workload).value,
            "workload": {"kind": point.kind.value, "path": self.files.relative(workload.path), "reason": point.reason},
            "interpreter": {"path": interpreter.path, "reason": interpreter.reason, "problem": interpreter.problem},
            "batchSize": found.best.batch_size if found.best is not None else None,
            "activity": job.title if job is not None else None,
            "progress": job.progress.message if job is not None and job.progress is not None else None,
            "failure": None
            if failure is None or job is not None
            else {
                "kind": failure.kind.value,
                "message": failure.message,
                "path": failure.frames[-1].path if failure.frames else None,
                "line": failure.frames[-1].line if failure.frames else None,
                "traceback": failure.traceback,
            },
            "profile": None
            if profile is None
            else {
                "outdated": not self._is_fresh(workload),
                "batchSize": profile.batch_size,
                "runTimeMs": profile.iteration.run_time_ms,
                "samplesPerSecond": profile.iteration.samples_per_second,
                "peakBytes": profile.iteration.peak_bytes,
                "device": {
                    "kind": profile.device.kind,
                    "name": profile.device.name,
                    "memoryBytes": profile.device.memory_bytes,
                },
            },
            "measuredBatchSizes": [sample.batch_size for sample in workload.samples],
        }
        return status


def _percentage(progress: Progress) -> int:
    """How far a run is; a stage's own fraction lies between its beginning and the next one's."""
    begins = sorted(_BEGINS.values())
    begin = _BEGINS.get(progress.stage, begins[-1])
    end = next((value for value in begins if value > begin), 100)
    return begin + round((end - begin) * min(max(progress.fraction or 0.0, 0.0), 1.0))
