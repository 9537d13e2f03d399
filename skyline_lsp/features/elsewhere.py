"""The program on devices that aren't here: a sentence for hover, lens and message, and a table for the batch size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skyline_lsp.features.snapshot import Snapshot
from skyline_lsp.features.table import Cell, Table
from skyline_lsp.features.units import format_bytes, format_ms, format_range
from skyline_lsp.prediction import (
    DeviceSpec,
    FoundPeak,
    PeakThere,
    Refusal,
    ScaledTime,
    peak_there,
    time_there,
)
from skyline_lsp.protocol import Failure, Profile

_MAKERS = ("NVIDIA ", "AMD ")
_FITS = {True: "fits", False: "does not fit", None: "may not fit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A batch size on a device."""

    device: DeviceSpec
    peak: PeakThere
    time: ScaledTime | None
    """Of an iteration of `timed_batch_size`; None where it can't be told."""
    timed_batch_size: int | None
    remarks: tuple[str, ...]
    """What is not known, and what was assumed, each a sentence."""


def on_device(found: FoundPeak, device: DeviceSpec, profile: Profile | None) -> Elsewhere:
    """What was found here, on a device; the time from a profile made here, where there is one."""
    remarks: list[str] = []
    time: ScaledTime | None = None
    if device.bytes_per_second is None:
        remarks.append(f"Of {device.name} the memory alone is known, so the time can't be estimated.")
    elif profile is None:
        remarks.append("For an estimate of the time, profile the training step here.")
    else:
        scaled = time_there(profile, device)
        if isinstance(scaled, Refusal):
            remarks.append(scaled.reason)
        else:
            time = scaled
            remarks += scaled.caveats
    return Elsewhere(
        device=device,
        peak=peak_there(found, device),
        time=time,
        timed_batch_size=profile.batch_size if profile is not None and time is not None else None,
        remarks=tuple(remarks),
    )


def why_by_running(failure: Failure | None, place: Callable[[str, int], str]) -> str:
    """Why real runs were made to find a peak; `place` is how a user is told of a path and a line."""
    if failure is None:
        return "Without data it can't be told which batch size the model is fed. Real runs were made instead."
    where = f"{place(failure.frames[-1].path, failure.frames[-1].line)}: " if failure.frames else ""
    return f"{where}{failure.message} Real runs were made instead."


def short_name(device: DeviceSpec) -> str:
    """Its name without its maker's."""
    for maker in _MAKERS:
        if device.name.startswith(maker):
            return device.name.removeprefix(maker)
    return device.name


def device_sentence(there: Elsewhere) -> str:
    """ "A100 SXM 40GB: peak 3.1 GiB (to 3.9 GiB with allowance) of 40 GiB, fits; about 12 ms an iteration, ..."."""
    peak = there.peak.peak_bytes
    text = (
        f"{short_name(there.device)}: peak {format_bytes(peak.value)} (to {format_bytes(peak.high)} with allowance) of "
        f"{format_bytes(there.device.memory_bytes)}, {_FITS[there.peak.fits]}"
    )
    if there.time is None:
        return text
    time = there.time.run_time_ms
    batch = "" if there.timed_batch_size == there.peak.batch_size else f" of batch size {there.timed_batch_size}"
    between = format_range(time.low, time.high, format_ms)
    return f"{text}; about {format_ms(time.value)} an iteration{batch}, estimate {between}"


def lens_title(there: Elsewhere) -> str:
    """The same in short."""
    capacity = format_bytes(there.device.memory_bytes)
    peak = format_bytes(there.peak.peak_bytes.value)
    return f"{short_name(there.device)}: peak {peak} of {capacity}, {_FITS[there.peak.fits]}"


def shown_batch_size(snapshot: Snapshot) -> int | None:
    """The batch size that other devices are asked about: the previewed one, else the source's."""
    return snapshot.preview.batch_size if snapshot.preview is not None else snapshot.batch_size


def elsewhere(snapshot: Snapshot, batch_size: int | None) -> tuple[Elsewhere, ...]:
    """What is known of a batch size on each of the snapshot's devices."""
    return tuple(
        on_device(found, device, snapshot.profile)
        for found in snapshot.peaks_found
        if found.batch_size == batch_size
        for device in snapshot.devices
    )


def elsewhere_table(snapshot: Snapshot) -> Table:
    """Every batch size whose peak was found, on each device; without rows where nothing was found."""
    rows: list[tuple[str | Cell, ...]] = []
    for found in sorted(snapshot.peaks_found, key=lambda found: found.batch_size):
        for there in elsewhere(snapshot, found.batch_size):
            peak = there.peak.peak_bytes
            time = there.time if there.timed_batch_size == found.batch_size else None
            rows.append(
                (
                    short_name(there.device),
                    str(found.batch_size),
                    format_bytes(peak.value),
                    format_range(peak.low, peak.high, format_bytes),
                    format_bytes(there.device.memory_bytes),
                    {True: "yes", False: "no", None: "maybe"}[there.peak.fits],
                    format_range(time.run_time_ms.low, time.run_time_ms.high, format_ms) if time is not None else "",
                    "real runs" if found.allocated else "without allocating",
                )
            )
    header = ("device", "batch size", "peak", "with allowance", "has", "fits", "time, estimated", "found by")
    return Table(header=header, rows=tuple(rows))


def elsewhere_remarks(snapshot: Snapshot) -> Iterator[str]:
    """What limits the trust in the above, each once."""
    if not snapshot.peaks_found or not snapshot.devices:
        return
    if snapshot.estimate_note is not None and any(found.allocated for found in snapshot.peaks_found):
        yield snapshot.estimate_note
    known = [there for found in snapshot.peaks_found for there in elsewhere(snapshot, found.batch_size)]
    yield from dict.fromkeys(remark for there in known for remark in there.remarks)
