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
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Final, Protocol

from skyline_lsp.features import (
    Diagnostic,
    Elsewhere,
    Options,
    Severity,
    Snapshot,
    State,
    diagnostics,
    on_device,
    snapshot,
    why_by_running,
)
from skyline_lsp.features.units import format_bytes, format_ms
from skyline_lsp.prediction import (
    DeviceSpec,
    FoundPeak,
    Prediction,
    Refusal,
    Retune,
    Spent,
    exact_peak,
    hold_against,
)
from skyline_lsp.prediction.wish import Wish, fulfil
from skyline_lsp.protocol import (
    Entry,
    EntryKind,
    Failure,
    FailureKind,
    Goal,
    Partial,
    Progress,
    RunResult,
    RunSpec,
    Sample,
    Stage,
    Status,
)
from skyline_lsp.server.cache import ResultCache
from skyline_lsp.server.documents import Documents, path_key
from skyline_lsp.server.interpreter import Interpreter
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.results import Results
from skyline_lsp.server.runner import Runner
from skyline_lsp.server.sampler import shown
from skyline_lsp.server.settings import Reading, Settings
from skyline_lsp.server.source_index import SitesFound, SourceIndex
from skyline_lsp.server.status import program_status, project_status
from skyline_lsp.server.workloads import entry_at, entry_for, run_spec, wished_path, workload_key
from skyline_lsp.source import (
    Edit,
    EditRefused,
    EntryPoint,
    EntryPointKind,
    Site,
    SourceText,
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
    """One program."""

    path: str
    results: Results
    armed: bool = False
    """Whether the user has had it run, so that saving may run it again."""
    restored: bool = False
    """Whether the cache was asked."""


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
        self._disk_files = ProjectFiles(root)
        self._disk = SourceIndex(self._disk_files)
        """The same of the files as they are on disk, which is what runs."""
        self._documents = documents
        self._cache = cache
        self._listener = listener
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
        self._runner = Runner(root, environ=environ, on_output=lambda output: listener.output(output.text))

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
            workload.restored = workload.restored and workload.results.index is not None
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
        elif workload.results.failure is not None or workload.results.index is None:
            concerns = True
        else:
            concerns = not workload.results.is_current()
        if concerns:
            self._start(workload, "Profiling", functools.partial(self._profile, batch_size=None))

    def files_changed(self) -> None:
        """Files came, went or were changed outside of the editor."""
        self.files.forget_listing()
        self._disk_files.forget_listing()
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
        self._workloads[workload.path] = self._new_workload(workload.path)
        self._workloads[workload.path].restored = True
        self._listener.changed()

    async def predict(self, path: str | None, batch_size: int) -> Prediction:
        """What another batch size would do; measures what is missing for an answer. Raises `Refused`."""
        results = (await self._sampled(path, batch_size)).results
        prediction = results.predict(batch_size)
        if prediction is None:
            raise Refused(" ".join((f"Batch size {batch_size} can't be predicted.", *results.problems)))
        return prediction

    def known(self, path: str | None, batch_size: int) -> Prediction | None:
        """What another batch size would do, from what was measured already; None where that does not tell."""
        workload = self._workload_for(path or self._last_path)
        return workload.results.predict(batch_size) if workload is not None else None

    async def retune(self, path: str | None, wish: Wish) -> Retune:
        """The batch size that fulfils a wish; measures what is missing for an answer. Raises `Refused`."""
        workload = await self._sampled(path, None)
        profile, model = workload.results.profile, workload.results.sampling.model
        if profile is None or model is None:
            raise Refused(" ".join(("Too little is known of other batch sizes.", *workload.results.problems)))
        site = self._sites(workload).best
        found = fulfil(model, wish, profile.device.memory_bytes, site.maximum if site is not None else None)
        if isinstance(found, Refusal):
            raise Refused(found.reason)
        return found

    async def preview(self, path: str | None, batch_size: int | None) -> Prediction | None:
        """Show everything as it would be at another batch size, or, with None, as it was measured. Raises `Refused`."""
        if batch_size is None:
            workload = self._workload_for(path or self._last_path)
        else:
            workload = await self._sampled(path, batch_size)
            if not workload.results.show_preview(batch_size):
                raise Refused(" ".join((f"Batch size {batch_size} can't be predicted.", *workload.results.problems)))
        if workload is None:
            return None
        if batch_size is None:
            workload.results.show_preview(None)
        self._listener.changed()
        preview = workload.results.preview
        return preview.prediction if preview is not None else None

    def results(self, path: str | None) -> Results | None:
        """What is known of the program that belongs to a file; for reading only."""
        workload = self._workload_for(path or self._last_path)
        return workload.results if workload is not None else None

    async def _sampled(self, path: str | None, batch_size: int | None) -> _Workload:
        """The program that belongs to a file, once enough was measured to predict a batch size. Raises `Refused`."""
        workload = await self._demanded(path)
        results = workload.results
        workload.armed = True
        if self._runs(workload):
            await self._outcome()
        if results.index is None or not results.is_current():
            self._start(workload, "Profiling", functools.partial(self._profile, batch_size=None))
            await self._outcome()
        if results.failure is not None:
            raise Refused(results.failure.message)
        if results.profile is not None and results.profile.batch_size is None:
            raise Refused("The batch size that the program runs with can't be told, so no other can be predicted.")
        wanted = batch_size or (results.profile.batch_size if results.profile is not None else None) or 1
        if self._runs(workload):
            await self._outcome()
        elif self._is_worth_measuring(workload, wanted, known=batch_size is not None):
            self._start(workload, "Measuring other batch sizes of", functools.partial(self._sample, wanted=wanted))
            await self._outcome()
        return workload

    def _is_worth_measuring(self, workload: _Workload, batch_size: int, known: bool) -> bool:
        """Whether to measure before a prediction. Once that was done for this source, only where there is none.

        With `known` false any batch size may be asked for, not just this one.
        """
        results = workload.results
        if results.sampling.done and (not known or results.predict(batch_size) is not None):
            return False
        return results.next_size(batch_size, self._sites(workload).best, None) is not None

    async def measure_autocast(self, path: str | None, data_type: str) -> tuple[Sample, Sample]:
        """The program as it is, and under autocast to a data type, one run after the other. Raises `Refused`."""
        workload = await self._demanded(path)
        workload.armed = True
        taken: list[Sample] = []
        work = functools.partial(self._in_precisions, data_type=data_type, taken=taken)
        self._start(workload, f"Measuring {data_type} in", work)
        await self._outcome()
        before, after = taken
        return before, after

    async def estimate(self, path: str | None, device: DeviceSpec, batch_size: int | None) -> tuple[Elsewhere, str]:
        """A batch size, that of the source by default, on a device that isn't here; and why it took real runs, or "".

        Raises `Refused`.
        """
        workload = await self._demanded(path)
        workload.armed = True
        results = workload.results
        entry, site = await self._on_disk(workload)
        size = batch_size or (site.batch_size if site is not None else None)
        found = results.peak_found(size, site) if size is not None else None
        note = results.needs_data(site)
        if found is None and note is None:
            if self._runs(workload):
                await self._outcome()
            outcome: list[FoundPeak | str] = []
            work = functools.partial(self._estimate, batch_size=batch_size, outcome=outcome)
            self._start(workload, "Estimating the memory of", work)
            await self._outcome()
            (answer,) = outcome
            if isinstance(answer, FoundPeak):
                found = answer
            else:
                note = answer
        if found is None:
            assert note is not None
            found = await self._peak_by_running(path, size, note)
        results.ask_for(device)
        await results.keep_peaks(self._key(entry, self._runner.interpreter(workload.path, self.settings)))
        self._listener.changed()
        timed = results.profile if results.index is not None and results.is_current() else None
        return on_device(found, device, timed), note or ""

    async def _peak_by_running(self, path: str | None, batch_size: int | None, note: str) -> FoundPeak:
        """The peak of a batch size from real runs of this and others. Raises `Refused`."""
        workload = await self._sampled(path, batch_size)
        results = workload.results
        size = batch_size or (results.profile.batch_size if results.profile is not None else None)
        prediction = results.predict(size) if size is not None else None
        peak_bytes = prediction.peak_bytes if prediction is not None else None
        if size is None or peak_bytes is None:
            raise Refused(" ".join((note, "And from those its memory can't be told.", *results.problems)))
        found = FoundPeak(batch_size=size, peak_bytes=peak_bytes, allocated=True)
        _, site = await self._on_disk(workload)
        results.take_peak(found, files=results.files, site=site, note=note)
        return found

    def problems(self, path: str | None) -> tuple[str, ...]:
        """What limits the trust in a program's predictions, each a sentence."""
        workload = self._workload_for(path or self._last_path)
        return workload.results.problems if workload is not None else ()

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

    def known_sites(self, path: str) -> SitesFound:
        """Where the batch size of the program at a path is written, as last found."""
        found = self._index.sites(path, self._arguments())
        workload = self._workloads.get(path)
        return workload.results.ranked(found) if workload is not None else found

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
        shown = {
            id(workload): workload
            for workload in self._workloads.values()
            if workload.results.index or workload.results.failure
        }
        for document in self._documents:
            if self.files.holds(document.path) and (workload := self._workload_for(document.path)) is not None:
                shown[id(workload)] = workload
        for workload in shown.values():
            # Where lines are now is known to the snapshot of their own file.
            own = self._snapshot(workload.path, workload)
            last = workload.results.failure.frames[-1:] if workload.results.failure is not None else ()
            seen = {one.path for one in own.advice()}
            seen |= {one.path for one in own.profile.remarks} if own.profile is not None else set()
            elsewhere = {self.files.absolute(path) for path in seen} | {frame.path for frame in last}
            for path in sorted({workload.path, *elsewhere}):
                rows = diagnostics(own if path == workload.path else self._snapshot(path, workload))
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
            (workload.path, self._state(workload), workload.results.revision) for workload in self._workloads.values()
        )
        job = self._job
        # A run reports often; once a second is enough for what is redrawn.
        progress = (job.progress.stage, job.progressed_s) if job is not None and job.progress is not None else None
        return (shown, progress, self._index.revision, self._chosen, self._reading)

    async def close(self) -> None:
        """End everything that was started."""
        self._index.stop()
        for task in (self._scan, self._looking):
            if task is not None:
                task.cancel()
        # The editor is closing, and does not wait for a run to be ended gently.
        await self._runner.close(at_once=self._job is not None)
        await self.cancel()

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
            entry, site = await self._on_disk(workload)
            key = self._key(entry, self._runner.interpreter(workload.path, self.settings))
            if await workload.results.restore(key, site, self._monotonic()):
                self._listener.changed()

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
            workload = self._workloads[found] = self._new_workload(found)
        return workload

    def _new_workload(self, path: str) -> _Workload:
        return _Workload(path=path, results=Results(path, files=self.files, sources=self._index, cache=self._cache))

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
        measured = [workload for workload in self._workloads.values() if relative in workload.results.files]
        if measured:
            return max(measured, key=lambda workload: workload.results.measured_at_s).path
        nearest = nearest_entry_point(points, path)
        return nearest.path if nearest is not None else None

    def _point(self, workload: _Workload) -> EntryPoint:
        return self._index.entry_at(workload.path) or entry_at(workload.path, self.files)

    def _sites(self, workload: _Workload) -> SitesFound:
        return workload.results.ranked(self._index.sites(workload.path, self._arguments()))

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
                message = f"skyline-lsp itself failed ({type(error).__name__}: {error}); its log has the details."
                job.workload.results.fail(Failure(kind=FailureKind.INTERNAL, message=message))

    def _ended(self, job: _Job) -> None:
        job.workload.results.show_partial(None)
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
        workload, results = job.workload, job.workload.results
        results.begin()
        entry, site = await self._on_disk(workload)
        inputs = self._inputs(site)
        try:
            spec = run_spec(entry, self.settings, Goal.PROFILE, batch_size=batch_size, site=site)
            if results.profile is not None:
                # The device has not changed since; if it has, the worker's own interpreter has too.
                spec = replace(spec, peaks=results.profile.peaks)
        except EditRefused as refusal:
            job.refusal = f"Batch size {batch_size} can't be run: {refusal}."
            return
        key = self._key(entry, self._runner.interpreter(workload.path, self.settings))
        result = await self._run(job, spec)
        if result.status is Status.CANCELLED:
            return
        if result.failure is not None or result.profile is None:
            results.fail(result.failure)
            return
        files = {**inputs, **result.profile.files}
        await results.take(result.profile, files=files, key=key, site=site, measured_at_s=self._monotonic())
        if result.sample is not None:
            await results.add_samples((result.sample,))
        await results.keep(key, self._now().isoformat(timespec="microseconds"))
        if results.predicted is not None and result.sample is not None:
            self._listener.notice(_how_right(results.predicted, result.sample))

    async def _sample(self, job: _Job, wanted: int) -> None:
        """Measure other batch sizes until `wanted` can be predicted, or time is up."""
        workload, results, settings = job.workload, job.workload.results, self.settings
        sampling = results.sampling
        entry, site = await self._on_disk(workload)
        sampling.remarks = ()
        deadline_s = self._monotonic() + settings.prediction_budget_s
        while (size := results.next_size(wanted, site, max(0.0, deadline_s - self._monotonic()))) is not None:
            began_s = self._monotonic()
            try:
                spec = run_spec(entry, settings, Goal.SAMPLE, batch_size=size, site=site)
            except EditRefused as refusal:
                sampling.failed += (size,)
                sampling.remarks += (f"Batch size {size} can't be measured: {refusal}.",)
                continue
            result = await self._run(job, spec)
            if result.status is Status.CANCELLED:
                job.refusal = "It was cancelled."
                return
            set_at = site if entry.kind is not EntryKind.PROVIDER else None
            seen = shown(size, result.sample, result.failure, set_at=set_at, place=self._place)
            if set_at is not None and seen.site_works is not None:
                results.note_proof(set_at, seen.site_works)
            if seen.remark is not None:
                sampling.failed += (size,)
                sampling.remarks += (seen.remark,)
            if seen.out_of_memory:
                sampling.out_of_memory += (size,)
                await results.add_samples(())
            if seen.sample is not None:
                sampling.spent += (Spent(batch_size=size, seconds=self._monotonic() - began_s),)
                await results.add_samples((seen.sample,))
                self._listener.changed()
            if seen.site_works is False:
                break
        if results.next_size(wanted, site, None) is not None:
            sampling.remarks += (
                f"Measuring was ended after {settings.prediction_budget_s:g} s; "
                "a larger `predictionBudgetSeconds` would narrow the predictions.",
            )
        sampling.done = True
        await results.keep_samples()

    async def _estimate(self, job: _Job, batch_size: int | None, outcome: list[FoundPeak | str]) -> None:
        """Find the peak of a batch size without allocating; the outcome is the peak, or why that can't be done."""
        workload = job.workload
        entry, site = await self._on_disk(workload)
        inputs = self._inputs(site)
        try:
            spec = run_spec(entry, self.settings, Goal.ESTIMATE, batch_size=batch_size, site=site)
        except EditRefused as refusal:
            job.refusal = f"Batch size {batch_size} can't be run: {refusal}."
            return
        result = await self._run(job, spec)
        if result.status is Status.CANCELLED:
            job.refusal = "It was cancelled."
            return
        estimate = result.estimate
        if estimate is None:
            outcome.append(why_by_running(result.failure, self._place))
            return
        if batch_size is not None and estimate.batch_size != batch_size:
            job.refusal = (
                f"With batch size {batch_size} written in the source, the model was still fed {estimate.batch_size}."
            )
            return
        found = exact_peak(estimate.batch_size, float(estimate.peak_bytes))
        outcome.append(found)
        workload.results.take_peak(found, files={**inputs, **estimate.files}, site=site, note=None)

    async def _in_precisions(self, job: _Job, data_type: str, taken: list[Sample]) -> None:
        """Take a sample as the program is, then one under autocast; what stands in the way is the job's refusal."""
        workload = job.workload
        entry, site = await self._on_disk(workload)
        profile = workload.results.profile
        spec = run_spec(entry, self.settings, Goal.SAMPLE, site=site)
        if profile is not None:
            spec = replace(spec, device=profile.device.kind)
        for autocast in (None, data_type):
            result = await self._run(job, replace(spec, autocast=autocast))
            if result.status is Status.CANCELLED:
                job.refusal = "It was cancelled."
                return
            if result.sample is None:
                how = "as it is" if autocast is None else f"under {autocast} autocast"
                why = result.failure.message if result.failure is not None else "its batch size can't be told."
                job.refusal = f"The program could not be measured {how}: {why}"
                return
            taken.append(result.sample)

    async def _on_disk(self, workload: _Workload) -> tuple[Entry, Site | None]:
        """The program as a run finds it, and where its batch size stands there: documents may differ from files."""
        await asyncio.to_thread(self._disk.update_entry, workload.path)
        await asyncio.to_thread(self._disk.update_sites, workload.path, self._arguments())
        point = self._disk.entry_at(workload.path) or entry_at(workload.path, self.files)
        entry = entry_for(point, self.settings, self.root)
        return entry, workload.results.ranked(self._disk.sites(workload.path, self._arguments())).best

    async def _run(self, job: _Job, spec: RunSpec) -> RunResult:
        return await self._runner.run(
            spec,
            self.settings,
            on_progress=functools.partial(self._progressed, job),
            on_partial=functools.partial(self._came, job),
        )

    def _progressed(self, job: _Job, progress: Progress) -> None:
        job.progress = progress
        job.progressed_s = int(self._monotonic())
        if self._job is job:
            self._show(job)
            self._listener.changed()

    def _came(self, job: _Job, partial: Partial) -> None:
        # A profile without lines would only take away what an earlier one shows.
        if self._job is job and (partial.profile.lines or job.workload.results.index is None):
            job.workload.results.show_partial(partial.profile)
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

    def _place(self, path: str, line: int) -> str:
        return f"{self.files.relative(path)}:{line}"

    def _inputs(self, site: Site | None) -> dict[str, str]:
        """A configuration file that holds the batch size is no code that ran, but what ran depends on it."""
        if site is None or not self.files.holds(site.path):
            return {}
        digest = self.files.digest(site.path, on_disk=True)
        return {} if digest is None else {self.files.relative(site.path): digest}

    def _key(self, entry: Entry, interpreter: Interpreter) -> str:
        return workload_key(entry, self.settings, interpreter, self.files.relative(entry.path))

    # Showing.

    def _snapshot(self, path: str, workload: _Workload | None) -> Snapshot:
        settings = self.settings
        options = Options(
            hints_enabled=settings.hints_enabled,
            threshold_percent=settings.hints_threshold_percent,
            show_memory=settings.hints_memory,
            lenses_enabled=settings.lenses_enabled,
            summary_diagnostic=settings.diagnostics_summary,
            advice_disabled=frozenset(settings.advice_disabled),
        )
        source = self._index.source(path)
        if workload is None:
            return snapshot(path=path, source=source, root=self.root, options=options)
        found = self._sites(workload)
        state = self._state(workload)
        partial = workload.results.partial
        index = partial or workload.results.index
        progress = self._job.progress if self._job is not None and self._runs(workload) else None
        return snapshot(
            path=path,
            source=source,
            root=self.root,
            state=state,
            progress=progress.message if progress is not None else None,
            profile=index.profile if index is not None else None,
            index=index,
            line_of=workload.results.line_of(path) if partial is None else None,
            outdated=partial is None and index is not None and not workload.results.is_fresh(),
            entry=self._point(workload),
            sites=found.sites,
            no_site_reason=found.reason,
            model=workload.results.sampling.model,
            failure=workload.results.failure if state is State.FAILED else None,
            failure_line_of=workload.results.failure_line_of(path),
            preview=workload.results.preview,
            devices=tuple({one.name: one for one in (*settings.devices, *workload.results.devices)}.values()),
            peaks_found=workload.results.peaks_found(found.best),
            estimate_note=workload.results.estimating.note,
            options=options,
        )

    def _state(self, workload: _Workload) -> State:
        if self._runs(workload):
            return State.RUNNING
        if workload.results.failure is not None:
            return State.FAILED
        if workload.results.index is None:
            return State.IDLE
        return State.READY if workload.results.is_fresh() else State.STALE

    def _status(self, workload: _Workload | None) -> dict[str, Any]:
        status = project_status(self.files, self._index.entry_points(), trusted=self.settings.trusted)
        if workload is None:
            return status
        job = self._job if self._runs(workload) else None
        return status | program_status(
            self.files,
            state=self._state(workload),
            point=self._point(workload),
            interpreter=self._runner.interpreter(workload.path, self.settings),
            sites=self._sites(workload),
            results=workload.results,
            activity=job.title if job is not None else None,
            progress=job.progress.message if job is not None and job.progress is not None else None,
        )


def _how_right(predicted: Prediction, sample: Sample) -> str:
    """How right a prediction was, in a sentence."""
    outcome = hold_against(predicted, sample)
    within = "within" if outcome.run_time_within else "outside"
    time = predicted.run_time_ms
    text = (
        f"Batch size {predicted.batch_size}: predicted {format_ms(time.value)} an iteration "
        f"({format_ms(time.low)} to {format_ms(time.high)}), measured {format_ms(sample.run_time_ms)}, "
        f"{within} the interval"
    )
    if predicted.peak_bytes is None:
        return f"{text}."
    within = "within" if outcome.peak_within else "outside"
    peak = f"predicted peak {format_bytes(predicted.peak_bytes.value)}, measured {format_bytes(sample.peak_bytes)}"
    return f"{text}; {peak}, {within}."


def _percentage(progress: Progress) -> int:
    """How far a run is; a stage's own fraction lies between its beginning and the next one's."""
    begins = sorted(_BEGINS.values())
    begin = _BEGINS.get(progress.stage, begins[-1])
    end = next((value for value in begins if value > begin), 100)
    return begin + round((end - begin) * min(max(progress.fraction or 0.0, 0.0), 1.0))
