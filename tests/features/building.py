"""Snapshots from compact text: a source with markers, and a call tree drawn by indentation."""

import re
from collections.abc import Mapping
from typing import Any

from skyline_lsp.features import Snapshot, snapshot
from skyline_lsp.prediction import Estimate, Model, Prediction, fit
from skyline_lsp.protocol import CallNode, Device, Iteration, Memory, Peaks, Profile, Sample, Workload, line_costs
from skyline_lsp.source import decode, find_entry_point, find_sites

ROOT = "/project"
GIB = 2**30
MIB = 2**20

PEAKS = Peaks(flop_per_second={"float32": 1e12, "bfloat16": 4e12}, bytes_per_second=1e10, launch_ms=0.005)
"""In a millisecond: a GFLOP, 10 MB, 200 launches."""

_ROW = re.compile(r"(?P<indent> *)(?P<path>[\w./]+):(?P<line>\d+) +(?P<function>\S+) +(?P<rest>.*)")
_COUNTS = {"flop": "self_flop", "operations": "self_operations", "reads": "self_host_reads"}
_UNITS = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": GIB}


class OpenFiles:
    """Files of a project, as a dictionary of path to text."""

    root = ROOT

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def read(self, path: str) -> bytes | None:
        """Bytes of an absolute path."""
        text = self.texts.get(path)
        return None if text is None else text.encode()

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """Paths that end so."""
        return tuple(sorted(path for path in self.texts if path.endswith(suffixes)))


def tree_of(drawing: str) -> tuple[CallNode, ...]:
    """A call tree from lines of `path:line function forward backward` and words such as `x16` and `saved=2MiB`.

    Times and sizes are self; deeper indentation is below the nearest line that is indented less; in texts, underscores
    stand for spaces.
    """
    nodes: list[CallNode] = []
    open_rows: list[tuple[int, int]] = []
    for row in filter(str.strip, drawing.splitlines()):
        match = _ROW.fullmatch(row.rstrip())
        assert match is not None, f"not a row of a call tree: {row!r}"
        indent = len(match["indent"])
        while open_rows and open_rows[-1][0] >= indent:
            open_rows.pop()
        forward, backward, *rest = match["rest"].split()
        fields: dict[str, Any] = {"invocations": 1}
        for word in rest:
            name, _, value = word.partition("=")
            if name.startswith("x"):
                fields["invocations"] = int(name[1:])
            elif name == "saved":
                fields["self_activation_bytes"] = size_of(value)
            elif name == "peak":
                fields["peak_bytes"] = size_of(value)
            elif name == "recompute":
                fields["recompute_ms"] = float(value)
            elif name in _COUNTS:
                fields[_COUNTS[name]] = int(value)
            elif name == "moved":
                fields["self_bytes_moved"] = size_of(value)
            elif name == "host":
                fields["self_host_ms"] = float(value)
            elif name == "pageable":
                fields["self_pageable_bytes"] = size_of(value)
            elif name in ("label", "module"):
                fields[name] = value.replace("_", " ")
            else:
                raise AssertionError(f"not known in a row of a call tree: {word!r}")
        nodes.append(
            CallNode(
                parent=open_rows[-1][1] if open_rows else -1,
                path=match["path"],
                line=int(match["line"]),
                function=match["function"],
                self_forward_ms=float(forward),
                self_backward_ms=float(backward),
                flop_type="float32" if "self_flop" in fields else None,
                **fields,
            )
        )
        open_rows.append((indent, len(nodes) - 1))
    return tuple(nodes)


def size_of(text: str) -> int:
    """Bytes of "98MiB"."""
    match = re.fullmatch(r"([\d.]+)([KMG]?i?B)", text)
    assert match is not None, f"not a size: {text!r}"
    return round(float(match[1]) * _UNITS[match[2]])


def profile_of(drawing: str, **changes: Any) -> Profile:
    """A profile with that call tree: 100 ms an iteration of batch size 16, 1 GiB of 8 GiB at the peak."""
    tree = tree_of(drawing)
    own = sum(node.self_forward_ms + node.self_backward_ms for node in tree)
    run_time_ms = changes.pop("run_time_ms", 100.0)
    fields: dict[str, Any] = {
        "device": Device(kind="cpu", name="Test CPU", memory_bytes=8 * GIB),
        "workload": Workload(kind="provider", path="train.py"),
        "batch_size": 16,
        "iteration": Iteration(
            run_time_ms=run_time_ms,
            spread_ms=4.0,
            iterations=20,
            samples_per_second=16 / run_time_ms * 1000,
            peak_bytes=GIB,
        ),
        "untracked_ms": run_time_ms - own,
        "memory": Memory(
            weights_bytes=100 * MIB,
            gradients_bytes=100 * MIB,
            optimizer_bytes=200 * MIB,
            activations_bytes=600 * MIB,
            other_bytes=24 * MIB,
        ),
        "lines": line_costs(tree),
        "tree": tree,
        "torch_version": "2.13.0",
        "python_version": "3.11.2",
        "files": {node.path: "0" * 64 for node in tree},
    }
    return Profile(**(fields | changes))


def snapshot_of(
    text: str, *, path: str = "/project/train.py", others: Mapping[str, str] = {}, **given: Any
) -> Snapshot:
    """A snapshot of `text`, its entry point and its sites found as the server finds them; `given` overrides."""
    files = OpenFiles({path: text, **others})
    entry = find_entry_point(path, text.encode())
    fields: dict[str, Any] = {
        "path": path,
        "source": decode(text.encode()),
        "root": ROOT,
        "entry": entry,
        "sites": find_sites(files, path) if entry is not None else (),
    }
    return snapshot(**(fields | given))


def prediction_of(
    batch_size: int, *, run_time_ms: float, peak_bytes: float | None = None, **changes: Any
) -> Prediction:
    """A prediction with 10 % on either side as its interval."""
    rate = 1000 * batch_size / run_time_ms if run_time_ms > 0 else 0.0
    fields: dict[str, Any] = {
        "batch_size": batch_size,
        "run_time_ms": around(run_time_ms),
        "samples_per_second": around(rate),
        "peak_bytes": None if peak_bytes is None else around(peak_bytes),
        "fits": None,
        "measured": False,
    }
    return Prediction(**(fields | changes))


def around(value: float) -> Estimate:
    """An estimate with 10 % on either side."""
    return Estimate(value=value, low=0.9 * value, high=1.1 * value)


PROVIDERS = """\
import torch

def skyline_model_provider():
    return Net()

def skyline_input_provider(batch_size=16):
    return (torch.randn(batch_size, 3),)

def skyline_iteration_provider(model):
    def iteration(x):
        loss = model(x).sum()
        loss.backward()
    return iteration
"""
"""A provider file at /project/train.py: the batch size at line 6, the entry at line 9, the step at 11 and 12."""

STEP = """
train.py:11 iteration 0.4 0.1
  net.py:6 Net.forward 1.2 2.4 saved=98MiB x16 peak=98MiB
    conv.py:20 Conv.forward 9 12 saved=300MiB x32 peak=250MiB recompute=2
    conv.py:21 Conv.forward 3 2 saved=30MiB x32
  net.py:7 Net.forward 5 8 saved=10MiB
train.py:12 iteration 0 0.5
"""
"""What a step of `PROVIDERS` costs."""


def model_of(*batch_sizes: int) -> Model:
    """A model of samples on a line: 20 ms + 5 ms and 0.4 GiB + 0.0375 GiB a sample."""
    return fit(
        [
            Sample(
                batch_size=size,
                run_time_ms=20 + 5 * size,
                spread_ms=2,
                iterations=10,
                peak_bytes=round((0.4 + 0.0375 * size) * GIB),
            )
            for size in batch_sizes
        ]
    )
