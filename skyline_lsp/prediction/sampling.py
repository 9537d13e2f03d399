"""Which batch size to measure next: the one that narrows predictions around the current size most, per second spent.

How much a measurement narrows them is told before it is made: by a Gaussian process (Rasmussen and Williams 2006,
chapter 2) of a line in the batch size, a smooth deviation in its logarithm, and an offset that sizes share which are no
multiples of 8. Its variance depends on where samples are, not on what they show.

Pure functions of what is known; depends on the models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from skyline_lsp.prediction.estimate import Array
from skyline_lsp.prediction.model import Model, fit, predicted_peak
from skyline_lsp.prediction.peak_memory import proportional_bound
from skyline_lsp.prediction.run_time import noise_of
from skyline_lsp.protocol import Sample

_Flags = npt.NDArray[np.bool_]

RANGE = 4
"""Predictions matter from the current batch size / RANGE to the current batch size * RANGE."""
BLOCK = 8
"""Devices work on blocks of so many samples; a size that is no multiple of it shows what that costs."""

_NORMAL_95 = 1.645
_COEFFICIENT_ERROR = 1.0
"""How little is known of a line before it is measured, relative."""
_DEVIATION = 0.04
"""How far time may keep from the line, relative; neighbours within _DEVIATION_OCTAVES do so together."""
_DEVIATION_OCTAVES = 1.5
_LONE_DEVIATION = 0.1
"""How far a batch of one may keep from all others: programs and libraries treat it apart."""
_BLOCK_DEVIATION = 0.03
_BLOCK_WEIGHT = 0.25
"""How much sizes that are no multiples of BLOCK count among those that predictions matter for."""
_FIXED_SHARE = 0.2
"""Part of an iteration's time that is taken not to depend on the batch while one size only is known."""

_ENOUGH_SIZES = 6
"""As many within RANGE of the current size are the end of it: what is still unknown is the machine's noise."""
_FEWEST_SIZES = 4
_MOST_FAILURES = 2
_LEAST_GAIN = 0.08
"""A measurement that narrows predictions by a smaller part of their width is not worth its time."""
_LEAST_TOP = 16
"""Sizes up to this one are measured even where RANGE times the current size is less."""
_WORTHWHILE_STEP = 1.25
"""How many times larger than the largest sample the largest size that may run must be to be measured."""
_SAFE_PART = 0.9
"""Part of memory that a measurement may be expected to take."""
_FARTHEST = 64
"""How many times the current size may be measured in search of one where time begins to grow."""
_OVERHEAD_S = 3.0
"""What starting a program is taken to need before one has been started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What measuring one batch size took."""

    batch_size: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that decides what to measure next."""

    current: int
    """The batch size that the program has now."""
    samples: tuple[Sample, ...] = ()
    memory_bytes: int | None = None
    """Memory of the device; None where not known."""
    out_of_memory: tuple[int, ...] = ()
    """Batch sizes that ran out of memory."""
    failed: tuple[int, ...] = ()
    """Batch sizes at which the program failed otherwise."""
    maximum: int | None = None
    """Largest size that can be set, such as the number of samples in the data set."""
    spent: tuple[Spent, ...] = ()
    """What was measured so far took, failures included."""
    seconds_left: float | None = None
    """None where time doesn't matter."""
    wished_error: float = 0.05
    """Half width of the 90 % interval, relative, at which predictions are good enough."""
    iterations: int = 8
    """About how many iterations a measurement runs, warm-up included."""


def next_batch_size(known: Known) -> int | None:
    """The batch size to measure next; None when predictions are good enough, or nothing more can be done."""
    if not known.samples:
        return _first(known)
    sizes = {sample.batch_size for sample in known.samples}
    near = [size for size in sizes if known.current <= size * RANGE and size <= known.current * RANGE]
    if len(near) >= _ENOUGH_SIZES or _runs_at_one_size_only(known, sizes):
        return None
    model = fit(known.samples, out_of_memory=known.out_of_memory, check=False)
    if len(sizes) >= _FEWEST_SIZES and (model.time is None or model.time.flat):
        farther = [size for size in _farther(known, model) if expected_seconds(known, size) <= _left(known)]
        if farther:
            return farther[-1]
    candidates = [size for size in _candidates(known, model) if expected_seconds(known, size) <= _left(known)]
    if not candidates:
        return None
    design = _design(known, model)
    before = design.half_width(())
    gains = {size: before - design.half_width((size,)) for size in candidates}
    if len(sizes) >= _FEWEST_SIZES and model.time is not None and not model.time.flat:
        good_enough = _half_width(known, model) <= known.wished_error
        if good_enough or max(gains.values()) < _LEAST_GAIN * before:
            # What blocks cost can't be told from sizes that are all multiples: one that is none is measured anyway.
            candidates = [size for size in candidates if _breaks_blocks(size)]
            if not candidates:
                return None
    return max(candidates, key=lambda size: (gains[size] / expected_seconds(known, size), -size))


def next_batch_size_for(known: Known, wanted: Sequence[int]) -> int | None:
    """The batch size to measure next, so that each of `wanted` can be predicted, however far from the current size.

    None when predictions are good enough, or nothing more can be done.
    """
    for centre in _centres(known.current, wanted):
        if (size := next_batch_size(replace(known, current=centre))) is not None:
            return size
    return None


def _centres(current: int, wanted: Sequence[int]) -> list[int]:
    """Batch sizes to measure around: what is near one of them can be predicted, so the farthest of `wanted` count."""
    above = [size // RANGE for size in wanted if size > RANGE * current]
    below = [size * RANGE for size in wanted if size * RANGE < current]
    return [current, *([max(above)] if above else []), *([min(below)] if below else [])]


def expected_seconds(known: Known, batch_size: int) -> float:
    """How long measuring a batch size will take, by what was measured."""
    times = {sample.batch_size: sample.run_time_ms for sample in known.samples}
    overheads = [
        max(0.1, spent.seconds - known.iterations * times[spent.batch_size] / 1000)
        for spent in known.spent
        if spent.batch_size in times
    ]
    overhead = float(np.median(overheads)) if overheads else _OVERHEAD_S
    if not times:
        return overhead
    return overhead + known.iterations * float(_reference(known, np.array([float(batch_size)]))[0]) / 1000


def _first(known: Known) -> int | None:
    """The current size, or the largest power of two below it that may run."""
    refused = {*known.out_of_memory, *known.failed}
    if len(refused) > len(known.out_of_memory) and len(known.failed) > 1:
        return None
    limit = min([known.current, *(size - 1 for size in known.out_of_memory), known.maximum or known.current])
    sizes = [size for size in (known.current, *_powers(limit)) if size <= limit and size not in refused]
    affordable = [size for size in sizes if expected_seconds(known, size) <= _left(known)]
    return max(affordable, default=None)


def _runs_at_one_size_only(known: Known, sizes: set[int]) -> bool:
    """Whether sizes on both sides of the only one that runs have failed, or several on one side."""
    if len(sizes) > 1:
        return False
    smaller = [size < known.current for size in known.failed]
    return len(set(smaller)) > 1 or len(smaller) > _MOST_FAILURES


def _candidates(known: Known, model: Model) -> list[int]:
    """Sizes worth measuring that may run and have not: powers, halves and doubles, once one that breaks blocks."""
    current, limit = known.current, _limit(known, model)
    top = min(limit, max(RANGE * current, _LEAST_TOP))
    sizes = {*_powers(top), *(current * 2**power for power in (1, 2))}
    sizes |= {current // 2**power for power in range(1, 4) if current // 2**power}
    if not any(_breaks_blocks(sample.batch_size) for sample in known.samples):
        sizes |= {size for size in (current * 11 // 16 | 1, current * 11 // 8 | 1) if _breaks_blocks(size)}
    if _WORTHWHILE_STEP * max(sample.batch_size for sample in known.samples) <= limit < RANGE * current:
        sizes.add(limit)
    gone = {*known.failed, *(sample.batch_size for sample in known.samples)}
    return sorted(size for size in sizes - gone if size <= top)


def _farther(known: Known, model: Model) -> list[int]:
    """Sizes beyond the largest sample, where time may begin to grow."""
    largest = max(sample.batch_size for sample in known.samples)
    limit = min(_limit(known, model), _FARTHEST * known.current)
    return [size for size in (2 * largest, 4 * largest) if size <= limit and size not in known.failed]


def _limit(known: Known, model: Model) -> int:
    """The largest size that is sure enough to run."""
    largest = max(sample.batch_size for sample in known.samples)
    limit = known.maximum or _FARTHEST * known.current
    if known.out_of_memory:
        # Half the way: each further accident halves what is unknown.
        limit = min(limit, (largest + min(known.out_of_memory)) // 2)
    if known.memory_bytes is None:
        return limit
    last = max(known.samples, key=lambda sample: sample.batch_size)
    low, high = min(largest, limit), limit
    while low < high:
        middle = (low + high + 1) // 2
        peak = predicted_peak(model, middle)
        bound = proportional_bound(last, middle)
        if (bound if peak is None else min(bound, peak.high)) <= _SAFE_PART * known.memory_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def _left(known: Known) -> float:
    return math.inf if known.seconds_left is None else known.seconds_left


def _powers(limit: int) -> list[int]:
    return [1 << power for power in range(limit.bit_length())]


def _breaks_blocks(batch_size: int) -> bool:
    return batch_size > BLOCK and batch_size % BLOCK != 0


def _sizes_of_interest(known: Known, limit: int) -> list[int]:
    low = max(1, min(known.current, limit) // RANGE)
    high = max(low, min(limit, known.current * RANGE))
    return sorted({round(size) for size in np.geomspace(low, high, 2 * _octaves(low, high) + 1)})


def _octaves(low: int, high: int) -> int:
    return max(1, math.ceil(math.log2(high / low)))


def _half_width(known: Known, model: Model) -> float:
    """Mean half width of the intervals that the model gives now, relative."""
    if model.time is None:
        return math.inf
    sizes = [size for size in _sizes_of_interest(known, _limit(known, model)) if model.time.supports(size)]
    return float(np.mean([math.sqrt(one.high / one.low) - 1 for one in model.time.predict_many(sizes)]))


def _reference(known: Known, sizes: Array) -> Array:
    """About the time at sizes, in ms: a line through the smallest and the largest sample."""
    small, large = (pick(known.samples, key=lambda one: one.batch_size) for pick in (min, max))
    each = (large.run_time_ms - small.run_time_ms) / max(1, large.batch_size - small.batch_size)
    most = large.run_time_ms / large.batch_size
    if small.batch_size == large.batch_size:
        each = (1 - _FIXED_SHARE) * most
    each = min(max(each, 0.05 * most), most)
    result: Array = large.run_time_ms + each * (sizes - large.batch_size)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """The Gaussian process: where it was measured, and where it matters."""

    known: Known
    measured: tuple[int, ...]
    wanted: tuple[int, ...]
    noise: float

    def half_width(self, further: tuple[int, ...]) -> float:
        """Mean half width of the 90 % interval, relative, once `further` sizes have been measured as well."""
        measured = np.array([*self.measured, *further], float)
        breaks = np.array([_breaks_blocks(int(size)) for size in measured])
        wanted = np.array(self.wanted, float)
        among = self._covariance(measured, breaks, measured, breaks) + np.eye(len(measured)) * self.noise**2
        widths = []
        for broken in (False, True):
            there = np.full(len(wanted), broken) & (wanted > BLOCK)
            across = self._covariance(wanted, there, measured, breaks)
            prior = np.diag(self._covariance(wanted, there, wanted, there))
            variance = prior - np.einsum("ij,ji->i", across, np.linalg.solve(among, across.T))
            widths.append(_NORMAL_95 * float(np.sqrt(np.maximum(variance, 0.0)).mean()))
        return (1 - _BLOCK_WEIGHT) * widths[0] + _BLOCK_WEIGHT * widths[1]

    def _covariance(self, first: Array, first_breaks: _Flags, second: Array, second_breaks: _Flags) -> Array:
        """Of the relative deviations from the reference at two lists of sizes."""
        own, other = self._line(first), self._line(second)
        octaves = np.abs(np.log2(first)[:, None] - np.log2(second)[None, :])
        result: Array = (
            _COEFFICIENT_ERROR**2 * own @ other.T
            + _DEVIATION**2 * np.exp(-octaves / _DEVIATION_OCTAVES)
            + _LONE_DEVIATION**2 * np.outer(first == 1, second == 1)
            + _BLOCK_DEVIATION**2 * np.outer(first_breaks, second_breaks)
        )
        return result

    def _line(self, sizes: Array) -> Array:
        """What a fixed part and a part per sample, each as large as the time at the current size, are of the time."""
        reference = _reference(self.known, sizes)
        current = _reference(self.known, np.array([float(self.known.current)]))
        return np.stack([current / reference, sizes / self.known.current * current / reference], axis=1)


def _design(known: Known, model: Model) -> _Design:
    return _Design(
        known=known,
        measured=tuple(sample.batch_size for sample in known.samples),
        wanted=tuple(_sizes_of_interest(known, _limit(known, model))),
        noise=float(np.median(noise_of(known.samples))),
    )
