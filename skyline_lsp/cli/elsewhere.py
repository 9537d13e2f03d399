"""`skyline-lsp predict FILE --batch-size N --device NAME`: will it fit on a device that isn't here, and how fast is it?

Memory is found by running the program with tensors that have shapes and no data; where that can't be done, from real
runs of two batch sizes here. Time is scaled by the roofline, and marked as the estimate that it is.
"""

import argparse
import json
from typing import Any

from rich.text import Text

from skyline_lsp.cli.failures import DONE, FAILED, CommandError
from skyline_lsp.cli.predict import interval, measure
from skyline_lsp.cli.project import Program
from skyline_lsp.cli.worker import ProgramFailed, Runner, spec_for, with_worker
from skyline_lsp.features import Table, why_by_running
from skyline_lsp.features.units import format_bytes, format_ms, format_range
from skyline_lsp.prediction import (
    DeviceSpec,
    FoundPeak,
    PeakThere,
    Refusal,
    ScaledTime,
    exact_peak,
    parse_device,
    peak_there,
    predict,
    time_there,
)
from skyline_lsp.protocol import Goal, Profile
from skyline_lsp.terminal import print_lines, printable, standard_consoles


def run(program: Program, arguments: argparse.Namespace) -> int:
    """Estimate each batch size; code 1 where one can't be."""
    device = parse_device(arguments.device)
    if isinstance(device, Refusal):
        raise CommandError(device.reason)
    notes: list[str] = []

    async def work(runner: Runner) -> tuple[list[PeakThere], Profile | None]:
        peaks: list[PeakThere] = []
        for size in arguments.batch_size:
            try:
                result = await runner.run(spec_for(program, Goal.ESTIMATE, size), label=f"batch size {size}")
            except ProgramFailed as failed:
                notes.append(why_by_running(failed.failure, lambda path, line: f"{program.project.shown(path)}:{line}"))
                return peaks, None
            if result.estimate is not None:
                peaks.append(peak_there(exact_peak(size, float(result.estimate.peak_bytes)), device))
        profile = None
        if device.bytes_per_second is not None:
            spec = spec_for(program, Goal.PROFILE)
            profile = (await runner.run(spec, label="timing here")).profile
        return peaks, profile

    peaks, profile = with_worker(program, work, verbose=arguments.verbose)
    if len(peaks) < len(arguments.batch_size):
        peaks, profile = _by_running(program, arguments, device, notes)
    knows_rates = device.bytes_per_second is not None
    time = time_there(profile, device) if profile is not None and knows_rates else None
    if isinstance(time, Refusal):
        notes.append(time.reason)
    elif time is not None and profile is not None:
        notes += time.caveats
    if arguments.json:
        print(json.dumps(_json(device, peaks, profile, time, notes), indent=2))
    else:
        _print(device, peaks, profile, time, notes)
    return DONE if len(peaks) == len(arguments.batch_size) else FAILED


def _by_running(
    program: Program, arguments: argparse.Namespace, device: DeviceSpec, notes: list[str]
) -> tuple[list[PeakThere], Profile]:
    measured = measure(program, arguments.batch_size, verbose=arguments.verbose)
    notes += measured.problems
    found = []
    for size in arguments.batch_size:
        prediction = predict(measured.model, size, None)
        if prediction is not None and prediction.peak_bytes is not None:
            peak = FoundPeak(batch_size=size, peak_bytes=prediction.peak_bytes, allocated=True)
            found.append(peak_there(peak, device))
    return found, measured.profile


def _json(
    device: DeviceSpec,
    peaks: list[PeakThere],
    profile: Profile | None,
    time: ScaledTime | Refusal | None,
    notes: list[str],
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "device": {"name": device.name, "memory_bytes": device.memory_bytes, "source": device.source},
        "predictions": [
            {
                "batch_size": peak.batch_size,
                **interval("peak_bytes", peak.peak_bytes),
                "fits": peak.fits,
                "allocated": peak.allocated,
            }
            for peak in peaks
        ],
        "time": None,
        "notes": notes,
    }
    if isinstance(time, ScaledTime) and profile is not None:
        answer["time"] = {"batch_size": profile.batch_size, **interval("run_time_ms", time.run_time_ms)}
    return answer


def _print(
    device: DeviceSpec,
    peaks: list[PeakThere],
    profile: Profile | None,
    time: ScaledTime | Refusal | None,
    notes: list[str],
) -> None:
    console, _ = standard_consoles()
    rows = tuple(
        (
            str(peak.batch_size),
            format_bytes(peak.peak_bytes.value),
            format_range(peak.peak_bytes.low, peak.peak_bytes.high, format_bytes),
            {True: "yes", False: "no", None: "barely, or not"}[peak.fits],
            "real runs here" if peak.allocated else "without allocating",
        )
        for peak in peaks
    )
    table = Table(header=("batch size", "peak", "with allowance", f"fits {device.name}", "found by"), rows=rows)
    print_lines(console, [Text(line) for line in table.plain().split("\n")])
    lines = []
    if device.bytes_per_second is not None:
        lines.append(f"{device.name} has {format_bytes(device.memory_bytes)} ({device.source}).")
    if isinstance(time, ScaledTime) and profile is not None:
        estimate = time.run_time_ms
        between = format_range(estimate.low, estimate.high, format_ms)
        lines.append(
            f"An iteration of batch size {profile.batch_size} is estimated to take {format_ms(estimate.value)} there "
            f"({between}; assumed, not measured), here it takes {format_ms(profile.iteration.run_time_ms)}."
        )
    print_lines(console, [Text(), *(Text(line, style="dim") for line in lines)])
    print_lines(console, [Text(f"note: {printable(note)}", style="yellow") for note in dict.fromkeys(notes)])
