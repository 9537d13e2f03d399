"""What is known of a program at every batch size, what it predicts, and how right a prediction was.

Depends on the models of time and memory, and on the protocol's `Sample`.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skyline_lsp.prediction.estimate import Estimate, student_quantile, within_factor
from skyline_lsp.prediction.peak_memory import (
    Calibration,
    PeakLaw,
    PeakMemoryModel,
    fit_peak_memory,
    refit_peak_memory,
)
from skyline_lsp.prediction.run_time import PRIOR_DEGREES, RunTimeModel, fit_run_time, noise_of
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
    """What it is fitted to, by batch size, without their live bytes."""
    time: RunTimeModel | None
    """None where time can't be predicted beyond the sizes measured; `problems` says why."""
    memory: PeakMemoryModel | None
    """None where peaks can't be predicted beyond the sizes measured."""
    problems: tuple[str, ...]
    """What is wrong or uncertain, each a sentence for the user. Never empty where `predict` can't tell."""
    accelerator: bool = False
    """Whether the work is done by a device other than the host's processors: batch sizes then come in eights."""
    micro_batches: int = 1
    """Batches of one iteration."""
    out_of_memory: tuple[int, ...] = ()
    """Batch sizes that ran out of memory, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How right a prediction was."""

    run_time_error: float
    """Predicted over measured, less 1."""
    run_time_within: bool
    """Whether the measured time is in the interval."""
    peak_error: float | None
    """Predicted over measured, less 1; None where no peak was predicted."""
    peak_within: bool | None


def fit(
    samples: Sequence[Sample],
    *,
    accelerator: bool = False,
    micro_batches: int = 1,
    out_of_memory: Sequence[int] = (),
    calibration: Calibration | None = None,
    law: PeakLaw | None = None,
    check: bool = True,
) -> Model:
    """Fit time and memory to samples, of which there may be none, and several of one size.

    `calibration` and `law` as in `fit_peak_memory`. Without `check`, no size is predicted from the others, which saves
    most of the time.
    """
    time, time_problems = fit_run_time(samples, check)
    memory, memory_problems = fit_peak_memory(samples, calibration, law)
    ordered = sorted(samples, key=lambda sample: sample.batch_size)
    return Model(
        samples=tuple(replace(sample, live_bytes=()) for sample in ordered),
        time=time,
        memory=memory,
        problems=(*time_problems, *memory_problems),
        accelerator=accelerator,
        micro_batches=micro_batches,
        out_of_memory=tuple(sorted(set(out_of_memory))),
    )


def learn(model: Model, sample: Sample) -> Model:
    """The model with one more sample: time is fitted anew, the law of the peak is held against it."""
    samples = tuple(sorted((*model.samples, replace(sample, live_bytes=())), key=lambda one: one.batch_size))
    time, time_problems = fit_run_time(samples)
    if model.memory is not None:
        memory, memory_problems = refit_peak_memory(model.memory, samples)
    else:
        memory, memory_problems = fit_peak_memory(samples)
    return replace(model, samples=samples, time=time, memory=memory, problems=(*time_problems, *memory_problems))


def predict(model: Model, batch_size: int, memory_bytes: int | None) -> Prediction | None:
    """What `batch_size` costs on a device with `memory_bytes` (None: not known).

    None where the model can't tell; `model.problems` then says why. Raises `ValueError` for a size below 1.
    """
    if batch_size < 1:
        raise ValueError(f"a batch size is at least 1, not {batch_size}")
    time = measured_time(model, batch_size)
    measured = time is not None
    if time is None:
        if model.time is None or not model.time.supports(batch_size):
            return None
        time = model.time.predict(batch_size)
    peak = predicted_peak(model, batch_size)
    samples = 1000.0 * batch_size * model.micro_batches
    return Prediction(
        batch_size=batch_size,
        run_time_ms=time,
        samples_per_second=Estimate(value=samples / time.value, low=samples / time.high, high=samples / time.low),
        peak_bytes=peak,
        fits=fits(model, batch_size, peak, memory_bytes),
        measured=measured,
    )


def measured_time(model: Model, batch_size: int) -> Estimate | None:
    """Time in ms as measured at a batch size, with what is known of its error.

    None where it was not measured, or the measurement is an accident.
    """
    own = [index for index, sample in enumerate(model.samples) if sample.batch_size == batch_size]
    own = [index for index in own if model.samples[index].run_time_ms > 0]
    if not own or (model.time is not None and batch_size in model.time.accidents):
        return None
    value = statistics.median(model.samples[index].run_time_ms for index in own)
    noise = noise_of(model.samples)
    relative = max(float(noise[index]) for index in own)
    if model.time is not None:
        # Residuals may show more noise than the samples' own spreads do.
        relative = max(relative, model.time.components[0].noise)
    width = student_quantile(0.95, PRIOR_DEGREES + len(model.samples) - 1) * relative / len(own) ** 0.5
    return within_factor(value, width)


def predicted_peak(model: Model, batch_size: int) -> Estimate | None:
    """Peak in bytes, as measured where it was; None where nothing is known."""
    own = [sample.peak_bytes for sample in model.samples if sample.batch_size == batch_size and sample.peak_bytes > 0]
    if own:
        return Estimate(value=float(max(own)), low=float(min(own)), high=float(max(own)))
    return model.memory.predict(batch_size) if model.memory is not None else None


def fits(model: Model, batch_size: int, peak: Estimate | None, memory_bytes: int | None) -> bool | None:
    """Whether a peak fits; None where that is not certain. A size that ran out of memory does not, nor a larger one."""
    if model.out_of_memory and batch_size >= model.out_of_memory[0]:
        return False
    if peak is None or memory_bytes is None:
        return None
    if peak.high <= memory_bytes:
        return True
    return False if peak.low > memory_bytes else None


def hold_against(prediction: Prediction, sample: Sample) -> Outcome:
    """Compare a prediction with what was measured afterwards at its batch size."""
    time, peak = prediction.run_time_ms, prediction.peak_bytes
    return Outcome(
        run_time_error=time.value / sample.run_time_ms - 1,
        run_time_within=time.low <= sample.run_time_ms <= time.high,
        peak_error=peak.value / sample.peak_bytes - 1 if peak is not None and sample.peak_bytes else None,
        peak_within=peak.low <= sample.peak_bytes <= peak.high if peak is not None and sample.peak_bytes else None,
    )
