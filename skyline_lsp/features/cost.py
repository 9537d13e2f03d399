"""A line's cost as it is shown: measured, or scaled to the batch size of a preview."""

from dataclasses import dataclass

from skyline_lsp.features.snapshot import Preview, Snapshot
from skyline_lsp.protocol import LineCost, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How measured numbers become those of a preview. Activations grow with the batch; weights do not."""

    time: float = 1.0
    activations: float = 1.0
    run_time_ms: float
    """Of the iteration, as shown."""
    peak_bytes: float
    """As shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCost:
    """One line's cost. Inclusive counts what the line calls."""

    self_forward_ms: float
    self_backward_ms: float
    forward_ms: float
    """Inclusive."""
    backward_ms: float
    """Inclusive."""
    self_activation_bytes: float
    activation_bytes: float
    """Inclusive."""
    time_percent: float
    """Inclusive time as a share of the iteration."""
    self_percent: float
    """Self time as a share of the iteration."""
    memory_percent: float
    """Inclusive activations as a share of the peak."""
    invocations: int
    label: str | None


def scale_for(profile: Profile, preview: Preview | None) -> Scale:
    """The scale that `preview` asks for; that of the measurement itself without one."""
    measured = profile.iteration
    if preview is None:
        return Scale(run_time_ms=measured.run_time_ms, peak_bytes=measured.peak_bytes)
    run_time_ms = preview.prediction.run_time_ms.value
    peak = preview.prediction.peak_bytes
    activations = preview.batch_size / profile.batch_size if profile.batch_size else 1.0
    grown = profile.memory.activations_bytes * (activations - 1)
    return Scale(
        time=run_time_ms / measured.run_time_ms if measured.run_time_ms > 0 else 1.0,
        activations=activations,
        run_time_ms=run_time_ms,
        peak_bytes=peak.value if peak is not None else measured.peak_bytes + grown,
    )


def shown_cost(cost: LineCost, scale: Scale) -> ShownCost:
    """What to show of a line."""
    forward_ms = cost.forward_ms * scale.time
    backward_ms = cost.backward_ms * scale.time
    self_forward_ms = cost.self_forward_ms * scale.time
    self_backward_ms = cost.self_backward_ms * scale.time
    activation_bytes = cost.activation_bytes * scale.activations
    return ShownCost(
        self_forward_ms=self_forward_ms,
        self_backward_ms=self_backward_ms,
        forward_ms=forward_ms,
        backward_ms=backward_ms,
        self_activation_bytes=cost.self_activation_bytes * scale.activations,
        activation_bytes=activation_bytes,
        time_percent=percent(forward_ms + backward_ms, scale.run_time_ms),
        self_percent=percent(self_forward_ms + self_backward_ms, scale.run_time_ms),
        memory_percent=percent(activation_bytes, scale.peak_bytes),
        invocations=cost.invocations,
        label=cost.label,
    )


def percent(part: float, whole: float) -> float:
    """`part` as a share of `whole`; 0 where there is no whole."""
    return 100 * part / whole if whole > 0 else 0.0


def mark(snapshot: Snapshot) -> str:
    """What stands before numbers that are not this source's, measured: "~" outdated, "pred " predicted."""
    return ("~" if snapshot.outdated else "") + ("pred " if snapshot.preview is not None else "")
