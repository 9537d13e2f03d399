"""Runs a small program under a real measurement, in this process, and reads expectations from its comments."""

import gc
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skyline_lsp import protocol
from skyline_lsp.protocol import Goal, Measure, RunSpec, Stage
from skyline_lsp.worker.measurement import Measurement

QUICK = Measure(warm_up=1, min_iterations=3, max_iterations=3)


class Project:
    """A project of one folder."""

    def __init__(self, root: Path) -> None:
        self._root = str(root) + os.sep

    def is_project(self, filename: str) -> bool:
        return filename.startswith(self._root)

    def relative(self, filename: str) -> str:
        return filename.removeprefix(self._root)


class Silent:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.partials: list[protocol.Profile] = []
        self.stages: list[Stage] = []

    def progress(self, stage: Stage, message: str, fraction: float | None = None) -> None:
        self.stages.append(stage)

    def partial(self, profile: protocol.Profile) -> None:
        self.partials.append(profile)


def measure_program(
    folder: Path,
    program: str,
    goal: Goal,
    measure: Measure = QUICK,
    reporter: Silent | None = None,
    batch_size: int | None = 4,
    autocast: str | None = None,
) -> Measurement:
    """Measure `program`, which defines `iteration()`, as the project's `step.py`."""
    # A run has a process of its own; here what earlier programs left behind would count as memory.
    gc.collect()
    path = folder / "step.py"
    path.write_text(textwrap.dedent(program), encoding="utf-8")
    entry = protocol.Entry(kind=protocol.EntryKind.PROVIDER, path=str(path))
    spec = RunSpec(run_id=1, goal=goal, entry=entry, batch_size=batch_size, measure=measure, autocast=autocast)
    measurement = Measurement(spec, Project(folder), reporter or Silent())
    names: dict[str, Any] = {"__name__": "step", "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    iteration: Callable[[], None] = names["iteration"]
    measurement.begin()
    while True:
        iteration()
        if measurement.boundary():
            return measurement


def profile_program(
    folder: Path, program: str, measure: Measure = QUICK, reporter: Silent | None = None
) -> protocol.Profile:
    """The profile of `program`."""
    profile, _, _ = measure_program(folder, program, Goal.PROFILE, measure, reporter).result()
    assert profile is not None
    return profile


def expectations(program: str, name: str) -> dict[int, float]:
    """Line -> the number behind `name` in that line's comment, such as `# fwd 5 bwd 2`."""
    found = {}
    for number, line in enumerate(textwrap.dedent(program).splitlines(), start=1):
        _, _, comment = line.partition("#")
        if match := re.search(rf"\b{name} (\d+(?:\.\d+)?)", comment):
            found[number] = float(match.group(1))
    return found


def by_line(profile: protocol.Profile, value: Callable[[protocol.LineCost], float]) -> dict[int, float]:
    """Line -> `value`, for the lines that have a cost."""
    rows: dict[int, float] = defaultdict(float)
    for line in profile.lines:
        rows[line.line] += value(line)
    return dict(rows)
