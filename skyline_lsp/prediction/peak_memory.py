"""Peak memory against batch size, from the live bytes of two sizes.

After each operation of an iteration a + b·n bytes are alive at batch size n, with an a and a b of that operation. The
peak is the largest of these straight lines: convex, made of straight pieces, and known at every size once two sizes
that run the same operations have been recorded. A line through two *peaks* errs on the unsafe side instead.

Where there are no two such sizes, measured peaks are interpolated. Depends on numpy and the protocol's `Sample`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skyline_lsp.prediction.estimate import Array, Estimate
from skyline_lsp.protocol import Sample

AGREEMENT = 0.03
"""Largest relative difference between the law and a measured peak at which the law is believed."""

# Relative half widths of the interval, by what the law was held against. The side that runs out of memory is wider.
_CHECKED_ERROR = 0.002
_CALIBRATED_ERROR = 0.005
_UNCHECKED_ERROR = 0.01
_UNCHECKED_CALIBRATED_ERROR = 0.03
_UNSAFE_SIDE = 1.5

_EXACT = 0.002
_CALIBRATION_SPAN = 1.2
_LEAST_SLOPE, _LARGEST_SLOPE = 0.8, 2.0
_PARTNER = 0.75
_INTERPOLATION_ERROR = 0.02
_TOWARDS_BOUND = 0.25
"""Where between its bounds an extrapolated peak is put: networks keep closer to the line than to proportion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakLaw:
    """The lines that can be the peak at some batch size, the flattest first."""

    lines: tuple[tuple[float, float], ...]
    """(bytes at batch size 0, bytes per sample)."""

    def peak_bytes(self, batch_size: float) -> float:
        """Highest live bytes."""
        return max(fixed + each * batch_size for fixed, each in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What an allocator's peak is beside the law: it rounds sizes up and lends workspaces to operations."""

    offset_bytes: float = 0.0
    slope: float = 1.0

    def apply(self, peak_bytes: float) -> float:
        """The allocator's peak where the law says `peak_bytes`."""
        return self.offset_bytes + self.slope * peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPeak:
    """A peak as measured."""

    batch_size: int
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemoryModel:
    """Bytes alive at the peak of an iteration as a function of the batch size."""

    law: PeakLaw | None
    """None where peaks are interpolated."""
    calibration: Calibration
    law_from: int
    """Smallest batch size that the law holds for; below it, measured peaks are interpolated."""
    below: float
    """How much lower than predicted the peak may be by the law, relative."""
    above: float
    measured: tuple[MeasuredPeak, ...]
    """By batch size."""

    def predict(self, batch_size: int) -> Estimate:
        """Peak at a batch size, in bytes."""
        if self.law is None or batch_size < self.law_from:
            return _interpolated(self.measured, batch_size)
        value = self.calibration.apply(self.law.peak_bytes(batch_size))
        return Estimate(value=value, low=value * (1 - self.below), high=value * (1 + self.above))


def peak_law(first_size: int, first: Sequence[int], second_size: int, second: Sequence[int]) -> PeakLaw:
    """The law from live bytes after each operation at two batch sizes.

    Raises `ValueError` where the sizes are equal or the number of operations differs.
    """
    if first_size == second_size or len(first) != len(second) or not len(first):
        raise ValueError("the law needs the live bytes of the same operations at two batch sizes")
    pairs = np.unique(np.stack([np.array(first, float), np.array(second, float)], axis=1), axis=0)
    each = (pairs[:, 1] - pairs[:, 0]) / (second_size - first_size)
    return PeakLaw(lines=tuple(_upper_envelope(pairs[:, 0] - each * first_size, each)))


def proportional_bound(sample: Sample, batch_size: int) -> float:
    """Bytes that the peak at a larger `batch_size` can't exceed: nothing grows faster than the batch."""
    return sample.peak_bytes * batch_size / sample.batch_size


def fit_peak_memory(
    samples: Sequence[Sample], calibration: Calibration | None = None, law: PeakLaw | None = None
) -> tuple[PeakMemoryModel | None, tuple[str, ...]]:
    """The law where two samples give one and the other peaks agree, else interpolation between peaks.

    `calibration` stands instead of one fitted to the measured peaks; `law`, found without running, instead of one from
    the samples. None where neither a law nor two sizes are known. The sentences say what to mistrust, and why.
    """
    by_size = {sample.batch_size: sample for sample in samples if sample.peak_bytes > 0}
    ordered = [by_size[size] for size in sorted(by_size)]
    measured = tuple(MeasuredPeak(batch_size=one.batch_size, peak_bytes=one.peak_bytes) for one in ordered)
    if law is not None:
        model, error, at = _by_law(law, 0, measured, calibration)
        if error <= AGREEMENT:
            return model, ()
        reason = f"at batch size {at} it is {error:.1%} off what the program would need by its operations"
        return _interpolating(measured, reason)
    if len(ordered) < 2:
        return None, ()
    recorded = [sample for sample in ordered if sample.live_bytes]
    if len(recorded) < 2:
        return _interpolating(measured, "live bytes were not recorded at two batch sizes")
    # The operations of the largest size are those of still larger ones, which is where memory matters.
    alike = [sample for sample in recorded if len(sample.live_bytes) == len(recorded[-1].live_bytes)]
    if len(alike) < 2:
        counts = ", ".join(f"{len(sample.live_bytes)} at {sample.batch_size}" for sample in recorded)
        return _interpolating(measured, f"the number of operations depends on the batch size ({counts})")
    reasons = []
    # Small sizes are often a special case: drop them one by one while two are left to tell, and one to check.
    for start in range(max(1, len(alike) - 2)):
        low, high = alike[start], alike[-1]
        found = peak_law(low.batch_size, low.live_bytes, high.batch_size, high.live_bytes)
        model, error, at = _by_law(found, low.batch_size, measured, calibration)
        if error <= AGREEMENT:
            return model, tuple(_doubts(model, measured))
        reasons.append(
            f"at batch size {at} the peak is {error:.1%} off what the operations at {low.batch_size} and "
            f"{high.batch_size} say"
        )
    return _interpolating(measured, reasons[0])


def refit_peak_memory(
    model: PeakMemoryModel, samples: Sequence[Sample]
) -> tuple[PeakMemoryModel | None, tuple[str, ...]]:
    """Hold the law of `model` against more peaks; interpolate where it does not stand the test."""
    largest = {sample.batch_size: sample.peak_bytes for sample in samples if sample.peak_bytes > 0}
    measured = tuple(MeasuredPeak(batch_size=size, peak_bytes=largest[size]) for size in sorted(largest))
    if model.law is None:
        return _interpolating(measured, "no law of the peak is known")
    again, error, at = _by_law(model.law, model.law_from, measured, None)
    if error <= AGREEMENT:
        return again, tuple(_doubts(again, measured))
    return _interpolating(measured, f"at batch size {at} the peak was {error:.1%} off what was predicted")


def _by_law(
    law: PeakLaw, law_from: int, measured: tuple[MeasuredPeak, ...], given: Calibration | None
) -> tuple[PeakMemoryModel, float, int]:
    """The model; the largest relative difference to a peak measured at `law_from` or above, and where."""
    held_to = [peak for peak in measured if peak.batch_size >= law_from]
    calibration = given if given is not None else _calibrate(law, held_to)
    plain = calibration == Calibration()
    differences = [
        (abs(calibration.apply(law.peak_bytes(one.batch_size)) / one.peak_bytes - 1), one.batch_size) for one in held_to
    ]
    error, at = max(differences, default=(0.0, 0))
    # Two of the peaks made the law, or the calibration; only further ones check it.
    if given is None and len(held_to) < 3:
        half_width = _UNCHECKED_ERROR if plain else _UNCHECKED_CALIBRATED_ERROR
    else:
        half_width = max(_CHECKED_ERROR if plain else _CALIBRATED_ERROR, 2 * error)
    below = [
        one
        for one in measured
        if one.batch_size < law_from
        and abs(calibration.apply(law.peak_bytes(one.batch_size)) / one.peak_bytes - 1) > half_width
    ]
    model = PeakMemoryModel(
        law=law,
        calibration=calibration,
        law_from=law_from if below else 1,
        below=half_width,
        above=_UNSAFE_SIDE * half_width,
        measured=measured,
    )
    return model, error, at


def _doubts(model: PeakMemoryModel, measured: Sequence[MeasuredPeak]) -> Iterator[str]:
    if sum(one.batch_size >= model.law_from for one in measured) < 3:
        yield "Peak memory rests on two batch sizes; a third has not been measured to check it."
    if model.law_from > 1:
        yield (
            f"Below batch size {model.law_from} an iteration runs other operations, so peak memory is interpolated "
            "between measured peaks there."
        )


def _calibrate(law: PeakLaw, measured: Sequence[MeasuredPeak]) -> Calibration:
    """Offset and slope from the law to the measured peaks, by least squares relative to the peaks."""
    if not measured:
        return Calibration()
    predicted = np.array([law.peak_bytes(one.batch_size) for one in measured])
    peaks = np.array([float(one.peak_bytes) for one in measured])
    if np.all(np.abs(peaks / predicted - 1) <= _EXACT):
        return Calibration()
    if predicted.max() >= _CALIBRATION_SPAN * predicted.min():
        rows = np.stack([1 / peaks, predicted / peaks], axis=1)
        (offset, slope), *_ = np.linalg.lstsq(rows, np.ones(len(peaks)), rcond=None)
        if _LEAST_SLOPE <= slope <= _LARGEST_SLOPE:
            return Calibration(offset_bytes=float(offset), slope=float(slope))
    return Calibration(offset_bytes=float(np.median(peaks - predicted)))


def _interpolating(measured: tuple[MeasuredPeak, ...], reason: str) -> tuple[PeakMemoryModel | None, tuple[str, ...]]:
    if len(measured) < 2:
        return None, (f"Peak memory can't be predicted: {reason}.",)
    model = PeakMemoryModel(
        law=None,
        calibration=Calibration(),
        law_from=1,
        below=_INTERPOLATION_ERROR,
        above=_UNSAFE_SIDE * _INTERPOLATION_ERROR,
        measured=measured,
    )
    return model, (f"Peak memory is interpolated between measured peaks, with wide intervals: {reason}.",)


def _interpolated(measured: Sequence[MeasuredPeak], batch_size: int) -> Estimate:
    """A peak from at least two measured ones, as a convex curve through them would have it."""
    sizes = np.array([float(one.batch_size) for one in measured])
    peaks = np.array([float(one.peak_bytes) for one in measured])
    below, above = _INTERPOLATION_ERROR, _UNSAFE_SIDE * _INTERPOLATION_ERROR
    if batch_size > sizes[-1]:
        # A partner well below the largest, so that an accident of either doesn't tilt the line.
        far = np.flatnonzero(sizes <= _PARTNER * sizes[-1])
        partner = far[-1] if len(far) else -2
        each = max(0.0, (peaks[-1] - peaks[partner]) / (sizes[-1] - sizes[partner]))
        # Convex, so at least the line; but nothing grows faster than the batch.
        least = float(peaks[-1] + each * (batch_size - sizes[-1]))
        most = max(least, float(peaks[-1]) * batch_size / float(sizes[-1]))
        value = least + _TOWARDS_BOUND * (most - least)
        return Estimate(value=value, low=least * (1 - below), high=most * (1 + above))
    if batch_size < sizes[0]:
        each = max(0.0, (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]))
        least = float(peaks[0]) * batch_size / float(sizes[0])
        value = max(float(peaks[0] - each * (sizes[0] - batch_size)), least)
        return Estimate(value=value, low=value * (1 - below), high=max(float(peaks[0]), value) * (1 + above))
    value = float(np.interp(batch_size, sizes, peaks))
    index = min(max(1, int(np.searchsorted(sizes, batch_size))), len(sizes) - 1)
    # The chord is what a convex curve can reach; the neighbouring chords, drawn out, are what it can't fall below.
    drawn_out = [
        float(peaks[end] + (peaks[end] - peaks[start]) / (sizes[end] - sizes[start]) * (batch_size - sizes[end]))
        for start, end in ((index - 2, index - 1), (index + 1, index))
        if 0 <= start < len(sizes) and 0 <= end < len(sizes)
    ]
    ends = sorted((float(peaks[index - 1]), float(peaks[index])))
    other = min(max(max(drawn_out, default=ends[0]), ends[0]), ends[1])
    return Estimate(value=value, low=min(value, other) * (1 - below), high=max(value, other) * (1 + above))


def _upper_envelope(fixed: Array, each: Array) -> Iterator[tuple[float, float]]:
    """The lines (fixed + each * b) that are the highest somewhere at b >= 1, the flattest first."""
    kept: list[tuple[float, float]] = []
    for index in np.lexsort((fixed, each)):
        line = float(fixed[index]), float(each[index])
        if kept and kept[-1][1] == line[1]:
            # Sorted so that the higher of two parallel lines comes last.
            kept.pop()
        while kept and _crossing(kept[-1], line) <= (1.0 if len(kept) == 1 else _crossing(kept[-2], kept[-1])):
            kept.pop()
        kept.append(line)
    yield from kept


def _crossing(flat: tuple[float, float], steep: tuple[float, float]) -> float:
    """The batch size from which the steeper line is the higher one."""
    return (flat[0] - steep[0]) / (steep[1] - flat[1])
