"""Batch sizes worth offering, and what is known or predicted of each; shared by lens, hover and actions."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skyline_lsp.features.cost import percent
from skyline_lsp.features.snapshot import Snapshot
from skyline_lsp.features.table import Cell, Table
from skyline_lsp.features.units import (
    format_bytes,
    format_change,
    format_ms,
    format_percent,
    format_range,
    format_rate,
    format_throughput,
)
from skyline_lsp.prediction import Estimate, Model, Prediction, Retune, knee, largest_that_fits, predict
from skyline_lsp.source import Edit, EditRefused, Site, set_batch_size

_MOST = 7
_FULL = 0.7
"""Share of memory from which on a batch size is limited by it: what `largest_that_fits` leaves free, and a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A batch size that the user may want."""

    batch_size: int
    note: str
    """Why it is offered, such as "the largest that fits"; empty for a mere neighbour."""
    usefulness: int
    """0 is the most useful."""
    prediction: Prediction | None
    """None where nothing is known of it."""


def choices(snapshot: Snapshot, site: Site) -> tuple[Choice, ...]:
    """Other batch sizes that `site` can be set to, by size: what retuning suggests, then neighbours."""
    current = site.batch_size
    found: dict[int, Choice] = {}
    for batch_size, note in _candidates(snapshot, current):
        if len(found) == _MOST or batch_size in found or batch_size == current or edit_to(site, batch_size) is None:
            continue
        prediction = predicted(snapshot, batch_size) if site == snapshot.site else None
        found[batch_size] = Choice(batch_size=batch_size, note=note, usefulness=len(found), prediction=prediction)
    return tuple(sorted(found.values(), key=lambda choice: choice.batch_size))


def edit_to(site: Site, batch_size: int) -> Edit | None:
    """The edit that makes `site` give `batch_size`; None where there is none."""
    if not site.editable or batch_size < 1 or (site.maximum is not None and batch_size > site.maximum):
        return None
    try:
        return set_batch_size(site, batch_size)
    except EditRefused:
        return None


def size_to_measure(snapshot: Snapshot, site: Site) -> int | None:
    """A batch size to ask a prediction of, so that a model comes of it; None where there is a model already."""
    if snapshot.model is not None and snapshot.model.time is not None and not snapshot.outdated:
        return None
    current = site.batch_size
    return next((size for size in (2 * current, current // 2) if edit_to(site, size) is not None), None)


def literal_at(snapshot: Snapshot, line: int, column: int) -> Site | None:
    """The site whose literal is at a position (column from 0); its end counts as well."""
    for site in snapshot.sites:
        if site.path == snapshot.path and site.line == line:
            start = site.column - 1
            if start <= column <= start + len(site.text):
                return site
    return None


def predicted(snapshot: Snapshot, batch_size: int) -> Prediction | None:
    """What the model says of a batch size; None without a model."""
    if snapshot.model is None:
        return None
    return predict(snapshot.model, batch_size, _capacity(snapshot))


def effect(snapshot: Snapshot, choice: Choice) -> str:
    """What a choice would do: "410 samples/s (+12 %), peak 2.1 GiB (9 %), fits"; empty where nothing is known."""
    prediction = choice.prediction
    if prediction is None:
        return choice.note
    parts = [format_throughput(prediction.samples_per_second.value)]
    before = _present_throughput(snapshot)
    if before:
        parts[0] += f" ({format_change(before, prediction.samples_per_second.value)})"
    if prediction.peak_bytes is not None:
        capacity = _capacity(snapshot)
        share = f" ({format_percent(percent(prediction.peak_bytes.value, capacity))})" if capacity else ""
        parts.append(f"peak {format_bytes(prediction.peak_bytes.value)}{share}")
    if prediction.fits is False:
        parts.append("does not fit")
    if choice.note:
        parts.append(choice.note)
    return ", ".join(parts)


def batch_size_table(snapshot: Snapshot) -> Table:
    """The present batch size and the choices beside it, with 90 % intervals; without rows where nothing is known."""
    header = ("batch size", "time", "samples/s", "peak memory", "fits", "")
    rows: list[tuple[str | Cell, ...]] = []
    site = snapshot.site
    current = snapshot.batch_size
    present = _measured_row(snapshot)
    if present is None and current is not None:
        prediction = predicted(snapshot, current)
        present = _row(snapshot, current, prediction, "now") if prediction is not None else None
    by_size = {choice.batch_size: choice for choice in choices(snapshot, site)} if site is not None else {}
    for size in sorted({*by_size, *([current] if current is not None else [])}):
        if size == current:
            if present is not None:
                rows.append(present)
            continue
        prediction = by_size[size].prediction
        if prediction is not None:
            rows.append(_row(snapshot, size, prediction, by_size[size].note))
    return Table(header=header, rows=tuple(rows))


def model_remarks(snapshot: Snapshot) -> tuple[str, ...]:
    """Where the predictions come from and what is wrong with them, or how to get some."""
    model = snapshot.model
    if model is None:
        if snapshot.profile is None:
            return ('Nothing is measured yet: choose the code action "Profile this training step".',)
        return ('For the effect of other batch sizes choose the code action "Predict other batch sizes".',)
    if model.time is None:
        return model.problems
    sizes = sorted({sample.batch_size for sample in model.samples})
    sources = f"Fitted to batch sizes {', '.join(map(str, sizes))}; in brackets, 90 % intervals."
    return (sources, *model.problems)


def _candidates(snapshot: Snapshot, current: int) -> Iterator[tuple[int, str]]:
    """Sizes with a note, the most useful first; they may repeat or be out of reach."""
    model = snapshot.model
    if model is not None:
        yield from _retuned(model, _capacity(snapshot))
    yield 2 * current, ""
    if current % 2 == 0:
        yield current // 2, ""
    power = 1 << max(current, 1).bit_length()
    for size in (4 * current, power, power // 2, 2 * power, power // 4, 4 * power, power // 8):
        yield size, ""


@functools.lru_cache(maxsize=16)
def _retuned(model: Model, capacity: int | None) -> tuple[tuple[int, str], ...]:
    """What retuning suggests. Kept, since it tries many sizes and one model is asked at every keystroke."""
    found = []
    best = knee(model, capacity)
    if isinstance(best, Retune):
        found.append((best.batch_size, "95 % of the best throughput"))
    if capacity is not None:
        largest = largest_that_fits(model, capacity)
        peak = largest.prediction.peak_bytes if isinstance(largest, Retune) else None
        # With much memory left it is the measurements that end there, not the memory.
        if isinstance(largest, Retune) and peak is not None and peak.high > _FULL * capacity:
            found.insert(0, (largest.batch_size, "the largest that fits"))
    return tuple(found)


def _measured_row(snapshot: Snapshot) -> tuple[str | Cell, ...] | None:
    profile = snapshot.profile
    if profile is None or profile.batch_size is None or profile.batch_size != snapshot.batch_size:
        return None
    capacity = profile.device.memory_bytes
    return (
        str(profile.batch_size),
        format_ms(profile.iteration.run_time_ms),
        format_rate(profile.iteration.samples_per_second),
        format_bytes(profile.iteration.peak_bytes),
        "" if capacity is None else "yes",
        "now, measured before the last changes" if snapshot.outdated else "now, measured",
    )


def _row(snapshot: Snapshot, batch_size: int, prediction: Prediction, note: str) -> tuple[str | Cell, ...]:
    unknown = "maybe" if prediction.peak_bytes is not None and _capacity(snapshot) is not None else ""
    fits = {True: "yes", False: "no", None: unknown}[prediction.fits]
    return (
        str(batch_size),
        _with_interval(prediction.run_time_ms, format_ms),
        _with_interval(prediction.samples_per_second, format_rate),
        _with_interval(prediction.peak_bytes, format_bytes) if prediction.peak_bytes is not None else "",
        fits,
        ", ".join(part for part in (note, "measured" if prediction.measured else "") if part),
    )


def _with_interval(estimate: Estimate, shown_as: Callable[[float], str]) -> str:
    value = shown_as(estimate.value)
    interval = format_range(estimate.low, estimate.high, shown_as)
    return value if interval == value else f"{value} ({interval})"


def _present_throughput(snapshot: Snapshot) -> float | None:
    """Samples per second at the batch size that the source has now."""
    profile = snapshot.profile
    if profile is not None and profile.batch_size is not None and profile.batch_size == snapshot.batch_size:
        return profile.iteration.samples_per_second or None
    if snapshot.batch_size is None:
        return None
    prediction = predicted(snapshot, snapshot.batch_size)
    return prediction.samples_per_second.value if prediction is not None else None


def _capacity(snapshot: Snapshot) -> int | None:
    return snapshot.profile.device.memory_bytes if snapshot.profile is not None else None
