"""Results kept between sessions, in the user's cache folder.

A profile is found again by the content of the files that ran; samples of other batch sizes by that content with the
batch size's digits left out, so that they outlive the retuning they led to. What is damaged, foreign or of another
version is passed over and in time replaced: a cache never fails its user.
"""

import contextlib
import gzip
import hashlib
import json
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import platformdirs

from skyline_lsp.prediction import DeviceSpec, FoundPeak, Prediction
from skyline_lsp.protocol import SCHEMA, Profile, Sample, from_json, to_json

_log = logging.getLogger(__name__)

T = TypeVar("T")

_FORMAT: Final = 1
_MAX_PROFILES: Final = 8
"""Whole profiles kept for one workload."""
_MAX_HISTORY: Final = 200
"""Rows of figures kept for one workload."""
_MAX_SAMPLE_SETS: Final = 64
_MAX_PROJECTS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A profile as it was kept."""

    format: int = _FORMAT
    schema: int = SCHEMA
    workload: str
    saved_at: str
    """ISO 8601, UTC."""
    files: dict[str, str]
    """What the result depends on: project files, relative to the root -> SHA-256 of their bytes."""
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """The figures of one profile."""

    saved_at: str
    content: str
    """Digest of the files that ran."""
    device_kind: str
    device_name: str
    batch_size: int | None
    run_time_ms: float
    spread_ms: float
    samples_per_second: float
    peak_bytes: int
    predicted: Prediction | None = None
    """What had been predicted for it; None where nothing had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    format: int = _FORMAT
    workload: str
    rows: tuple[HistoryRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SampleSet:
    format: int = _FORMAT
    schema: int = SCHEMA
    key: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPeaks:
    """What a workload takes in memory, for devices that aren't here."""

    format: int = _FORMAT
    workload: str
    files: dict[str, str]
    """What it holds for: relative path -> SHA-256, the batch size's digits left out."""
    peaks: tuple[FoundPeak, ...]
    note: str | None
    """Why they could not be found without allocating."""
    devices: tuple[DeviceSpec, ...]
    """Those that the user has asked for."""


def default_folder() -> Path:
    """The user's cache folder for this program."""
    return Path(platformdirs.user_cache_dir("skyline-lsp", appauthor=False))


def content_digest(files: Mapping[str, str], masked: Mapping[str, bytes] | None = None) -> str:
    """Digest of files given by their hashes; those in `masked` count with these bytes instead."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = hashlib.sha256(masked[path]).hexdigest() if masked and path in masked else files[path]
        digest.update(f"{path}\0{content}\0".encode())
    return digest.hexdigest()


class ResultCache:
    """What is kept for one project. Workloads and sample sets are named by the caller."""

    def __init__(self, root: str, *, folder: Path | None = None) -> None:
        self._all = (folder if folder is not None else default_folder()) / "projects"
        self._folder = self._all / _short(os.path.normcase(os.path.realpath(root)))

    def save_profile(
        self,
        workload: str,
        profile: Profile,
        files: Mapping[str, str],
        *,
        saved_at: str,
        predicted: Prediction | None = None,
    ) -> None:
        """Keep a profile and add its figures to the history; the oldest go where there are too many."""
        record = Record(workload=workload, saved_at=saved_at, files=dict(files), profile=profile)
        folder = self._folder / "profiles" / _short(workload)
        content = content_digest(files)
        stamp = "".join(character for character in saved_at if character.isalnum())
        self._write(folder / f"{stamp}-{content[:12]}.json.gz", record)
        _prune(folder.glob("*.json.gz"), _MAX_PROFILES)
        iteration = profile.iteration
        row = HistoryRow(
            saved_at=saved_at,
            content=content,
            device_kind=profile.device.kind,
            device_name=profile.device.name,
            batch_size=profile.batch_size,
            run_time_ms=iteration.run_time_ms,
            spread_ms=iteration.spread_ms,
            samples_per_second=iteration.samples_per_second,
            peak_bytes=iteration.peak_bytes,
            predicted=predicted,
        )
        rows = (*self.history(workload), row)[-_MAX_HISTORY:]
        self._write(self._history_path(workload), _History(workload=workload, rows=rows))
        self._prune_projects()

    def find_profile(self, workload: str, matches: Callable[[Mapping[str, str]], bool]) -> Record | None:
        """The newest profile whose files are, as `matches` says, what they were."""
        folder = self._folder / "profiles" / _short(workload)
        for path in sorted(_listed(folder.glob("*.json.gz")), key=lambda path: path.name, reverse=True):
            record = _read(path, Record)
            if (
                record is not None
                and (record.format, record.schema, record.workload) == (_FORMAT, SCHEMA, workload)
                and matches(record.files)
            ):
                return record
        return None

    def history(self, workload: str) -> tuple[HistoryRow, ...]:
        """Figures of past profiles, oldest first."""
        history = _read(self._history_path(workload), _History)
        if history is None or (history.format, history.workload) != (_FORMAT, workload):
            return ()
        return history.rows

    def samples(self, key: str) -> tuple[Sample, ...]:
        """What was measured before under this key."""
        kept = _read(self._samples_path(key), _SampleSet)
        if kept is None or (kept.format, kept.schema, kept.key) != (_FORMAT, SCHEMA, key):
            return ()
        return kept.samples

    def save_samples(self, key: str, samples: Iterable[Sample]) -> None:
        """Replace what is kept under this key."""
        path = self._samples_path(key)
        self._write(path, _SampleSet(key=key, samples=tuple(samples)))
        _prune(path.parent.glob("*.json.gz"), _MAX_SAMPLE_SETS, by_time=True)

    def peaks(self, workload: str) -> KeptPeaks | None:
        """The peaks kept last for a workload."""
        kept = _read(self._peaks_path(workload), KeptPeaks)
        return kept if kept is not None and (kept.format, kept.workload) == (_FORMAT, workload) else None

    def save_peaks(self, kept: KeptPeaks) -> None:
        """Keep a workload's peaks in place of those kept before."""
        self._write(self._peaks_path(kept.workload), kept)

    def _peaks_path(self, workload: str) -> Path:
        return self._folder / "peaks" / f"{_short(workload)}.json.gz"

    def _history_path(self, workload: str) -> Path:
        return self._folder / "history" / f"{_short(workload)}.json.gz"

    def _samples_path(self, key: str) -> Path:
        return self._folder / "samples" / f"{_short(key)}.json.gz"

    def _write(self, path: Path, value: Any) -> None:
        data = gzip.compress(json.dumps(to_json(value), separators=(",", ":")).encode(), compresslevel=3, mtime=0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Written aside and renamed: another server may be reading, and this one may be killed.
            descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            _log.warning("a result can't be kept in %s: %s", path, error)

    def _prune_projects(self) -> None:
        folders = [path for path in _listed(self._all.glob("*")) if path.is_dir() and path != self._folder]
        for folder in _newest_first(folders, by_time=True)[_MAX_PROJECTS - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return from_json(kind, json.loads(gzip.decompress(path.read_bytes())))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, zlib.error, RecursionError) as error:
        _log.info("a kept result in %s is passed over: %s", path, error)
        return None


def _listed(paths: Iterable[Path]) -> list[Path]:
    try:
        return list(paths)
    except OSError:
        return []


def _newest_first(paths: Iterable[Path], *, by_time: bool) -> list[Path]:
    def age(path: Path) -> tuple[float, str]:
        if not by_time:
            return (0.0, path.name)
        try:
            return (path.stat().st_mtime, path.name)
        except OSError:
            return (0.0, path.name)

    return sorted(_listed(paths), key=age, reverse=True)


def _prune(paths: Iterable[Path], keep: int, *, by_time: bool = False) -> None:
    for path in _newest_first(paths, by_time=by_time)[keep:]:
        with contextlib.suppress(OSError):
            path.unlink()
