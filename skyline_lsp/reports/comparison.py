"""Two reports side by side: what costs more, what costs less, and where no difference was seen.

Times are judged by `noise`. A line or a phase is known from a few traced iterations, without a spread of its own: a
difference counts where it passes what the iterations scatter by and a tenth of the line, and a hundredth of the
iteration; with several runs of both sides, only where all of one side are above all of the other. Bytes repeat
exactly on the same program: a difference counts from half a percent of the peak.
"""

import enum
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skyline_lsp.protocol import Profile
from skyline_lsp.reports.noise import Ratio, Series, ratio_of
from skyline_lsp.reports.report import Report
from skyline_lsp.source import moved_lines

LEAST_SHARE = 0.01
"""Part of the iteration that a line's or a phase's time must change by."""
LEAST_CHANGE = 0.1
"""Part of itself that it must change by, beside the iterations' noise."""
LEAST_BYTES = 0.005
"""Part of the peak that bytes must change by."""


class Verdict(enum.Enum):
    """What can be said of a difference."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference seen"


class Fate(enum.Enum):
    """What became of a line."""

    KEPT = "kept"
    EDITED = "edited"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One number before and after; of several runs the median."""

    name: str
    before: float
    after: float
    ratio: Ratio | None
    """After over before with its interval, where the noise is known."""
    verdict: Verdict

    @property
    def percent(self) -> float:
        """How much more it is; infinite where there was nothing."""
        if self.ratio is not None:
            return 100 * (self.ratio.value - 1)
        if self.before == 0:
            return math.inf if self.after else 0.0
        return 100 * (self.after / self.before - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """The self time, forward and backward, of a line."""

    path: str
    """As in the report that has the line; the later one where both have."""
    line_before: int | None
    line_after: int | None
    """Both None stand for the lines of a file that could not be told from each other."""
    source: str
    fate: Fate
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What became of a program."""

    run_time_ms: Change
    samples_per_second: Change
    peak_bytes: Change
    phases: tuple[Change, ...]
    memory: tuple[Change, ...]
    lines: tuple[LineChange, ...]
    """Those that changed most in time first."""
    batch_sizes: tuple[int | None, int | None]
    runs: tuple[int, int]
    notes: tuple[str, ...]
    """What makes the two hard to compare, each a sentence."""


def compare(before: Sequence[Report], after: Sequence[Report]) -> Comparison:
    """Compare one or more runs of a program with one or more of another, or of the same one changed."""
    first, last = before[0].profile, after[0].profile
    ratio = ratio_of([_series(one.profile) for one in before], [_series(one.profile) for one in after])
    runs = ([one.profile for one in before], [one.profile for one in after])
    judge = _Judge(runs, ratio)
    return Comparison(
        run_time_ms=_change("iteration", runs, lambda p: p.iteration.run_time_ms, ratio, _more_is_worse(ratio)),
        samples_per_second=_throughput(runs, ratio),
        peak_bytes=judge.bytes("peak", lambda p: p.iteration.peak_bytes),
        phases=tuple(judge.time(name, _phase_ms(name)) for name in _phases(runs)),
        memory=(
            judge.bytes("weights", lambda p: p.memory.weights_bytes),
            judge.bytes("gradients", lambda p: p.memory.gradients_bytes),
            judge.bytes("optimizer", lambda p: p.memory.optimizer_bytes),
            judge.bytes("activations", lambda p: p.memory.activations_bytes),
            judge.bytes("other", lambda p: p.memory.other_bytes),
        ),
        lines=_lines(before, after, judge),
        batch_sizes=(first.batch_size, last.batch_size),
        runs=(len(before), len(after)),
        notes=tuple(_notes(before, after, ratio)),
    )


def excesses(comparison: Comparison, percent: float) -> tuple[str, ...]:
    """In what the later one is worse by more than `percent`, noise set aside: time for a sample, peak memory."""
    found = []
    rate = comparison.samples_per_second if comparison.samples_per_second.ratio else None
    if rate is not None and rate.ratio is not None:
        slower = 100 * (rate.ratio.inverse().value - 1)
        if rate.verdict is Verdict.WORSE and slower > percent:
            found.append("time")
    peak = comparison.peak_bytes
    if peak.verdict is Verdict.WORSE and peak.percent > percent:
        found.append("peak memory")
    return tuple(found)


Runs = tuple[Sequence[Profile], Sequence[Profile]]
Value = Callable[[Profile], float]


@dataclass(frozen=True, slots=True)
class _Judge:
    """Says of numbers without a spread of their own whether they differ."""

    runs: Runs
    ratio: Ratio | None

    def time(self, name: str, value: Value, values_after: Value | None = None) -> Change:
        """Judge a part of the iteration; `values_after` where the later runs have it under another name."""
        before = [value(one) for one in self.runs[0]]
        after = [(values_after or value)(one) for one in self.runs[1]]
        low, high = statistics.median(before), statistics.median(after)
        whole = max(statistics.median(p.iteration.run_time_ms for p in side) for side in self.runs)
        noise = self.ratio.noise if self.ratio is not None else 0.0
        least = max(LEAST_SHARE * whole, (LEAST_CHANGE + noise) * max(low, high))
        apart = max(before) < min(after) or max(after) < min(before)
        verdict = Verdict.NO_DIFFERENCE
        if abs(high - low) > least and apart:
            verdict = Verdict.WORSE if high > low else Verdict.BETTER
        return Change(name=name, before=low, after=high, ratio=None, verdict=verdict)

    def bytes(self, name: str, value: Value) -> Change:
        """Judge memory."""
        before, after = (statistics.median(value(one) for one in side) for side in self.runs)
        peak = max(one.iteration.peak_bytes for side in self.runs for one in side)
        verdict = Verdict.NO_DIFFERENCE
        if abs(after - before) > LEAST_BYTES * peak:
            verdict = Verdict.WORSE if after > before else Verdict.BETTER
        return Change(name=name, before=before, after=after, ratio=None, verdict=verdict)


def _series(profile: Profile) -> Series:
    iteration = profile.iteration
    return Series(
        times_ms=iteration.times_ms,
        median_ms=iteration.run_time_ms,
        spread_ms=iteration.spread_ms,
        iterations=iteration.iterations,
    )


def _change(name: str, runs: Runs, value: Value, ratio: Ratio | None, verdict: Verdict) -> Change:
    before, after = (statistics.median(value(one) for one in side) for side in runs)
    return Change(name=name, before=before, after=after, ratio=ratio, verdict=verdict)


def _more_is_worse(ratio: Ratio | None) -> Verdict:
    if ratio is not None and ratio.low > 1:
        return Verdict.WORSE
    return Verdict.BETTER if ratio is not None and ratio.high < 1 else Verdict.NO_DIFFERENCE


def _throughput(runs: Runs, ratio: Ratio | None) -> Change:
    samples = [side[0].iteration.samples_per_second * side[0].iteration.run_time_ms for side in runs]
    # Samples in an iteration do not scatter: the noise of the throughput is that of the time.
    known = ratio is not None and min(samples) > 0
    rate = ratio.inverse().times(samples[1] / samples[0]) if ratio is not None and known else None
    verdict = _more_is_worse(rate.inverse()) if rate is not None else Verdict.NO_DIFFERENCE
    return _change("throughput", runs, lambda p: p.iteration.samples_per_second, rate, verdict)


def _phases(runs: Runs) -> list[str]:
    return list(dict.fromkeys(phase.kind.value for side in runs for one in side for phase in one.phases))


def _phase_ms(name: str) -> Value:
    return lambda profile: sum(phase.run_time_ms for phase in profile.phases if phase.kind.value == name)


def _lines(before: Sequence[Report], after: Sequence[Report], judge: _Judge) -> tuple[LineChange, ...]:
    found = []
    old, new = before[0], after[0]
    costs = {
        id(one.profile): {
            (cost.path, cost.line): cost.self_forward_ms + cost.self_backward_ms for cost in one.profile.lines
        }
        for one in (*before, *after)
    }
    for path in sorted(_paths(before) | _paths(after)):
        there = _lines_of(before, path), _lines_of(after, path)
        pairs = _pairs(old, new, path, *there)
        if pairs is None:
            change = judge.time(path, _file_ms(path))
            found.append(
                LineChange(path=path, line_before=None, line_after=None, source="", fate=Fate.EDITED, change=change)
            )
            continue
        for line_before, line_after, fate in pairs:
            source = new.source_line(path, line_after) if line_after else old.source_line(path, line_before or 0)
            change = judge.time(
                f"{path}:{line_after or line_before}",
                _line_ms(costs, path, line_before),
                _line_ms(costs, path, line_after),
            )
            found.append(
                LineChange(
                    path=path, line_before=line_before, line_after=line_after, source=source, fate=fate, change=change
                )
            )
    return tuple(sorted(found, key=lambda one: (-abs(one.change.after - one.change.before), one.change.name)))


def _paths(reports: Iterable[Report]) -> set[str]:
    return {cost.path for report in reports for cost in report.profile.lines}


def _lines_of(reports: Iterable[Report], path: str) -> list[int]:
    return sorted({cost.line for report in reports for cost in report.profile.lines if cost.path == path})


def _line_ms(costs: Mapping[int, Mapping[tuple[str, int], float]], path: str, line: int | None) -> Value:
    return lambda profile: costs[id(profile)].get((path, line or 0), 0.0)


def _file_ms(path: str) -> Value:
    return lambda profile: sum(
        cost.self_forward_ms + cost.self_backward_ms for cost in profile.lines if cost.path == path
    )


Pair = tuple[int | None, int | None, Fate]


def _pairs(old: Report, new: Report, path: str, before: Sequence[int], after: Sequence[int]) -> tuple[Pair, ...] | None:
    """Lines that are the same one; None where that can't be told."""
    if not before or not after:
        return (*((line, None, Fate.GONE) for line in before), *((None, line, Fate.NEW) for line in after))
    digests = [one.profile.files.get(path) for one in (old, new)]
    if digests[0] is not None and digests[0] == digests[1]:
        return tuple((line, line, Fate.KEPT) for line in sorted({*before, *after}))
    if path not in old.sources or path not in new.sources:
        return None
    moved = moved_lines(old.sources[path], new.sources[path])
    back = {there: here for here, there in moved.items()}
    edited = _edited(moved)
    pairs: dict[tuple[int | None, int | None], Fate] = {}
    for line in before:
        there = moved.get(line) or edited.get(line)
        fate = Fate.KEPT if line in moved else Fate.EDITED if there else Fate.GONE
        pairs[line, there] = fate
    taken = {there for _, there in pairs}
    for line in after:
        if line not in taken:
            here = back.get(line) or next((b for b, a in edited.items() if a == line), None)
            pairs[here, line] = Fate.KEPT if line in back else Fate.EDITED if here else Fate.NEW
    return tuple((here, there, fate) for (here, there), fate in pairs.items())


def _edited(moved: Mapping[int, int]) -> dict[int, int]:
    """Lines between the same unchanged ones, where as many went as came: each is taken for its successor."""
    edited: dict[int, int] = {}
    above, above_there = 0, 0
    for line, there in sorted(moved.items()):
        if there > above_there and line - above == there - above_there:
            edited.update((above + k, above_there + k) for k in range(1, line - above))
        above, above_there = line, there
    return edited


def _notes(before: Sequence[Report], after: Sequence[Report], ratio: Ratio | None) -> Iterable[str]:
    first, last = before[0].profile, after[0].profile
    for told, one, other in (
        ("device", first.device.name, last.device.name),
        ("torch", first.torch_version, last.torch_version),
        ("Python", first.python_version, last.python_version),
        ("batch size", first.batch_size, last.batch_size),
        ("program", first.workload.path, last.workload.path),
    ):
        if one != other:
            yield f"They differ in {told}: {one} before, {other} after."
    if ratio is None or math.isinf(ratio.high):
        yield "Too few iterations were timed to tell a difference in time from noise."
    elif min(len(before), len(after)) < 2:
        yield "With one run on a side, how much runs differ from each other is not known."
