"""Measures a program's peak in a process of its own, where nothing else is alive.

python -m tests.worker.measure_apart FOLDER GOAL < program
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from skyline_lsp.protocol import Goal


def peak_apart(folder: Path, program: str, goal: Goal) -> int:
    """Peak in bytes of `program`, which defines `iteration()`."""
    command = [sys.executable, "-m", "tests.worker.measure_apart", str(folder), goal.value]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


def main() -> None:
    """The process apart."""
    from skyline_lsp.worker.fake import fake_tensors
    from tests.worker.programs import measure_program

    folder, goal = Path(sys.argv[1]), Goal(sys.argv[2])
    with fake_tensors() if goal is Goal.ESTIMATE else contextlib.nullcontext():
        measurement = measure_program(folder, sys.stdin.read(), goal)
    estimate, (_, sample, _) = measurement.estimate(), measurement.result()
    found = estimate or sample
    assert found is not None
    print(found.peak_bytes)


if __name__ == "__main__":
    main()
