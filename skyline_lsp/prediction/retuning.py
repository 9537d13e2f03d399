"""From a wish to a batch size: a throughput, a memory limit, most of the reachable throughput, what fits.

A suggestion stays within what the samples support: from a quarter of the smallest measured size to four times the
largest. Where a wish leaves a choice, the size is a multiple that suits the device; the wish itself is never rounded
across.

Depends on the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skyline_lsp.prediction.model import Model, Prediction, fits, measured_time, predict, predicted_peak
from skyline_lsp.prediction.refusal import Refusal

SUPPORTED_FACTOR = 4
"""How many times the largest measured batch size a suggestion may be; beyond, a fit is a guess."""

_MOST_SIZES = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Retune:
    """A batch size that fulfils the wish."""

    batch_size: int
    reason: str
    """For the user, one or two sentences: what it fulfils, and how far the samples carry it."""
    prediction: Prediction


def for_throughput(
    model: Model, samples_per_second: float, memory_bytes: int | None = None, maximum: int | None = None
) -> Retune | Refusal:
    """The smallest batch size, up to `maximum`, that is predicted to reach a throughput and not known not to fit."""
    wish = f"{samples_per_second:,.4g} samples/s"
    best: _Option | None = None
    for options in _searches(model, memory_bytes, maximum):
        possible = [option for option in options if option.fits is not False]
        # A hair more, so that rounding can't leave the prediction below the wish.
        reaching = [option for option in possible if option.samples_per_second >= samples_per_second * (1 + 1e-9)]
        if reaching:
            return _retune(model, reaching[0], memory_bytes, f"reaches {wish}")
        best = max(possible, key=lambda option: option.samples_per_second, default=best)
    if best is None:
        return _nothing_known(model)
    return Refusal(
        reason=f"No batch size that the samples support is predicted to reach {wish}: the most is "
        f"{best.samples_per_second:,.4g} samples/s at batch size {best.batch_size}.{_limit(model, best, maximum)}"
    )


def for_memory(model: Model, memory_bytes: int, maximum: int | None = None) -> Retune | Refusal:
    """The largest batch size, up to `maximum`, whose peak stays within `memory_bytes`, its interval included."""
    return _largest(model, memory_bytes, maximum, f"stays within {_gib(memory_bytes)}")


def largest_that_fits(
    model: Model, memory_bytes: int, margin: float = 0.1, maximum: int | None = None
) -> Retune | Refusal:
    """The largest batch size that leaves a share of memory free: fragmentation and the device's own needs take some."""
    within = int(memory_bytes * (1 - margin))
    return _largest(model, within, maximum, f"fits into {_gib(memory_bytes)} and leaves {margin:.0%} of it free")


def knee(
    model: Model, memory_bytes: int | None = None, share: float = 0.95, maximum: int | None = None
) -> Retune | Refusal:
    """The smallest batch size that gives `share` of the best throughput among sizes supported and not known not to fit.

    That is no share of the asymptote, which no batch size reaches and no sample shows.
    """
    options = next(_searches(model, memory_bytes, maximum), ())
    possible = [option for option in options if option.fits is not False]
    if not possible:
        return _nothing_known(model)
    best = max(possible, key=lambda option: option.samples_per_second)
    chosen = next(option for option in possible if option.samples_per_second >= share * best.samples_per_second)
    what = f"the best throughput within reach ({best.samples_per_second:,.4g} samples/s at {best.batch_size})"
    return _retune(model, chosen, memory_bytes, f"gives {f'{share:.0%} of ' if share < 1 else ''}{what}")


def suits_device(batch_size: int, accelerator: bool) -> bool:
    """Whether a size is a round one for the device.

    An accelerator's matrix units work on blocks of 8 and its warps have 32 threads (NVIDIA, Matrix Multiplication
    Background User's Guide). A CPU's vectors run along other dimensions, so there it is a matter of round numbers.
    """
    # At most 32 sizes an octave: a difference of 3 % is within the error of any prediction.
    block = 1 << max(0, batch_size.bit_length() - 6)
    if accelerator and batch_size >= 8:
        block = max(block, 32 if batch_size >= 256 else 8)
    return batch_size % block == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A batch size with what decides between it and others; the numbers are the values that `predict` gives."""

    batch_size: int
    samples_per_second: float
    fits: bool | None


def _searches(model: Model, memory_bytes: int | None, maximum: int | None) -> Iterator[tuple[_Option, ...]]:
    """Options by size: first those that suit the device, then all, for where none of the first will do."""
    measured = {sample.batch_size for sample in model.samples if sample.run_time_ms > 0}
    if not measured:
        return
    first, last = max(1, min(measured) // SUPPORTED_FACTOR), max(measured) * SUPPORTED_FACTOR
    everything = range(first, min(last, maximum or last) + 1)
    suiting = {size for size in everything if suits_device(size, model.accelerator)}
    yield _options(model, sorted(suiting | measured.intersection(everything)), memory_bytes)
    if len(everything) <= _MOST_SIZES:
        yield _options(model, everything, memory_bytes)


def _options(model: Model, sizes: Sequence[int], memory_bytes: int | None) -> tuple[_Option, ...]:
    times = {}
    for size in {sample.batch_size for sample in model.samples}.intersection(sizes):
        measured = measured_time(model, size)
        if measured is not None:
            times[size] = measured.value
    if model.time is not None:
        others = [size for size in sizes if size not in times and model.time.supports(size)]
        if others:
            times |= dict(zip(others, map(float, model.time.values(others)), strict=True))
    return tuple(
        _Option(
            batch_size=size,
            samples_per_second=1000.0 * size * model.micro_batches / times[size],
            fits=fits(model, size, predicted_peak(model, size), memory_bytes),
        )
        for size in sizes
        if size in times
    )


def _largest(model: Model, memory_bytes: int, maximum: int | None, what: str) -> Retune | Refusal:
    smallest: _Option | None = None
    for options in _searches(model, memory_bytes, maximum):
        within = [option for option in options if option.fits]
        if within:
            limit = _limit(model, within[-1], maximum) if within[-1] is options[-1] else ""
            return _retune(model, within[-1], memory_bytes, what, limit)
        smallest = options[0] if options else None
    if smallest is None:
        return _nothing_known(model)
    if all(predicted_peak(model, sample.batch_size) is None for sample in model.samples):
        return Refusal(reason="Peak memory has not been measured, so nothing is known to fit.")
    return Refusal(
        reason=f"No batch size is sure to stay within {_gib(memory_bytes)}: even {smallest.batch_size} may take more. "
        "Weights, gradients and optimizer state don't shrink with the batch."
    )


def _retune(model: Model, option: _Option, memory_bytes: int | None, what: str, limit: str = "") -> Retune | Refusal:
    prediction = predict(model, option.batch_size, memory_bytes)
    if prediction is None:
        return _nothing_known(model)
    largest = max(sample.batch_size for sample in model.samples)
    beyond = ""
    if option.batch_size > largest:
        beyond = f" That is {option.batch_size / largest:.2g} times the largest measured batch size, {largest}."
    return Retune(
        batch_size=option.batch_size,
        reason=f"Batch size {option.batch_size} {what}.{beyond}{limit}",
        prediction=prediction,
    )


def _limit(model: Model, option: _Option, maximum: int | None) -> str:
    """Why no larger size than `option` was considered."""
    if maximum is not None and option.batch_size >= maximum:
        return f" Larger ones than {maximum} are not possible here."
    if model.time is None or model.time.flat:
        return " What lies beyond the measured sizes is not known: larger ones have to be measured."
    return " Larger ones may be better, but are too far from what has been measured."


def _nothing_known(model: Model) -> Refusal:
    return Refusal(reason=" ".join(model.problems) or "Nothing is known of the batch sizes that are possible here.")


def _gib(count: int) -> str:
    return f"{count / 2**30:.4g} GiB"
