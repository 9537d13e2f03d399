"""Peak memory found without allocating, against the peak of real runs: each example at several batch sizes.

    .venv/bin/python benchmarks/memory_without_device.py

Both peaks count live storages on the processor, as `skyline-lsp profile` does there. The result goes to
benchmarks/results/memory-without-device.json, with the machine it was measured on. GPT-2 is measured too where the
environment of `make test-frameworks` has transformers.
"""

import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skyline_lsp.features import Table
from skyline_lsp.features.units import format_bytes
from skyline_lsp.prediction import DeviceSpec, exact_peak, parse_device, peak_there
from skyline_lsp.protocol import Entry, EntryKind, Goal, Measure, RunResult, RunSpec, Status
from skyline_lsp.server.worker_client import WorkerClient

REPOSITORY = Path(__file__).resolve().parents[1]
RESULT = REPOSITORY / "benchmarks" / "results" / "memory-without-device.json"
WANTED_ERROR = 0.01
FRAMEWORKS = REPOSITORY / ".venv-frameworks" / "bin" / "python"
GPT2 = '''\
"""One training step of GPT-2 small, without its weights' values, which don't matter here."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

LENGTH = 128


def skyline_model_provider():
    return GPT2LMHeadModel(GPT2Config())


def skyline_input_provider(batch_size=2):
    return (torch.randint(50257, (batch_size, LENGTH)),)


def skyline_iteration_provider(model):
    optimizer = torch.optim.AdamW(model.parameters())

    def iteration(words):
        optimizer.zero_grad()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()

    return iteration
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program, the batch sizes to compare at, and one that this machine need not be able to run."""

    name: str
    path: Path
    batch_sizes: tuple[int, ...]
    far: int
    python: Path = Path(sys.executable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One batch size of one program."""

    program: str
    batch_size: int
    found_bytes: int
    real_bytes: int | None
    """None where no real run was made."""
    error: float | None
    """Relative, of the found peak."""
    seconds: float
    """What finding it took, in a worker that is up."""
    fits_a100_40gb: bool | None


def cases(folder: Path) -> list[Case]:
    """The four examples, and GPT-2 where there is transformers."""
    examples = REPOSITORY / "examples"
    sizes = {"resnet50": ((1, 8, 32, 64), 4096), "gpt": ((1, 8, 32, 64), 2048), "dcgan": ((2, 16, 64, 128), 16384)}
    sizes["lstm_lm"] = ((1, 20, 80, 160), 16384)
    found = [
        Case(name=name, path=examples / name / "providers.py", batch_sizes=few, far=far)
        for name, (few, far) in sizes.items()
    ]
    if FRAMEWORKS.exists():
        path = folder / "gpt2.py"
        path.write_text(GPT2, encoding="utf-8")
        found.append(Case(name="transformers GPT-2", path=path, batch_sizes=(1, 2, 4), far=64, python=FRAMEWORKS))
    return found


async def rows_of(case: Case) -> list[Row]:
    """Every batch size of a case, the far one last."""
    client = WorkerClient(python=str(case.python), root=str(case.path.parent))
    rows = []
    try:
        await client.start()
        # The first run of a worker imports what later ones have at hand.
        await run(client, case, Goal.ESTIMATE, 1)
        for batch_size in (*case.batch_sizes, case.far):
            started = time.perf_counter()
            estimate = (await run(client, case, Goal.ESTIMATE, batch_size)).estimate
            seconds = time.perf_counter() - started
            assert estimate is not None
            real = None
            if batch_size != case.far:
                sample = (await run(client, case, Goal.SAMPLE, batch_size)).sample
                assert sample is not None
                real = sample.peak_bytes
            device = parse_device("A100-40GB")
            assert isinstance(device, DeviceSpec)
            rows.append(
                Row(
                    program=case.name,
                    batch_size=batch_size,
                    found_bytes=estimate.peak_bytes,
                    real_bytes=real,
                    error=None if real is None else estimate.peak_bytes / real - 1,
                    seconds=seconds,
                    fits_a100_40gb=peak_there(exact_peak(batch_size, estimate.peak_bytes), device).fits,
                )
            )
            print(f"{case.name} at {batch_size}: done", file=sys.stderr)
    finally:
        await client.close()
    return rows


async def run(client: WorkerClient, case: Case, goal: Goal, batch_size: int) -> RunResult:
    """One run; ends the benchmark with the program's failure and its line where it fails."""
    spec = RunSpec(
        run_id=0,
        goal=goal,
        entry=Entry(kind=EntryKind.PROVIDER, path=str(case.path)),
        batch_size=batch_size,
        # The optimizer's state is made in the first step; time does not matter here.
        measure=Measure(warm_up=1, min_iterations=1, max_iterations=1),
        device="cpu",
    )
    result = await client.run(spec)
    if result.status is not Status.DONE:
        failure = result.failure
        where = f" at line {failure.frames[-1].line}" if failure is not None and failure.frames else ""
        sys.exit(
            f"{case.name} at batch size {batch_size}{where}: {failure.message if failure is not None else 'ended'}"
        )
    return result


def print_table(rows: Sequence[Row]) -> None:
    """As Markdown, for the documentation."""
    table = Table(
        header=("program", "batch size", "found", "real", "error", "seconds", "fits an A100-40GB"),
        rows=tuple(
            (
                row.program,
                str(row.batch_size),
                format_bytes(row.found_bytes),
                format_bytes(row.real_bytes) if row.real_bytes is not None else "",
                f"{100 * row.error:+.2f} %" if row.error is not None else "",
                f"{row.seconds:.1f}",
                {True: "yes", False: "no", None: "maybe"}[row.fits_a100_40gb],
            )
            for row in rows
        ),
    )
    print(table.markdown())


async def main() -> int:
    """Measure, print and keep; 1 where an error is larger than wanted."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for case in cases(Path(folder)) for row in await rows_of(case)]
    errors = [abs(row.error) for row in rows if row.error is not None]
    seconds = [row.seconds for row in rows]
    print_table(rows)
    print(f"\nlargest error {100 * max(errors):.2f} % of {len(errors)}; {max(seconds):.1f} s at most for an answer")
    import torch

    record = {
        "machine": {
            "processor": _processor(),
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "largest_error": max(errors),
        "wanted_error": WANTED_ERROR,
        "most_seconds": max(seconds),
        "rows": [
            {
                "program": row.program,
                "batch_size": row.batch_size,
                "found_bytes": row.found_bytes,
                "real_bytes": row.real_bytes,
                "error": row.error,
                "seconds": round(row.seconds, 2),
                "fits_a100_40gb": row.fits_a100_40gb,
            }
            for row in rows
        ],
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0 if max(errors) <= WANTED_ERROR else 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
