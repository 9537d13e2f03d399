"""The state as the JSON messages that the page reads: pure functions, columns instead of rows where there are many.

Numbers that JSON has no form for become null. `clients/panel/src/messages.ts` is the same on the page's side.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skyline_lsp.panel.state import PanelState
from skyline_lsp.prediction import Estimate, Model, Prediction, Refusal, Retune, knee, largest_that_fits, predict
from skyline_lsp.protocol import Profile

REACH = 4
"""How many times the largest measured batch size can be pulled to: beyond, the fit is a guess."""
DENSITY = 128
"""Batch sizes predicted in advance between one and its double; below it, every one."""

Message = dict[str, Any]


def encode(message: Message) -> str:
    """A message as JSON text."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def state_message(state: PanelState) -> Message:
    """What is small and changes often."""
    remarks = state.profile.remarks if state.profile is not None else ()
    advice = [(item.code, item.message, item.path, item.line) for item in state.advice]
    advice += [(remark.kind.value, remark.message, remark.path, remark.line) for remark in remarks]
    return {
        "type": "state",
        "project": state.project,
        "workload": state.workload,
        "state": state.state.value,
        "progress": state.progress,
        "fraction": _number(state.fraction),
        "failure": None
        if state.failure is None
        else {"message": state.failure.message, "path": state.failure.path, "line": state.failure.line},
        "outdated": state.outdated,
        "batchSize": state.batch_size,
        "sites": [
            {
                "path": site.path,
                "line": site.line,
                "name": site.name,
                "value": site.value,
                "editable": site.editable,
                "reason": site.reason,
            }
            for site in state.sites
        ],
        "noSiteReason": state.no_site_reason,
        "history": [
            {
                "measuredAt": entry.measured_at,
                "batchSize": entry.batch_size,
                "runTimeMs": _number(entry.run_time_ms),
                "spreadMs": _number(entry.spread_ms),
                "samplesPerSecond": _number(entry.samples_per_second),
                "peakBytes": entry.peak_bytes,
                "device": entry.device_name,
                "predicted": None if entry.predicted is None else prediction_json(entry.predicted),
            }
            for entry in state.history
        ],
        "advice": [
            {"code": code, "message": message, "path": path, "line": line}
            for code, message, path, line in dict.fromkeys(advice)
        ],
    }


def profile_message(profile: Profile | None, texts: Mapping[str, Mapping[int, str]]) -> Message:
    """The profile: large, and the same until another is measured."""
    if profile is None:
        return {"type": "profile", "profile": None}
    iteration, memory = profile.iteration, profile.memory
    return {
        "type": "profile",
        "profile": {
            "device": {
                "kind": profile.device.kind,
                "name": profile.device.name,
                "memoryBytes": profile.device.memory_bytes,
            },
            "batchSize": profile.batch_size,
            "microBatches": profile.micro_batches,
            "iteration": {
                "runTimeMs": _number(iteration.run_time_ms),
                "spreadMs": _number(iteration.spread_ms),
                "iterations": iteration.iterations,
                "samplesPerSecond": _number(iteration.samples_per_second),
                "peakBytes": iteration.peak_bytes,
            },
            "untrackedMs": _number(profile.untracked_ms),
            "memory": {
                "weights": memory.weights_bytes,
                "gradients": memory.gradients_bytes,
                "optimizer": memory.optimizer_bytes,
                "activations": memory.activations_bytes,
                "other": memory.other_bytes,
            },
            "phases": [{"kind": phase.kind.value, "runTimeMs": _number(phase.run_time_ms)} for phase in profile.phases],
            "parameters": {
                "names": [parameter.name for parameter in profile.parameters],
                "weights": [parameter.weight_bytes for parameter in profile.parameters],
                "gradients": [parameter.gradient_bytes for parameter in profile.parameters],
            },
            "timeline": {
                "timesMs": [_number(event.time_ms) for event in profile.timeline],
                "bytes": [event.live_bytes for event in profile.timeline],
            },
            "tree": _tree(profile, texts),
            "warnings": list(profile.warnings),
        },
    }


def predictions_message(model: Model | None, batch_size: int | None, memory_bytes: int | None) -> Message:
    """What is predicted for every batch size that a bar can be pulled to; null where there is no model.

    Takes up to some 50 ms, so it belongs in a thread.
    """
    if model is None:
        return {"type": "predictions", "predictions": None}
    found = [predict(model, size, memory_bytes) for size in batch_sizes(model, batch_size)]
    known = [prediction for prediction in found if prediction is not None]
    return {
        "type": "predictions",
        "predictions": {
            "capacityBytes": memory_bytes,
            "batchSizes": [prediction.batch_size for prediction in known],
            "runTimeMs": _estimates(prediction.run_time_ms for prediction in known),
            "samplesPerSecond": _estimates(prediction.samples_per_second for prediction in known),
            "peakBytes": _estimates(prediction.peak_bytes for prediction in known),
            "fits": [prediction.fits for prediction in known],
            "measured": [prediction.measured for prediction in known],
            "fitted": _fitted(model, [prediction.batch_size for prediction in known]),
            "samples": {
                "batchSizes": [sample.batch_size for sample in model.samples],
                "runTimeMs": [_number(sample.run_time_ms) for sample in model.samples],
                "spreadMs": [_number(sample.spread_ms) for sample in model.samples],
                "samplesPerSecond": [
                    _number(1000.0 * sample.batch_size * model.micro_batches / sample.run_time_ms)
                    if sample.run_time_ms > 0
                    else None
                    for sample in model.samples
                ],
                "peakBytes": [sample.peak_bytes for sample in model.samples],
            },
            "outOfMemory": list(model.out_of_memory),
            "problems": list(model.problems),
            "suggestions": _suggestions(model, memory_bytes, known),
        },
    }


def prediction_json(prediction: Prediction) -> Message:
    """One prediction."""
    return {
        "batchSize": prediction.batch_size,
        "runTimeMs": _estimate(prediction.run_time_ms),
        "samplesPerSecond": _estimate(prediction.samples_per_second),
        "peakBytes": _estimate(prediction.peak_bytes),
        "fits": prediction.fits,
        "measured": prediction.measured,
    }


def highlight_message(path: str | None, line: int | None) -> Message:
    """The line where the editor's cursor is."""
    return {"type": "highlight", "path": path, "line": line}


def batch_sizes(model: Model, batch_size: int | None) -> tuple[int, ...]:
    """Batch sizes worth a prediction: every small one, then ever sparser, always round ones, samples, the current one.

    An accelerator's sizes above 8 come in multiples of 8.
    """
    sampled = [sample.batch_size for sample in model.samples]
    largest = REACH * max([*sampled, batch_size or 1])
    step = 8 if model.accelerator else 1
    sizes = {size for size in (*sampled, *model.out_of_memory, batch_size or 1) if 0 < size <= largest}
    size = 1
    while size <= largest:
        sizes.add(size)
        jump = max(1, size // DENSITY)
        size += jump if size < step else math.ceil(jump / step) * step
    sizes.update(power for exponent in range(largest.bit_length()) if (power := 2**exponent) <= largest)
    return tuple(sorted(sizes))


def known_places(state: PanelState) -> frozenset[str]:
    """Paths that the page may ask to be shown: those that it was told of."""
    paths = {site.path for site in state.sites}
    paths.update(item.path for item in state.advice if item.path is not None)
    if state.failure is not None and state.failure.path is not None:
        paths.add(state.failure.path)
    if state.profile is not None:
        paths.update(node.path for node in state.profile.tree)
        paths.update(remark.path for remark in state.profile.remarks)
    return frozenset(paths)


def _tree(profile: Profile, texts: Mapping[str, Mapping[int, str]]) -> Message:
    tree = profile.tree
    names = _Names()
    places = [texts.get(node.path, {}).get(node.line) for node in tree]
    return {
        "parent": [node.parent for node in tree],
        "path": [names.index(node.path) for node in tree],
        "line": [node.line for node in tree],
        "function": [names.index(node.function) for node in tree],
        "module": [names.index(node.module) for node in tree],
        "label": [names.index(node.label) for node in tree],
        "text": [names.index(text) for text in places],
        "forwardMs": [_number(node.self_forward_ms) for node in tree],
        "backwardMs": [_number(node.self_backward_ms) for node in tree],
        "recomputeMs": [_number(node.recompute_ms) for node in tree],
        "activationBytes": [node.self_activation_bytes for node in tree],
        "peakBytes": [node.peak_bytes for node in tree],
        "invocations": [node.invocations for node in tree],
        "flop": [node.self_flop for node in tree],
        "names": names.all,
    }


def _fitted(model: Model, sizes: Sequence[int]) -> Message:
    """The fitted laws alone, which `predict` replaces by the measurement where there is one: curves to draw."""
    times = [None if model.time is None else model.time.predict(size) for size in sizes]
    peaks = [None if model.memory is None else model.memory.predict(size) for size in sizes]
    rates = [
        None
        if time is None
        else Estimate(
            value=1000.0 * size * model.micro_batches / time.value,
            low=1000.0 * size * model.micro_batches / time.high,
            high=1000.0 * size * model.micro_batches / time.low,
        )
        for size, time in zip(sizes, times, strict=True)
    ]
    return {"samplesPerSecond": _estimates(rates), "peakBytes": _estimates(peaks)}


def _suggestions(model: Model, memory_bytes: int | None, known: Sequence[Prediction]) -> list[Message]:
    """Batch sizes that one would look for, each with the wish that it fulfils."""
    wishes: list[tuple[str, Retune | Refusal]] = [("95 % of the best throughput", knee(model, memory_bytes))]
    # The largest that fits says something only where a larger one was looked at.
    if memory_bytes is not None and any(prediction.fits is not True for prediction in known):
        wishes.append(("largest that fits", largest_that_fits(model, memory_bytes)))
    return [
        {"name": name, "batchSize": retune.batch_size, "reason": retune.reason}
        for name, retune in wishes
        if isinstance(retune, Retune)
    ]


class _Names:
    """Texts, each once; -1 stands for none."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._index: dict[str, int] = {}

    def index(self, name: str | None) -> int:
        if name is None:
            return -1
        found = self._index.setdefault(name, len(self.all))
        if found == len(self.all):
            self.all.append(name)
        return found


def _estimates(estimates: Iterable[Estimate | None]) -> dict[str, Sequence[float | None]]:
    rows = list(estimates)

    def column(of: Callable[[Estimate], float]) -> Sequence[float | None]:
        return [None if row is None else _number(of(row)) for row in rows]

    return {"value": column(lambda e: e.value), "low": column(lambda e: e.low), "high": column(lambda e: e.high)}


def _estimate(estimate: Estimate | None) -> Message | None:
    if estimate is None:
        return None
    return {"value": _number(estimate.value), "low": _number(estimate.low), "high": _number(estimate.high)}


def _number(value: float | None) -> float | None:
    """Seven significant digits: more is noise, and half of the message."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.7g}")
