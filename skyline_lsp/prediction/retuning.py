"""From a wish to a batch size: a throughput, a memory limit, most of the reachable throughput, what fits."""

from collections.abc import Iterator
from dataclasses import dataclass

from skyline_lsp.prediction.model import Model, Prediction, predict

SUPPORTED_FACTOR = 4
"""How many times the largest measured batch size a suggestion may be: beyond, the fit is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retune:
    """A batch size that fulfils the wish."""

    batch_size: int
    reason: str
    """For the user, one sentence."""
    prediction: Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No batch size is known to fulfil the wish."""

    reason: str
    """For the user: why, and what to do."""


def for_throughput(model: Model, samples_per_second: float, memory_bytes: int | None = None) -> Retune | Refusal:
    """The smallest batch size that is predicted to reach a throughput."""
    for prediction in _predictions(model, memory_bytes):
        if prediction.samples_per_second.value >= samples_per_second and prediction.fits is not False:
            return _retune(prediction, f"reaches {samples_per_second:.4g} samples/s")
    return Refusal(reason=f"No batch size is predicted to reach {samples_per_second:.4g} samples/s.")


def for_memory(model: Model, memory_bytes: int) -> Retune | Refusal:
    """The largest batch size whose peak stays within `memory_bytes`, its interval included."""
    within = [prediction for prediction in _predictions(model, memory_bytes) if prediction.fits]
    if not within:
        return Refusal(reason=f"No batch size is predicted to stay within {memory_bytes / 2**30:.4g} GiB.")
    return _retune(within[-1], f"stays within {memory_bytes / 2**30:.4g} GiB")


def largest_that_fits(model: Model, memory_bytes: int, margin: float = 0.1) -> Retune | Refusal:
    """The largest batch size that leaves the share `margin` of memory free."""
    return for_memory(model, int(memory_bytes * (1 - margin)))


def knee(model: Model, memory_bytes: int | None = None, share: float = 0.95) -> Retune | Refusal:
    """The smallest batch size that gives `share` of the best throughput in the supported range."""
    possible = [prediction for prediction in _predictions(model, memory_bytes) if prediction.fits is not False]
    if not possible:
        return Refusal(reason="No batch size can be predicted.")
    best = max(prediction.samples_per_second.value for prediction in possible)
    return _retune(
        next(prediction for prediction in possible if prediction.samples_per_second.value >= share * best),
        f"gives {share:.0%} of the best throughput",
    )


def _predictions(model: Model, memory_bytes: int | None) -> Iterator[Prediction]:
    largest = max((sample.batch_size for sample in model.samples), default=0) * SUPPORTED_FACTOR
    for batch_size in range(1, largest + 1):
        if model.accelerator and batch_size > 8 and batch_size % 8:
            continue
        prediction = predict(model, batch_size, memory_bytes)
        if prediction is not None:
            yield prediction


def _retune(prediction: Prediction, what: str) -> Retune:
    return Retune(
        batch_size=prediction.batch_size,
        reason=f"Batch size {prediction.batch_size} {what}.",
        prediction=prediction,
    )
