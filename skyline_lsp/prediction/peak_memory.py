"""Peak memory against batch size: the largest of the straight lines that live bytes follow, one for each operation."""

from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.protocol import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemoryModel:
    """Bytes alive at the peak of an iteration as a function of the batch size."""

    lines: tuple[tuple[float, float], ...]
    """(bytes at batch size 0, bytes per sample) of each moment that can be the peak."""
    relative_error: float

    def predict(self, batch_size: int) -> Estimate:
        """Peak at a batch size, in bytes."""
        value = max(base + slope * batch_size for base, slope in self.lines)
        return Estimate(value=value, low=value * (1 - self.relative_error), high=value * (1 + self.relative_error))


def fit_peak_memory(samples: Sequence[Sample]) -> tuple[PeakMemoryModel | None, tuple[str, ...]]:
    """The law of two samples that ran the same operations, else a line through the two largest peaks."""
    by_size = {sample.batch_size: sample for sample in samples}
    ordered = [by_size[size] for size in sorted(by_size)]
    if len(ordered) < 2:
        return None, ()
    small, large = ordered[0], ordered[-1]
    problems: tuple[str, ...] = ()
    between = large.batch_size - small.batch_size
    if small.live_bytes and len(small.live_bytes) == len(large.live_bytes):
        pairs = set(zip(small.live_bytes, large.live_bytes, strict=True))
        error = 0.01
    else:
        pairs = {(small.peak_bytes, large.peak_bytes)}
        error, problems = 0.1, ("Peak memory is a line through measured peaks.",)
    lines = {
        ((low * large.batch_size - high * small.batch_size) / between, (high - low) / between) for low, high in pairs
    }
    return PeakMemoryModel(lines=tuple(sorted(lines)), relative_error=error), problems
