"""Whether two series of times differ, or only look so: a ratio with an interval that noise alone rarely leaves.

Within a run: the Hodges-Lehmann estimate of the shift between the logarithms of the times, and the interval that goes
with the Mann-Whitney test (M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd edition 2013,
section 4.3): it asks for no distribution, and single slow iterations move it little. Iterations that follow each other
are alike, so it is widened by the factor sqrt((1 + r) / (1 - r)) of their correlation r.

Between runs: processes differ by more than their iterations do (A. Georges, D. Buytaert, L. Eeckhout, "Statistically
Rigorous Java Performance Evaluation", OOPSLA 2007). With two runs or more of both, the interval also covers Student's
interval of the difference between the means of the runs' medians; the ratio itself is that of the medians' median.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skyline_lsp.prediction.estimate import student_quantile

CONFIDENCE = 0.95

_EXACT = 20
"""Iterations of either side up to which ranks are counted exactly; above, the normal approximation is good."""

_MOST_CORRELATION = 0.9

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The iterations of one run."""

    times_ms: tuple[float, ...]
    """In their order; may be empty where they were not kept."""
    median_ms: float
    spread_ms: float
    """Interquartile range."""
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """After over before, with a 95 % interval; it is endless where there is too little to tell by."""

    value: float
    low: float
    high: float

    @property
    def noise(self) -> float:
        """By what part of itself the value may be off."""
        return max(self.high / self.value, self.value / self.low if self.low > 0 else math.inf) - 1

    def inverse(self) -> "Ratio":
        """Before over after."""
        return Ratio(value=1 / self.value, low=1 / self.high, high=1 / self.low if self.low > 0 else math.inf)

    def times(self, factor: float) -> "Ratio":
        """The same of values that are `factor` times as large afterwards."""
        return Ratio(value=self.value * factor, low=self.low * factor, high=self.high * factor)


def ratio_of(before: Sequence[Series], after: Sequence[Series]) -> Ratio | None:
    """How much longer an iteration takes `after`; None where a time is not positive."""
    if not all(series.median_ms > 0 and min(series.times_ms, default=1) > 0 for series in (*before, *after)):
        return None
    shift, half_width = _shift_within(before, after)
    if len(before) > 1 and len(after) > 1:
        medians = [np.log([series.median_ms for series in side]) for side in (before, after)]
        shift = float(np.median(medians[1]) - np.median(medians[0]))
        # A run that went astray moves the mean, and the interval, but not what is told as the change.
        astray = abs(float(medians[1].mean() - medians[0].mean()) - shift)
        half_width = max(half_width, _half_width_between(*medians) + astray)
    return Ratio(value=math.exp(shift), low=math.exp(-half_width + shift), high=_exp(shift + half_width))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _shift_within(before: Sequence[Series], after: Sequence[Series]) -> tuple[float, float]:
    """Shift of the logarithms and half the width of its interval, from the iterations of all runs."""
    if not all(len(series.times_ms) > 1 for series in (*before, *after)):
        return _shift_of_medians(before, after)
    a, b = (np.log(np.concatenate([series.times_ms for series in side])) for side in (before, after))
    differences = np.sort((b[:, None] - a[None, :]).ravel())
    shift = float(np.median(differences))
    rank = _rank(len(a), len(b))
    if rank < 1:
        return shift, math.inf
    half_width = max(shift - float(differences[rank - 1]), float(differences[-rank]) - shift)
    correlation = max(_correlation(before), _correlation(after))
    return shift, half_width * math.sqrt((1 + correlation) / (1 - correlation))


def _shift_of_medians(before: Sequence[Series], after: Sequence[Series]) -> tuple[float, float]:
    """From medians and interquartile ranges alone, as if the times were normally distributed."""
    logs = [math.log(float(np.median([series.median_ms for series in side]))) for side in (before, after)]
    variance = 0.0
    for side in (before, after):
        for series in side:
            if series.iterations < 2:
                return logs[1] - logs[0], math.inf
            deviation = series.spread_ms / 1.349 / series.median_ms
            # The median's variance is pi / 2 times the mean's.
            variance += math.pi / 2 * deviation**2 / series.iterations / len(side) ** 2
    return logs[1] - logs[0], 1.96 * math.sqrt(variance)


def _half_width_between(before: Array, after: Array) -> float:
    degrees = len(before) + len(after) - 2
    squares = float(((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum())
    error = math.sqrt(squares / degrees * (1 / len(before) + 1 / len(after)))
    return student_quantile((1 + CONFIDENCE) / 2, degrees) * error


def _rank(m: int, n: int) -> int:
    """Which of the sorted differences, counted from either end, is the interval's end; 0 where there are too few."""
    tail = (1 - CONFIDENCE) / 2
    if max(m, n) > _EXACT:
        return max(0, math.floor(m * n / 2 - 1.96 * math.sqrt(m * n * (m + n + 1) / 12)))
    # Arrangements by their Mann-Whitney statistic: the coefficients of the Gaussian binomial m + n over m.
    counts = [0] * (m * n + 1)
    counts[0] = 1
    for i in range(1, m + 1):
        for at in range(m * n, n + i - 1, -1):
            counts[at] -= counts[at - n - i]
        for at in range(i, m * n + 1):
            counts[at] += counts[at - i]
    allowed = tail * math.comb(m + n, m)
    below, rank = 0, 0
    while below + counts[rank] <= allowed:
        below += counts[rank]
        rank += 1
    return rank


def _correlation(side: Sequence[Series]) -> float:
    """Of each iteration with the next, over all runs of a side; never below 0."""
    products = squares = 0.0
    for series in side:
        logs = np.log(series.times_ms)
        # Single slow iterations would hide what the others have in common.
        ranks = np.argsort(np.argsort(logs)) - (len(logs) - 1) / 2
        products += float((ranks[1:] * ranks[:-1]).sum())
        squares += float((ranks**2).sum())
    return min(_MOST_CORRELATION, max(0.0, products / squares)) if squares > 0 else 0.0
