"""From the user's settings and the source to a run: what to start, how, and at which batch size."""

import json
import os
from collections.abc import Mapping
from typing import Any

from skyline_lsp.protocol import Entry, EntryKind, Goal, Measure, Override, RunSpec
from skyline_lsp.server.interpreter import Interpreter, expand
from skyline_lsp.server.settings import RunConfiguration, Settings
from skyline_lsp.source import EditRefused, EntryPoint, EntryPointKind, Files, Site, find_entry_point, set_batch_size

SAMPLE_TIME_BUDGET_S = 3.0
"""For the timed iterations of a run that measures another batch size: a median of some is enough."""


def wished_entry(settings: Settings, files: Files) -> EntryPoint | None:
    """The program that the settings name; None where they name none.

    It need not look like one that trains: the user knows.
    """
    path = wished_path(settings, files.root)
    return None if path is None else entry_at(path, files)


def wished_path(settings: Settings, root: str) -> str | None:
    """Absolute path of the program that the settings name."""
    run = settings.active_run
    if run is not None and run.program is not None:
        return expand(run.program, root)
    if run is not None and run.module is not None:
        return _module_path(run, root)
    return None if settings.entry_point is None else expand(settings.entry_point, root)


def entry_at(path: str, files: Files) -> EntryPoint:
    """The file as an entry point, whatever is in it."""
    data = files.read(path)
    found = find_entry_point(path, data) if data is not None else None
    if found is not None:
        return found
    return EntryPoint(
        kind=EntryPointKind.SCRIPT,
        path=path,
        line=1,
        providers=None,
        batch_size_line=None,
        reason="the settings name it",
    )


def entry_for(point: EntryPoint, settings: Settings, root: str) -> Entry:
    """How the worker starts an entry point."""
    environment = dict(settings.environment)
    if point.kind is EntryPointKind.PROVIDER:
        return Entry(kind=EntryKind.PROVIDER, path=point.path, environment=environment or None)
    run = settings.active_run or RunConfiguration(name="")
    environment.update(run.environment)
    return Entry(
        kind=EntryKind.SCRIPT if run.module is None else EntryKind.MODULE,
        path=point.path,
        module=run.module,
        arguments=run.arguments,
        working_directory=None if run.working_directory is None else expand(run.working_directory, root),
        environment=environment or None,
        iteration=run.iteration,
    )


def run_spec(
    entry: Entry, settings: Settings, goal: Goal, *, batch_size: int | None = None, site: Site | None
) -> RunSpec:
    """A run of the program as it stands, or with another batch size. Raises `EditError` where it can't be had.

    A provider is handed its batch size; of a script the literal at `site` is replaced in memory.
    """
    overrides: tuple[Override, ...] = ()
    if batch_size is not None and entry.kind is not EntryKind.PROVIDER:
        if site is None:
            raise EditRefused("it is not written where it could be changed")
        edit = set_batch_size(site, batch_size)
        overrides = (Override(path=edit.path, start=edit.start, end=edit.end, old=edit.old, new=edit.new),)
    budget_s = settings.measure_time_budget_s
    return RunSpec(
        run_id=0,
        goal=goal,
        entry=entry,
        batch_size=batch_size if entry.kind is EntryKind.PROVIDER else None,
        overrides=overrides,
        measure=Measure(
            time_budget_s=budget_s if goal is Goal.PROFILE else min(budget_s, SAMPLE_TIME_BUDGET_S),
            # What the law of peak memory is found from.
            record_live_bytes=True,
        ),
        device=settings.device,
        time_limit_s=settings.time_limit_s,
    )


def workload_key(entry: Entry, settings: Settings, interpreter: Interpreter, relative_path: str) -> str:
    """What, beside the files' content, a result depends on, as a name to keep it under."""
    parts: Mapping[str, Any] = {
        "kind": entry.kind.value,
        "path": relative_path,
        "module": entry.module,
        "arguments": entry.arguments,
        "working_directory": entry.working_directory,
        "environment": entry.environment,
        "iteration": entry.iteration,
        "device": settings.device,
        "interpreter": [*settings.worker_command, interpreter.path],
    }
    return json.dumps(parts, sort_keys=True)


def _module_path(run: RunConfiguration, root: str) -> str:
    """The file that `python -m` would run, from the folder it is started in."""
    assert run.module is not None
    folder = root if run.working_directory is None else expand(run.working_directory, root)
    return module_file(run.module, folder)


def module_file(name: str, folder: str) -> str:
    """The file that `python -m name` would run when it is started in `folder`; it need not be there."""
    stem = os.path.join(folder, *name.split("."))
    package = os.path.join(stem, "__main__.py")
    return package if os.path.isfile(package) else f"{stem}.py"
