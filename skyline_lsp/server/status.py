"""A program's state as JSON, for clients that show it their own way."""

from collections.abc import Sequence
from typing import Any

from skyline_lsp.features import State
from skyline_lsp.protocol import Failure, Profile
from skyline_lsp.server.interpreter import Interpreter
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.results import Results
from skyline_lsp.server.source_index import SitesFound
from skyline_lsp.source import EntryPoint


def project_status(files: ProjectFiles, programs: Sequence[EntryPoint], *, trusted: bool) -> dict[str, Any]:
    """What is known without a program."""
    return {
        "root": files.root,
        "state": State.IDLE.value,
        "trusted": trusted,
        "workload": None,
        "programs": [files.relative(point.path) for point in programs],
    }


def program_status(
    files: ProjectFiles,
    *,
    state: State,
    point: EntryPoint,
    interpreter: Interpreter,
    sites: SitesFound,
    results: Results,
    activity: str | None,
    progress: str | None,
) -> dict[str, Any]:
    """What is known of one program, to be added to its project's."""
    profile = results.profile
    failure = results.failure if state is State.FAILED else None
    return {
        "state": state.value,
        "workload": {"kind": point.kind.value, "path": files.relative(point.path), "reason": point.reason},
        "interpreter": {"path": interpreter.path, "reason": interpreter.reason, "problem": interpreter.problem},
        "batchSize": sites.best.batch_size if sites.best is not None else None,
        "activity": activity,
        "progress": progress,
        "failure": None if failure is None else _failure(failure),
        "profile": None if profile is None else _profile(profile, outdated=not results.is_fresh()),
        "measuredBatchSizes": [sample.batch_size for sample in results.sampling.samples],
    }


def _failure(failure: Failure) -> dict[str, Any]:
    last = failure.frames[-1] if failure.frames else None
    return {
        "kind": failure.kind.value,
        "message": failure.message,
        "path": last.path if last is not None else None,
        "line": last.line if last is not None else None,
        "traceback": failure.traceback,
    }


def _profile(profile: Profile, *, outdated: bool) -> dict[str, Any]:
    iteration, device = profile.iteration, profile.device
    return {
        "outdated": outdated,
        "batchSize": profile.batch_size,
        "runTimeMs": iteration.run_time_ms,
        "samplesPerSecond": iteration.samples_per_second,
        "peakBytes": iteration.peak_bytes,
        "device": {"kind": device.kind, "name": device.name, "memoryBytes": device.memory_bytes},
    }
