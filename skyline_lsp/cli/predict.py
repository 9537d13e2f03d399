"""`skyline-lsp predict FILE --batch-size N[,N...]`: what other batch sizes cost, from measuring a few."""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from skyline_lsp.cli.failures import DONE, FAILED, CommandError
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.cli.worker import ProgramFailed, Runner, batch_size_site, spec_for, with_worker
from skyline_lsp.features import Table
from skyline_lsp.features.units import format_bytes, format_ms, format_range, format_rate
from skyline_lsp.prediction import Estimate, Known, Model, Prediction, Spent, fit, next_batch_size_for, predict
from skyline_lsp.protocol import EntryKind, Goal, Profile, RunSpec, Sample
from skyline_lsp.server.sampler import shown
from skyline_lsp.source import Site
from skyline_lsp.terminal import print_lines, printable, standard_consoles


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured to predict from."""

    profile: Profile
    """At the batch size that the source has."""
    samples: tuple[Sample, ...]
    model: Model
    problems: tuple[str, ...]
    """What limits the trust in predictions, each a sentence."""


def run(arguments: argparse.Namespace) -> int:
    """Measure, fit, predict; code 1 where a prediction can't be made."""
    program = open_program(arguments)
    if program.entry.kind is not EntryKind.PROVIDER:
        batch_size_site(program)
    if arguments.device is not None:
        from skyline_lsp.cli import elsewhere

        return elsewhere.run(program, arguments)
    wanted: tuple[int, ...] = arguments.batch_size
    measured = measure(program, wanted, verbose=arguments.verbose)
    memory_bytes = measured.profile.device.memory_bytes
    predictions = [
        prediction for size in wanted if (prediction := predict(measured.model, size, memory_bytes)) is not None
    ]
    if arguments.json:
        print(json.dumps(_json(measured, predictions), indent=2))
    else:
        _print(measured, predictions)
    return DONE if len(predictions) == len(wanted) else FAILED


def measure(program: Program, wanted: Sequence[int], *, verbose: bool) -> Measured:
    """Profile the program, and measure other batch sizes until the wanted ones can be told. Raises `CommandError`."""
    return with_worker(program, lambda runner: _measure(runner, program, wanted), verbose=verbose)


async def _measure(runner: Runner, program: Program, wanted: Sequence[int]) -> Measured:
    """Measure the batch size in force, and others until the wanted ones can be told or time is up."""
    began = time.monotonic()
    result = await runner.run(_recording(spec_for(program, Goal.PROFILE)))
    profile = result.profile
    if profile is None or result.sample is None or profile.batch_size is None:
        raise CommandError("The batch size that the program runs with can't be told, so no other can be predicted.")
    site = batch_size_site(program) if program.entry.kind is not EntryKind.PROVIDER else None
    known = Known(
        current=profile.batch_size,
        samples=(result.sample,),
        maximum=site.maximum if site is not None else None,
        memory_bytes=profile.device.memory_bytes,
        spent=(Spent(batch_size=profile.batch_size, seconds=time.monotonic() - began),),
    )
    problems: list[str] = []
    budget_s = program.project.settings.prediction_budget_s
    deadline = time.monotonic() + budget_s
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        size = next_batch_size_for(replace(known, seconds_left=left_s), wanted)
        if size is None:
            break
        known = await _sample(runner, program, site, known, size, problems)
    if next_batch_size_for(known, wanted) is not None:
        problems.append(f"Measuring was ended after {budget_s:g} s; measuring more would narrow the predictions.")
    model = fit(
        known.samples,
        accelerator=profile.device.kind != "cpu",
        micro_batches=profile.micro_batches,
        out_of_memory=known.out_of_memory,
    )
    problems += model.problems
    return Measured(profile=profile, samples=known.samples, model=model, problems=tuple(dict.fromkeys(problems)))


async def _sample(
    runner: Runner, program: Program, site: Site | None, known: Known, size: int, problems: list[str]
) -> Known:
    """What is known once `size` was measured, or was found to be impossible."""
    project = program.project
    sample, failure = None, None
    began = time.monotonic()
    try:
        spec = _recording(spec_for(program, Goal.SAMPLE, size))
        sample = (await runner.run(spec, label=f"batch size {size}")).sample
    except ProgramFailed as failed:
        failure = failed.failure
    seen = shown(size, sample, failure, set_at=site, place=lambda path, line: f"{project.shown(path)}:{line}")
    if seen.site_works is False:
        raise CommandError(seen.remark or "")
    if seen.remark is not None:
        problems.append(seen.remark)
    if seen.out_of_memory:
        return replace(known, out_of_memory=(*known.out_of_memory, size))
    if seen.sample is None:
        return replace(known, failed=(*known.failed, size))
    spent = Spent(batch_size=size, seconds=time.monotonic() - began)
    return replace(known, samples=(*known.samples, seen.sample), spent=(*known.spent, spent))


def _recording(spec: RunSpec) -> RunSpec:
    return replace(spec, measure=replace(spec.measure, record_live_bytes=True))


def _json(measured: Measured, predictions: Sequence[Prediction]) -> dict[str, Any]:
    return {
        "batch_size": measured.profile.batch_size,
        "samples": [
            {
                "batch_size": sample.batch_size,
                "run_time_ms": sample.run_time_ms,
                "spread_ms": sample.spread_ms,
                "peak_bytes": sample.peak_bytes,
            }
            for sample in sorted(measured.samples, key=lambda sample: sample.batch_size)
        ],
        "predictions": [
            {
                "batch_size": prediction.batch_size,
                **interval("run_time_ms", prediction.run_time_ms),
                **interval("samples_per_second", prediction.samples_per_second),
                **interval("peak_bytes", prediction.peak_bytes),
                "fits": prediction.fits,
                "measured": prediction.measured,
            }
            for prediction in predictions
        ],
        "problems": list(measured.problems),
    }


def interval(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _print(measured: Measured, predictions: Sequence[Prediction]) -> None:
    console, _ = standard_consoles()
    now = measured.profile
    rows = [
        (
            f"{now.batch_size} (now)",
            format_ms(now.iteration.run_time_ms),
            "",
            format_rate(now.iteration.samples_per_second),
            "",
            format_bytes(now.iteration.peak_bytes),
            "",
            "yes",
        ),
        *(_row(prediction) for prediction in predictions),
    ]
    table = Table(
        header=("batch size", "time", "90 % interval", "samples/s", "90 % interval", "peak", "90 % interval", "fits"),
        rows=tuple(rows),
    )
    print_lines(console, [Text(line) for line in table.plain().split("\n")])
    sizes = ", ".join(str(size) for size in sorted({sample.batch_size for sample in measured.samples}))
    print_lines(console, [Text(), Text(f"Measured at batch sizes {sizes}.", style="dim")])
    print_lines(console, [Text(f"note: {printable(problem)}", style="yellow") for problem in measured.problems])


def _row(prediction: Prediction) -> tuple[str, ...]:
    peak = prediction.peak_bytes
    return (
        str(prediction.batch_size) + (" (measured)" if prediction.measured else ""),
        format_ms(prediction.run_time_ms.value),
        format_range(prediction.run_time_ms.low, prediction.run_time_ms.high, format_ms),
        format_rate(prediction.samples_per_second.value),
        format_range(prediction.samples_per_second.low, prediction.samples_per_second.high, format_rate),
        format_bytes(peak.value) if peak is not None else "unknown",
        format_range(peak.low, peak.high, format_bytes) if peak is not None else "",
        {True: "yes", False: "no", None: "unknown"}[prediction.fits],
    )
