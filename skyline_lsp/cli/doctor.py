"""`skyline-lsp doctor [FILE]`: what would run, whether it works, and how to mend what doesn't.

Starts the worker in the project's interpreter and profiles a tiny program of its own; nothing of the project is run.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from skyline_lsp import __version__
from skyline_lsp.cli.failures import DONE, FAILED, UsageError
from skyline_lsp.cli.project import Project, open_project
from skyline_lsp.cli.worker import client_for, run_interruptible
from skyline_lsp.features.units import format_bytes
from skyline_lsp.protocol import Device, Entry, EntryKind, Goal, InitializeResult, Measure, RunSpec, to_json
from skyline_lsp.server.cache import default_folder
from skyline_lsp.server.worker_client import WorkerError
from skyline_lsp.source import find_entry_points
from skyline_lsp.terminal import print_lines, printable, progress_line, standard_consoles

PACKAGES = ("pygls", "lsprotocol", "numpy", "platformdirs", "psutil", "pyyaml", "rich")

TRIAL_PROGRAM = """\
import torch


def skyline_model_provider():
    return torch.nn.Linear(8, 8)


def skyline_input_provider(batch_size=4):
    return (torch.randn(batch_size, 8),)


def skyline_iteration_provider(model):
    def iteration(x):
        model(x).sum().backward()

    return iteration
"""
TRIAL_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Where results are kept."""

    folder: str
    writable: bool
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Something in the project that can be profiled."""

    path: str
    """Relative to the root."""
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """How the worker did."""

    python: str
    reason: str
    """Why this interpreter."""
    python_version: str | None = None
    torch_version: str | None = None
    start_s: float | None = None
    """From its start until it was ready."""
    fork: bool | None = None
    trial_s: float | None = None
    """The run of a tiny program, from the wish to the result."""
    device: Device | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that the doctor found."""

    skyline_lsp: str
    python: str
    executable: str
    platform: str
    packages: dict[str, str]
    root: str
    worker: Worker
    cache: Cache
    programs: tuple[Program, ...]
    problems: tuple[str, ...]
    """Each says what is wrong and how to mend it."""


def run(arguments: argparse.Namespace) -> int:
    """Look at everything, print it; the exit code says whether anything is wrong."""
    if arguments.file is not None and not os.path.exists(arguments.file):
        raise UsageError(f"{arguments.file}: there is no such file")
    near = os.path.realpath(arguments.file or os.curdir)
    folder = near if os.path.isdir(near) else os.path.dirname(near)
    report = examine(open_project(folder, root=arguments.root, python=arguments.python), verbose=arguments.verbose)
    if arguments.json:
        print(json.dumps(to_json(report), indent=2))
    else:
        console, _ = standard_consoles()
        print_lines(console, _drawn(report))
    return FAILED if report.problems else DONE


def examine(project: Project, *, verbose: bool) -> Report:
    """Find out all that the report holds."""
    problems = [problem.message for problem in project.reading.problems]
    if project.interpreter.problem is not None:
        worker = Worker(python=project.interpreter.path, reason=project.interpreter.reason)
        problems.append(project.interpreter.problem)
    else:
        worker, found = run_interruptible(_try_worker(project, verbose))
        problems += found
    cache = _cache(default_folder())
    if not cache.writable:
        problems.append(f"Results can't be kept in {cache.folder}: make it writable, or set XDG_CACHE_HOME.")
    return Report(
        skyline_lsp=__version__,
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        packages={name: importlib.metadata.version(name) for name in PACKAGES},
        root=project.root,
        worker=worker,
        cache=cache,
        programs=tuple(
            Program(path=project.files.relative(entry.path), kind=entry.kind.value)
            for entry in find_entry_points(project.files)
        ),
        problems=tuple(problems),
    )


async def _try_worker(project: Project, verbose: bool) -> tuple[Worker, Sequence[str]]:
    _, console = standard_consoles()
    python, reason = project.interpreter.path, project.interpreter.reason
    with progress_line(console, verbose=verbose) as line, tempfile.TemporaryDirectory(prefix="skyline-") as folder:
        program = Path(folder).resolve() / "trial.py"
        program.write_text(TRIAL_PROGRAM, encoding="utf-8")
        client = client_for(project, line, verbose=verbose, root=str(program.parent))
        try:
            line.update("starting the worker")
            began = time.perf_counter()
            info = await client.start()
            start_s = time.perf_counter() - began
            if info.problem is not None:
                return _worker(python, reason, info, start_s), [f"{info.executable}: {info.problem}"]
            line.update("profiling a tiny program")
            began = time.perf_counter()
            result = await client.run(_trial(project, str(program)))
            trial_s = time.perf_counter() - began
        except WorkerError as error:
            return Worker(python=python, reason=reason), [str(error)]
        finally:
            await client.close()
    if result.profile is None:
        why = result.failure.message if result.failure is not None else "the run was cancelled"
        return _worker(python, reason, info, start_s), [f"A tiny program can't be profiled: {why}"]
    return _worker(python, reason, info, start_s, trial_s, result.profile.device), result.profile.warnings


def _trial(project: Project, path: str) -> RunSpec:
    return RunSpec(
        run_id=0,
        goal=Goal.PROFILE,
        entry=Entry(kind=EntryKind.PROVIDER, path=path),
        measure=Measure(warm_up=1, min_iterations=2, max_iterations=2, time_budget_s=1.0),
        device=project.settings.device,
        time_limit_s=TRIAL_LIMIT_S,
    )


def _worker(
    python: str,
    reason: str,
    info: InitializeResult,
    start_s: float,
    trial_s: float | None = None,
    device: Device | None = None,
) -> Worker:
    return Worker(
        python=python,
        reason=reason,
        python_version=info.python_version,
        torch_version=info.torch_version,
        start_s=round(start_s, 3),
        fork=info.fork,
        trial_s=round(trial_s, 3) if trial_s is not None else None,
        device=device,
    )


def _cache(folder: Path) -> Cache:
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    writable = existing.is_dir() and os.access(existing, os.W_OK)
    return Cache(folder=str(folder), writable=writable, bytes=size)


def _drawn(report: Report) -> list[Text]:
    worker, device = report.worker, report.worker.device
    rows = [
        ("skyline-lsp", f"{report.skyline_lsp} on Python {report.python} ({report.executable})"),
        ("platform", report.platform),
        ("packages", ", ".join(f"{name} {version}" for name, version in report.packages.items())),
        ("project", report.root),
        ("programs", _programs(report.programs)),
        ("interpreter", f"{worker.python} ({worker.reason})"),
        ("its Python", worker.python_version or "unknown"),
        ("its torch", worker.torch_version or "none"),
        ("worker", _speed(worker)),
        ("device", "unknown" if device is None else f"{device.kind}: {device.name}{_capacity(device)}"),
        ("cache", f"{report.cache.folder}, {format_bytes(report.cache.bytes)}"),
    ]
    lines = [Text().append(f"{name:<12}", style="bold").append(printable(value)) for name, value in rows]
    if not report.problems:
        return [*lines, Text("all is well", style="green")]
    for problem in report.problems:
        head, *more = problem.splitlines()
        lines.append(Text().append("problem     ", style="bold red").append(printable(head)))
        lines += [Text(" " * 12 + printable(line)) for line in more]
    return lines


def _speed(worker: Worker) -> str:
    if worker.start_s is None:
        return "did not start"
    parts = [f"ready in {worker.start_s:.1f} s", "runs are forked from it" if worker.fork else "a new process each run"]
    if worker.trial_s is not None:
        parts.append(f"a tiny program profiled in {worker.trial_s:.1f} s")
    return ", ".join(parts)


def _capacity(device: Device) -> str:
    return f", {format_bytes(device.memory_bytes)}" if device.memory_bytes is not None else ""


def _programs(programs: Sequence[Program]) -> str:
    if not programs:
        return "none found: write the three provider functions, or name a training script"
    shown = ", ".join(f"{program.path} ({program.kind})" for program in programs[:5])
    return shown + (f", and {len(programs) - 5} more" if len(programs) > 5 else "")
