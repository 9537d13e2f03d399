"""What is known of a program at every batch size, and what it predicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.prediction.estimate import Estimate
from skyline_lsp.prediction.peak_memory import PeakMemoryModel, fit_peak_memory
from skyline_lsp.prediction.run_time import RunTimeModel, fit_run_time
from skyline_lsp.protocol import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a batch size costs, with 90 % intervals."""

    batch_size: int
    run_time_ms: Estimate
    samples_per_second: Estimate
    peak_bytes: Estimate | None
    """None where nothing is known of it."""
    fits: bool | None
    """Whether the peak fits into memory; None where the interval holds both answers, or a number is missing."""
    measured: bool
    """Whether this very batch size was measured; its numbers are then the measured ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Fitted to samples; it can be turned into JSON and back."""

    samples: tuple[Sample, ...]
    """What it is fitted to, sorted by batch size, without their live bytes."""
    time: RunTimeModel | None
    """None where time can't be predicted beyond the sizes measured; `problems` says why."""
    memory: PeakMemoryModel | None
    problems: tuple[str, ...]
    """What is wrong or uncertain, each a sentence for the user."""
    accelerator: bool = False
    """Whether the device is none of the host's processors: batch sizes then come in multiples of 8."""
    micro_batches: int = 1
    """Batches of one iteration."""
    out_of_memory: tuple[int, ...] = ()
    """Batch sizes that ran out of memory."""


def fit(
    samples: Sequence[Sample],
    *,
    accelerator: bool = False,
    micro_batches: int = 1,
    out_of_memory: Sequence[int] = (),
) -> Model:
    """Fit time and memory to samples, of which there may be none."""
    time, time_problems = fit_run_time(samples)
    memory, memory_problems = fit_peak_memory(samples)
    return Model(
        samples=tuple(
            Sample(
                batch_size=sample.batch_size,
                run_time_ms=sample.run_time_ms,
                spread_ms=sample.spread_ms,
                iterations=sample.iterations,
                peak_bytes=sample.peak_bytes,
            )
            for sample in sorted(samples, key=lambda sample: sample.batch_size)
        ),
        time=time,
        memory=memory,
        problems=(*time_problems, *memory_problems),
        accelerator=accelerator,
        micro_batches=micro_batches,
        out_of_memory=tuple(sorted(out_of_memory)),
    )


def predict(model: Model, batch_size: int, memory_bytes: int | None) -> Prediction | None:
    """What `batch_size` costs on a device with `memory_bytes` (None: not known).

    None where the model can't tell; `model.problems` then says why.
    """
    measured = next((sample for sample in model.samples if sample.batch_size == batch_size), None)
    if measured is not None:
        time = Estimate(
            value=measured.run_time_ms,
            low=max(measured.run_time_ms - measured.spread_ms, measured.run_time_ms / 2),
            high=measured.run_time_ms + measured.spread_ms,
        )
        peak: Estimate | None = Estimate(value=measured.peak_bytes, low=measured.peak_bytes, high=measured.peak_bytes)
    elif model.time is not None:
        time = model.time.predict(batch_size)
        peak = model.memory.predict(batch_size) if model.memory is not None else None
    else:
        return None
    samples = 1000.0 * batch_size * model.micro_batches
    return Prediction(
        batch_size=batch_size,
        run_time_ms=time,
        samples_per_second=Estimate(value=samples / time.value, low=samples / time.high, high=samples / time.low),
        peak_bytes=peak,
        fits=_fits(model, batch_size, peak, memory_bytes),
        measured=measured is not None,
    )


def _fits(model: Model, batch_size: int, peak: Estimate | None, memory_bytes: int | None) -> bool | None:
    if model.out_of_memory and batch_size >= model.out_of_memory[0]:
        return False
    if peak is None or memory_bytes is None:
        return None
    if peak.high <= memory_bytes:
        return True
    return False if peak.low > memory_bytes else None
