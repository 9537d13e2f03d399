"""What is known of one program: its last profile, its last failure, the samples of other batch sizes.

It tells whether that still holds for the files as they are, and keeps it in the cache under what it depends on: the
files' content, and how the program is run.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from skyline_lsp.features import Index, Preview
from skyline_lsp.prediction import (
    DeviceSpec,
    FoundPeak,
    Known,
    Model,
    Prediction,
    Spent,
    fit,
    next_batch_size_for,
    predict,
)
from skyline_lsp.protocol import Failure, FailureKind, Profile, Sample
from skyline_lsp.server.cache import HistoryRow, KeptPeaks, ResultCache, content_digest
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.source_index import SitesFound, SourceIndex
from skyline_lsp.source import Site, decode

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Sampling:
    """What measuring other batch sizes has shown, for one content of the files."""

    key: str | None = None
    """Names the content, the batch size's digits left out; None where it can't be told."""
    samples: tuple[Sample, ...] = ()
    """By batch size, one of each."""
    out_of_memory: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    """Batch sizes that could not be measured for another reason."""
    spent: tuple[Spent, ...] = ()
    remarks: tuple[str, ...] = ()
    """What went wrong, each a sentence."""
    model: Model | None = None
    done: bool = False
    """Whether measuring went on until enough was known or time was up."""


@dataclass(slots=True, kw_only=True)
class Estimating:
    """What is known of the program's memory on devices that aren't here, for one content of the files."""

    files: dict[str, str]
    """Relative path -> SHA-256, in the file with the batch size without its digits."""
    peaks: tuple[FoundPeak, ...] = ()
    """By batch size, one of each."""
    note: str | None = None
    """Why peaks can't be found without allocating; None while nothing says so."""


class Results:
    """Of one program. Only its session changes it."""

    def __init__(self, path: str, *, files: ProjectFiles, sources: SourceIndex, cache: ResultCache) -> None:
        self.path = path
        self.index: Index | None = None
        """Of the last whole profile."""
        self.partial: Index | None = None
        """Of a profile under way."""
        self.measured_at_s = 0.0
        self.failure: Failure | None = None
        self.sampling = Sampling()
        self.estimating = Estimating(files={})
        self.devices: tuple[DeviceSpec, ...] = ()
        """Those that the user has asked for, beside the settings' own."""
        self.proofs: dict[tuple[str, int, str], bool] = {}
        """Site, by path, line and name -> whether running with another value changed the batch that the model sees."""
        self.preview: Preview | None = None
        self.history: tuple[HistoryRow, ...] = ()
        """Figures of this and past profiles, oldest first."""
        self.predicted: Prediction | None = None
        """What the model said of the last profile's batch size before that was measured."""
        self.revision = 0
        """Grows whenever there is something else to show."""
        self.files: dict[str, str] = {}
        """What the profile depends on: relative path -> SHA-256."""
        self._texts: dict[str, str] = {}
        """Relative path -> text when it was measured, where that is known."""
        self._failure_texts: dict[str, str] = {}
        """Absolute path -> text when it failed."""
        self._project = files
        self._sources = sources
        self._cache = cache

    @property
    def profile(self) -> Profile | None:
        """The last whole profile."""
        return self.index.profile if self.index is not None else None

    @property
    def problems(self) -> tuple[str, ...]:
        """What limits the trust in predictions, each a sentence."""
        model = self.sampling.model
        return tuple(dict.fromkeys((*self.sampling.remarks, *(model.problems if model is not None else ()))))

    def predict(self, batch_size: int) -> Prediction | None:
        """What another batch size would do; None where that can't be told."""
        if self.profile is None or self.sampling.model is None:
            return None
        return predict(self.sampling.model, batch_size, self.profile.device.memory_bytes)

    def proof(self, site: Site) -> bool | None:
        """Whether a site was seen to have its effect; None while that was not tried."""
        return self.proofs.get((site.path, site.line, site.name))

    def note_proof(self, site: Site, proven: bool) -> None:
        """A run with another value has shown whether a site has its effect."""
        self.proofs[site.path, site.line, site.name] = proven
        self.revision += 1

    def ranked(self, found: SitesFound) -> SitesFound:
        """Sites in order, those that were seen to have no effect behind all others."""
        return replace(found, sites=tuple(sorted(found.sites, key=lambda site: self.proof(site) is False)))

    def show_preview(self, batch_size: int | None) -> bool:
        """Show another batch size as if it were in force, or none; whether that can be told."""
        prediction = self.predict(batch_size) if batch_size is not None else None
        self.preview = Preview(batch_size=prediction.batch_size, prediction=prediction) if prediction else None
        self.revision += 1
        return batch_size is None or prediction is not None

    # On devices that aren't here.

    def peaks_found(self, site: Site | None) -> tuple[FoundPeak, ...]:
        """Peaks by batch size, as far as they hold for the files as the editor has them."""
        kept = self.estimating
        if not kept.peaks or self._digests(kept.files, site, on_disk=False) != kept.files:
            return ()
        return kept.peaks

    def peak_found(self, batch_size: int, site: Site | None) -> FoundPeak | None:
        """The peak of a batch size, as far as it holds for the files on disk."""
        kept = self.estimating
        found = next((peak for peak in kept.peaks if peak.batch_size == batch_size), None)
        holds = found is not None and self._digests(kept.files, site, on_disk=True) == kept.files
        return found if holds else None

    def ask_for(self, device: DeviceSpec) -> None:
        """Show the program on this device too, from now on."""
        self.devices = tuple({one.name: one for one in (*self.devices, device)}.values())
        self.revision += 1

    def take_peak(self, peak: FoundPeak, *, files: Mapping[str, str], site: Site | None, note: str | None) -> None:
        """A peak was found, by a run of `files` (relative path -> SHA-256). `site` is the batch size's on disk."""
        project = self._project
        if any(project.digest(project.absolute(path), on_disk=True) != digest for path, digest in files.items()):
            # Saved meanwhile: the answer holds for the question, and for nothing that is there now.
            return
        digests = self._digests(files, site, on_disk=True)
        kept = self.estimating
        peaks = {one.batch_size: one for one in kept.peaks} if kept.files == digests else {}
        peaks[peak.batch_size] = peak
        self.estimating = Estimating(files=digests, peaks=tuple(peaks[size] for size in sorted(peaks)), note=note)
        self.revision += 1

    async def keep_peaks(self, key: str) -> None:
        """Write peaks and asked devices to the cache."""
        kept = self.estimating
        if kept.peaks:
            record = KeptPeaks(workload=key, files=kept.files, peaks=kept.peaks, note=kept.note, devices=self.devices)
            await asyncio.to_thread(self._cache.save_peaks, record)

    def needs_data(self, site: Site | None) -> str | None:
        """Why peaks of the files as they are on disk can't be found without allocating, where that was tried."""
        kept = self.estimating
        holds = kept.note is not None and self._digests(kept.files, site, on_disk=True) == kept.files
        return kept.note if holds else None

    def _digests(self, files: Iterable[str], site: Site | None, *, on_disk: bool) -> dict[str, str]:
        """SHA-256 of files, by relative path, that of the batch size's file without its digits."""
        found: dict[str, str] = {}
        for relative in files:
            path = self._project.absolute(relative)
            if site is not None and site.path == path:
                data = self._project.read_disk(path) if on_disk else self._project.read(path)
                if data is not None:
                    found[relative] = hashlib.sha256(data[: site.start] + data[site.end :]).hexdigest()
            elif (digest := self._project.digest(path, on_disk=on_disk)) is not None:
                found[relative] = digest
        return found

    # Taking in.

    def begin(self) -> None:
        """A profile is under way: what went wrong before is past."""
        self.failure = self.partial = None
        self.revision += 1

    def show_partial(self, profile: Profile | None) -> None:
        """What a profile under way has shown so far; None when it is over."""
        self.partial = Index(profile) if profile is not None else None
        self.revision += 1

    async def take(
        self, profile: Profile, *, files: dict[str, str], key: str, site: Site | None, measured_at_s: float
    ) -> None:
        """A profile, measured now or kept from before. `site` is where the batch size stands on disk."""
        expected = self.predict(profile.batch_size) if profile.batch_size is not None else None
        self.predicted = expected if expected is not None and not expected.measured else None
        texts: dict[str, str] = {}
        for relative, digest in files.items():
            path = self._project.absolute(relative)
            data = self._project.read_disk(path)
            if data is not None and self._project.digest(path, on_disk=True) == digest:
                texts[relative] = decode(data).text
        index = Index(profile, texts)
        # Reading every file of a large program takes longer than a hover may wait.
        await asyncio.to_thread(lambda: index.advice)
        self.index, self.files, self.measured_at_s = index, files, measured_at_s
        self._texts = texts
        self.preview = None
        self.failure, self._failure_texts = None, {}
        self.revision += 1
        samples_key = self._samples_key(key, site)
        if samples_key is None or samples_key != self.sampling.key:
            # Another program than the one that the prediction was made for.
            self.predicted = None
            self.sampling = Sampling(key=samples_key)
            if samples_key is not None:
                await self.add_samples(self._cache.samples(samples_key))

    def fail(self, failure: Failure | None) -> None:
        """A run that came to nothing."""
        self.failure = failure or Failure(
            kind=FailureKind.INTERNAL, message="The worker gave no result and no reason; its log may have more."
        )
        self.revision += 1
        self._failure_texts = {}
        for path in {self.path, *(frame.path for frame in self.failure.frames)}:
            if (data := self._project.read_disk(path)) is not None:
                self._failure_texts[path] = decode(data).text
        if self.failure.traceback:
            _log.info("the program failed:\n%s", self.failure.traceback)

    async def add_samples(self, samples: tuple[Sample, ...]) -> None:
        """Take samples in, the newest of a batch size counting, and fit the model anew."""
        sampling = self.sampling
        by_size = {sample.batch_size: sample for sample in (*sampling.samples, *samples)}
        sampling.samples = tuple(by_size[size] for size in sorted(by_size))
        # One sample says nothing of other sizes.
        if self.profile is None or len(sampling.samples) < 2:
            return
        # Some tens of milliseconds and more with long time lines of memory: too long for the event loop.
        sampling.model = await asyncio.to_thread(
            fit,
            sampling.samples,
            accelerator=self.profile.device.kind != "cpu",
            micro_batches=self.profile.micro_batches,
            out_of_memory=sampling.out_of_memory,
        )
        self.revision += 1

    def next_size(self, wanted: int, site: Site | None, seconds_left: float | None) -> int | None:
        """The batch size to measure next, so that `wanted` can be predicted; None when enough is known."""
        profile, sampling = self.profile, self.sampling
        if profile is None or profile.batch_size is None:
            return None
        known = Known(
            current=profile.batch_size,
            samples=sampling.samples,
            memory_bytes=profile.device.memory_bytes,
            out_of_memory=sampling.out_of_memory,
            failed=sampling.failed,
            maximum=site.maximum if site is not None else None,
            spent=sampling.spent,
            seconds_left=seconds_left,
        )
        return next_batch_size_for(known, (wanted,))

    # Keeping.

    async def keep(self, key: str, saved_at: str) -> None:
        """Write profile and samples to the cache."""
        assert self.profile is not None
        # Compressing a large profile takes longer than a hover may wait.
        await asyncio.to_thread(
            self._cache.save_profile, key, self.profile, self.files, saved_at=saved_at, predicted=self.predicted
        )
        self.history = await asyncio.to_thread(self._cache.history, key)
        self.revision += 1
        await self.keep_samples()

    async def keep_samples(self) -> None:
        """Write the samples to the cache."""
        if self.sampling.key is not None and self.sampling.samples:
            await asyncio.to_thread(self._cache.save_samples, self.sampling.key, self.sampling.samples)

    async def restore(self, key: str, site: Site | None, measured_at_s: float) -> bool:
        """Take what was measured of these very files before; whether there is something."""

        def unchanged(files: Mapping[str, str]) -> bool:
            return all(self._project.digest(self._project.absolute(path)) == digest for path, digest in files.items())

        peaks = self._cache.peaks(key)
        if peaks is not None and self._digests(peaks.files, site, on_disk=True) == peaks.files:
            self.estimating = Estimating(files=peaks.files, peaks=peaks.peaks, note=peaks.note)
            self.devices = peaks.devices
            self.revision += 1
        record = self._cache.find_profile(key, unchanged)
        if record is None:
            return bool(self.estimating.peaks)
        await self.take(record.profile, files=record.files, key=key, site=site, measured_at_s=measured_at_s)
        self.history = self._cache.history(key)
        return True

    # Comparing with the files as they are.

    def is_fresh(self) -> bool:
        """Whether every file is, in the editor, as it was when measured."""
        project = self._project
        return all(project.digest(project.absolute(path)) == digest for path, digest in self.files.items())

    def is_current(self) -> bool:
        """Whether every file is, on disk, as it was when measured."""
        project = self._project
        return all(
            project.digest(project.absolute(path), on_disk=True) == digest for path, digest in self.files.items()
        )

    def line_of(self, path: str) -> Mapping[int, int] | None:
        """Line of a file when it was measured -> line now, edited lines absent; None where nothing changed."""
        before = self._texts.get(self._project.relative(path))
        # Where the text that was measured is not at hand, no line can be told to be the one that was.
        return {} if before is None else self._sources.moved(path, before)

    def failure_line_of(self, path: str) -> Mapping[int, int] | None:
        """The same of the file when the run failed."""
        before = self._failure_texts.get(path)
        return None if before is None else self._sources.moved(path, before)

    def lines_then(self, relative: str) -> tuple[str, ...] | None:
        """A file's lines as they were measured, by its path in the profile; None where they are not known."""
        text = self._texts.get(relative)
        return None if text is None else decode(text.encode()).lines

    def _samples_key(self, key: str, site: Site | None) -> str | None:
        masked: dict[str, bytes] = {}
        if site is not None and self._project.holds(site.path):
            relative = self._project.relative(site.path)
            data = self._project.read_disk(site.path)
            if data is None or self._project.digest(site.path, on_disk=True) != self.files.get(relative):
                # Saved meanwhile: what the digits were surrounded by is not known any more.
                return None
            masked[relative] = data[: site.start] + data[site.end :]
        return f"{key}\n{content_digest(self.files, masked)}"
