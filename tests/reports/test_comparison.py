"""Comparisons: what differs is told, what only scatters is not, and lines are followed through edits."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.protocol import Memory, Phase, PhaseKind
from skyline_lsp.reports import Report, Verdict, compare, comparison_json, comparison_text, excesses
from skyline_lsp.reports.noise import Ratio, Series, ratio_of
from tests.features.building import GIB, MIB, STEP, profile_of

NET = """\
class Net:
    def forward(self, x):
        a = 1
        b = 2

        x = self.conv(x)
        return self.head(x)
"""


def series_of(times_ms: Sequence[float]) -> Series:
    quarter, median, three_quarters = np.percentile(times_ms, [25, 50, 75])
    return Series(
        times_ms=tuple(times_ms), median_ms=float(median), spread_ms=three_quarters - quarter, iterations=len(times_ms)
    )


def scattered(median_ms: float, count: int, seed: int, *, relative: float = 0.03, likeness: float = 0.0) -> Series:
    """Times around a median; each is like the one before as far as `likeness` says."""
    noise = np.random.default_rng(seed).normal(0, relative, count)
    for at in range(1, count):
        noise[at] = likeness * noise[at - 1] + math.sqrt(1 - likeness**2) * noise[at]
    return series_of([median_ms * math.exp(one) for one in noise])


def report_of(times_ms: Sequence[float] = (), drawing: str = STEP, sources: Any = None, **changes: Any) -> Report:
    """A report of `STEP`, or of another drawing, with these timed iterations."""
    profile = profile_of(drawing, **changes)
    if times_ms:
        series = series_of(times_ms)
        iteration = replace(
            profile.iteration,
            run_time_ms=series.median_ms,
            times_ms=series.times_ms,
            spread_ms=series.spread_ms,
            iterations=series.iterations,
            samples_per_second=16_000 / series.median_ms,
        )
        profile = replace(profile, iteration=iteration)
    return Report(profile=profile, sources=sources or {})


def around(median_ms: float, count: int = 20, seed: int = 0) -> tuple[float, ...]:
    return scattered(median_ms, count, seed).times_ms


def check_false_alarms(most: float, *, runs: int, between: float = 0.0, likeness: float = 0.0) -> None:
    """Of 300 pairs without a difference, at most this part is told apart."""
    random = np.random.default_rng(7)
    told = 0
    for trial in range(300):
        seeds = iter(range(1000 * trial, 1000 * trial + 2 * runs))
        medians = [[100 * math.exp(random.normal(0, between)) for _ in range(runs)] for _ in range(2)]
        sides = [[scattered(median, 20, next(seeds), likeness=likeness) for median in side] for side in medians]
        ratio = ratio_of(*sides)
        assert ratio is not None
        told += not ratio.low <= 1 <= ratio.high
    assert told / 300 <= most


def test_noise_is_rarely_taken_for_a_difference() -> None:
    """Nominal 5 %: also where iterations are alike, and where runs differ more than iterations do."""
    check_false_alarms(0.07, runs=1)
    check_false_alarms(0.10, runs=1, likeness=0.6)
    check_false_alarms(0.08, runs=2, between=0.02)
    check_false_alarms(0.08, runs=3, between=0.02)


def test_a_real_difference_is_seen() -> None:
    """Five percent at a scatter of three, in one run; ten at runs that differ by two, in three."""
    found = [ratio_of([scattered(100, 20, s)], [scattered(105, 20, s + 100)]) for s in range(50)]
    assert sum(ratio is not None and ratio.low > 1 for ratio in found) >= 45
    ratio = ratio_of([scattered(m, 20, m) for m in (98, 100, 102)], [scattered(m, 20, m) for m in (108, 110, 112)])
    assert ratio is not None
    assert 1 < ratio.low < 1.1 < ratio.high


def test_the_interval_is_that_of_the_rank_test() -> None:
    """Hand-counted: of 4 and 4 iterations the whole range of differences, of 3 and 3 none is enough."""
    a, b = [1.0, 1.1, 1.2, 1.3], [2.0, 2.3, 2.1, 2.2]
    ratio = ratio_of([series_of(a)], [series_of(b)])
    assert ratio is not None
    assert ratio.high >= 2.3 / 1.0 - 1e-9
    few = ratio_of([series_of(a[:3])], [series_of(b[:3])])
    assert few is not None
    assert (few.low, few.high) == (0.0, math.inf)


def test_medians_and_spreads_do_where_times_were_not_kept() -> None:
    """A report without the single times is compared as if they were normally distributed."""
    kept = Series(times_ms=(), median_ms=100, spread_ms=4, iterations=25)
    ratio = ratio_of([kept], [replace(kept, median_ms=110)])
    assert ratio is not None
    assert 1.05 < ratio.low < 1.1 < ratio.high < 1.15
    assert ratio_of([replace(kept, median_ms=0)], [kept]) is None


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=30), st.lists(st.floats(0.01, 1e6), min_size=2, max_size=30))
def test_intervals_hold_their_value_and_turn_around(a: list[float], b: list[float]) -> None:
    """Whatever the times; and after over before is the inverse of before over after."""
    there, back = ratio_of([series_of(a)], [series_of(b)]), ratio_of([series_of(b)], [series_of(a)])
    assert isinstance(there, Ratio)
    assert isinstance(back, Ratio)
    assert there.low <= there.value <= there.high
    assert back.value == pytest.approx(1 / there.value)
    assert back.low == pytest.approx(there.inverse().low)


def check_verdicts(before: Report, after: Report, time: Verdict, peak: Verdict, *above_5: str) -> None:
    comparison = compare([before], [after])
    assert (comparison.run_time_ms.verdict, comparison.peak_bytes.verdict) == (time, peak)
    assert excesses(comparison, 5) == above_5
    assert json.loads(comparison_json(comparison))["comparison"] == 1


def test_verdicts_of_the_whole() -> None:
    """Slower is worse, faster is better, and what is worse by less than allowed fails nothing."""
    base, same, worse, better = Verdict.NO_DIFFERENCE, Verdict.NO_DIFFERENCE, Verdict.WORSE, Verdict.BETTER
    before = report_of(around(100))
    check_verdicts(before, report_of(around(100, seed=9)), base, same)
    check_verdicts(before, report_of(around(120, seed=9)), worse, same, "time")
    check_verdicts(before, report_of(around(104, 60, seed=9)), worse, same)
    check_verdicts(before, report_of(around(80, seed=9)), better, same)
    bigger = replace(before.profile.iteration, peak_bytes=2 * GIB)
    grown = replace(before, profile=replace(before.profile, iteration=bigger))
    check_verdicts(before, grown, base, worse, "peak memory")


def test_a_larger_batch_is_judged_by_its_throughput() -> None:
    """An iteration of twice the samples may take longer: what fails is the time for a sample."""
    after = report_of(around(150, seed=9), batch_size=32)
    twice = replace(after.profile.iteration, samples_per_second=32_000 / after.profile.iteration.run_time_ms)
    after = replace(after, profile=replace(after.profile, iteration=twice))
    comparison = compare([report_of(around(100))], [after])
    assert comparison.run_time_ms.verdict is Verdict.WORSE
    assert comparison.samples_per_second.verdict is Verdict.BETTER
    assert excesses(comparison, 5) == ()
    assert any("batch size: 16 before, 32 after" in note for note in comparison.notes)


def changes_of(before: Sequence[Report], after: Sequence[Report]) -> dict[tuple[int | None, int | None], str]:
    """Verdict of each line of net.py, by its numbers before and after, with its fate."""
    comparison = compare(before, after)
    return {
        (line.line_before, line.line_after): f"{line.fate.value} {line.change.verdict.value}"
        for line in comparison.lines
        if line.path == "net.py"
    }


def test_lines_are_followed_through_edits() -> None:
    """A moved line is the same line; an edited one is followed where it is alone; others come and go."""
    edited = NET.replace("        a = 1\n", "        a = 1\n        extra = 1\n").replace(
        "self.head(x)", "self.tail(x)"
    )
    after = STEP.replace("net.py:6", "net.py:7").replace("net.py:7 Net.forward 5 8", "net.py:8 Net.forward 25 8")
    moved = report_of(around(100), after, {"net.py": edited}, files={"net.py": "1" * 64})
    assert changes_of([report_of(around(100), STEP, {"net.py": NET})], [moved]) == {
        (6, 7): "kept no difference seen",
        (7, 8): "edited worse",
    }


def test_lines_come_and_go() -> None:
    """A line without a counterpart is new, or gone."""
    shorter = NET.replace("        x = self.conv(x)\n", "")
    after = "train.py:11 iteration 0.4 0.1\n  net.py:6 Net.forward 5 8\n"
    gone = report_of(around(100), after, {"net.py": shorter}, files={"net.py": "1" * 64})
    before = report_of(around(100), STEP, {"net.py": NET})
    assert changes_of([before], [gone]) == {(6, None): "gone better", (7, 6): "kept no difference seen"}
    assert changes_of([gone], [before]) == {(None, 6): "new worse", (6, 7): "kept no difference seen"}


def test_without_the_text_only_unchanged_files_are_compared_by_line() -> None:
    """Line numbers of two versions of a file say nothing: the file is compared as a whole."""
    before = report_of(around(100))
    assert set(changes_of([before], [before])) == {(6, 6), (7, 7)}
    changed = report_of(around(100), files={"net.py": "1" * 64})
    assert changes_of([before], [changed]) == {(None, None): "edited no difference seen"}


def test_the_lines_of_both_sides_sum_to_what_was_measured() -> None:
    """Nothing is lost or counted twice on the way."""
    edited = NET.replace("        a = 1\n", "")
    before = report_of(around(100), STEP, {"net.py": NET})
    after = report_of(around(100), STEP.replace("net.py:7", "net.py:5"), {"net.py": edited}, files={"net.py": "1" * 64})
    comparison = compare([before], [after])
    for side, report in (("before", before), ("after", after)):
        own = sum(cost.self_forward_ms + cost.self_backward_ms for cost in report.profile.lines)
        assert sum(getattr(line.change, side) for line in comparison.lines) == pytest.approx(own)


def test_a_line_that_only_some_runs_saw_changed_is_not_told() -> None:
    """With several runs, all of one side must be above all of the other."""
    slow = STEP.replace("net.py:7 Net.forward 5 8", "net.py:7 Net.forward 25 8")
    steady, changed = report_of(around(100)), report_of(around(100), slow)
    assert changes_of([steady] * 3, [changed] * 3)[7, 7] == "kept worse"
    assert changes_of([steady, steady, changed], [changed, changed, steady])[7, 7] == "kept no difference seen"


def test_phases_and_memory_are_compared_by_class() -> None:
    """Each class by its own numbers."""
    memory = Memory(
        weights_bytes=100 * MIB,
        gradients_bytes=100 * MIB,
        optimizer_bytes=0,
        activations_bytes=800 * MIB,
        other_bytes=24 * MIB,
    )
    phases = tuple(Phase(kind=k, run_time_ms=ms) for k, ms in ((PhaseKind.FORWARD, 40), (PhaseKind.BACKWARD, 60)))
    before = report_of(around(100), phases=phases)
    after = report_of(around(100), phases=(phases[0], replace(phases[1], run_time_ms=30)), memory=memory)
    comparison = compare([before], [after])
    verdicts = {change.name: change.verdict for change in (*comparison.phases, *comparison.memory)}
    assert verdicts == {
        "forward": Verdict.NO_DIFFERENCE,
        "backward": Verdict.BETTER,
        "weights": Verdict.NO_DIFFERENCE,
        "gradients": Verdict.NO_DIFFERENCE,
        "optimizer": Verdict.BETTER,
        "activations": Verdict.WORSE,
        "other": Verdict.NO_DIFFERENCE,
    }


def test_the_text_names_what_changed() -> None:
    """Whole, classes, lines with their source, and what could not be told."""
    slow = STEP.replace("net.py:7 Net.forward 5 8", "net.py:7 Net.forward 25 8")
    before = report_of(around(100), STEP, {"net.py": NET})
    after = report_of(around(120, seed=9), slow, {"net.py": NET})
    text = comparison_text(compare([before], [after]), "main", "topic")
    head, iteration = text.splitlines()[:2]
    assert head.split()[:2] == ["main", "topic"]
    assert iteration.startswith("iteration")
    assert iteration.endswith("worse")
    (line,) = [row for row in text.splitlines() if row.startswith("net.py:7")]
    assert line.split()[1:3] == ["13", "ms"]
    assert line.endswith("return self.head(x)")
    assert "how much runs differ from each other is not known" in text


def test_endless_intervals_are_valid_json() -> None:
    """Too few iterations: null, and a note."""
    text = comparison_json(compare([report_of((1.0, 1.1))], [report_of((2.0, 2.1))]))
    value = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert value["run_time_ms"]["ratio"]["high"] is None
    assert any("Too few iterations" in note for note in value["notes"])
