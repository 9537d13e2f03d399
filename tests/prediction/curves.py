"""Programs that were never run: curves of time and memory, and measurements of them with the noise of real machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skyline_lsp.protocol import Sample

Curve = Callable[[float], float]

CURVES: dict[str, Curve] = {
    "line": lambda b: 20 + 3 * b,
    "almost proportional": lambda b: 2 + 3 * b,
    "mostly fixed": lambda b: 100 + b,
    "floor": lambda b: max(40.0, 5 + 2.2 * b),
    "smooth floor": lambda b: float((40**4 + (5 + 2.2 * b) ** 4) ** 0.25),
    "saturating": lambda b: 10 + 4 * b**0.93,
    "caches overflow": lambda b: 5 + 2 * b + 0.004 * b * b,
    "steps of 16": lambda b: 20 + 3 * 16 * float(np.ceil(b / 16)),
    "bend": lambda b: 10 + 2 * b + max(0.0, b - 24),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What keeps a measurement from the curve; parts of the time."""

    quartiles: float
    """Interquartile range of the iterations of one run."""
    drift: float
    """Standard deviation between runs, of which each is like the one before."""
    outliers: float = 0.0
    """Chance that an iteration takes 1.5 to 10 times as long."""
    iterations: int = 7


NOISES = {
    "accelerator": Noise(quartiles=0.01, drift=0.007),
    "laptop": Noise(quartiles=0.05, drift=0.03, outliers=0.03),
    "busy": Noise(quartiles=0.15, drift=0.08, outliers=0.1),
}


class Machine:
    """Measures curves with noise; the same seed measures the same."""

    def __init__(self, noise: Noise, seed: int) -> None:
        self._noise = noise
        self._random = np.random.default_rng(seed)
        self._state = self._random.normal()

    def measure(self, curve: Curve, batch_size: int) -> Sample:
        """One run at a batch size."""
        noise = self._noise
        # Stationary, with a correlation of 0.7 from run to run.
        self._state = 0.7 * self._state + (1 - 0.7**2) ** 0.5 * self._random.normal()
        within = self._random.normal(0, noise.quartiles / 1.349, noise.iterations)
        accident = self._random.random(noise.iterations) < noise.outliers
        slower = np.where(accident, self._random.uniform(1.5, 10, noise.iterations), 1.0)
        times = curve(batch_size) * np.exp(within + noise.drift * self._state) * slower
        low, median, high = np.percentile(times, [25, 50, 75])
        return sample(batch_size, float(median), spread_ms=float(high - low), iterations=noise.iterations)

    def measure_all(self, curve: Curve, batch_sizes: Sequence[int]) -> list[Sample]:
        """Runs at several batch sizes, in shuffled order."""
        return [self.measure(curve, int(size)) for size in self._random.permutation(batch_sizes)]


def sample(
    batch_size: int,
    run_time_ms: float,
    *,
    spread_ms: float = 0.1,
    iterations: int = 10,
    peak_bytes: int = 0,
    live_bytes: tuple[int, ...] = (),
) -> Sample:
    """A sample that only says what a test is about."""
    return Sample(
        batch_size=batch_size,
        run_time_ms=run_time_ms,
        spread_ms=spread_ms,
        iterations=iterations,
        peak_bytes=peak_bytes,
        live_bytes=live_bytes,
    )


def exact(curve: Curve, batch_sizes: Sequence[int]) -> list[Sample]:
    """The curve itself, as a machine without noise measures it."""
    return [sample(size, curve(size), spread_ms=0.0) for size in batch_sizes]


Lines = Sequence[tuple[int, int]]
"""(bytes at batch size 0, bytes per sample) after each operation of an iteration."""


def recorded(batch_size: int, lines: Lines, run_time_ms: float = 10.0) -> Sample:
    """A sample of a program whose live bytes follow `lines`."""
    live = tuple(fixed + each * batch_size for fixed, each in lines)
    return sample(batch_size, run_time_ms, peak_bytes=max(live), live_bytes=live)
