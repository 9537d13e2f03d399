#!/usr/bin/env python3
"""Exercises every path of the worker that an accelerator takes, and prints a JSON report.

    python scripts/gpu_check.py [--only NAME ...] [--quick] > report.json

Needs torch and nothing else. Each check runs in a process of its own and can't harm the next. Without an accelerator
it runs on the CPU, and says by name which checks have no meaning there. Exit code 1 when a check fails.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
EXAMPLES = ("resnet50", "gpt", "dcgan", "lstm_lm")
TIME_LIMIT_S = 180
Report = dict[str, Any]


class NotHere(Exception):
    """A check that has no meaning on this device."""


def main() -> int:
    """Run the checks, print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=sorted(CHECKS), help="run these checks only")
    parser.add_argument("--quick", action="store_true", help="fewer examples and sizes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_attempt(arguments.one, arguments.quick)))
        return 0
    results = {name: _in_own_process(name, arguments.quick) for name in arguments.only or CHECKS}
    print(json.dumps({"machine": _machine(), "checks": results}, indent=2))
    return 1 if any(result["status"] == "failed" for result in results.values()) else 0


def _in_own_process(name: str, quick: bool) -> Report:
    started = time.monotonic()
    command = [sys.executable, __file__, "--one", name, *(["--quick"] if quick else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        result: Report = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        result = {"status": "failed", "reason": f"not done in {TIME_LIMIT_S} s"}
    except (ValueError, IndexError):
        result = {"status": "failed", "reason": f"exit code {done.returncode}: {done.stderr[-2000:]}"}
    result["seconds"] = round(time.monotonic() - started, 1)
    print(f"{name}: {result['status']}", file=sys.stderr)
    return result


def _attempt(name: str, quick: bool) -> Report:
    sys.path.insert(0, str(REPOSITORY))
    # What a check prints must not mix with its report.
    report, sys.stdout = sys.stdout, sys.stderr
    try:
        return {"status": "passed", **CHECKS[name](quick)}
    except NotHere as reason:
        return {"status": "skipped", "reason": str(reason)}
    except AssertionError as error:
        return {"status": "failed", "reason": str(error), "traceback": traceback.format_exc()}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    finally:
        sys.stdout = report


def _machine() -> Report:
    probe = (
        "import json, torch; a = getattr(torch, 'accelerator', None); here = a is not None and a.is_available();"
        "print(json.dumps({'torch': torch.__version__, 'accelerator': a.current_accelerator().type if here else None,"
        "'name': torch.cuda.get_device_name() if torch.cuda.is_available() else None}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else {"problem": done.stderr[-500:]}
    return {"python": platform.python_version(), "cpus": os.cpu_count(), **found}


# -- what the checks stand on ------------------------------------------------------------------------------------------


def _device() -> Any:
    from skyline_lsp.worker.device import accelerator_kind, device_of

    return device_of(accelerator_kind() or "cpu")


def _accelerator() -> Any:
    device = _device()
    if device.kind == "cpu":
        raise NotHere("there is no accelerator")
    return device


class _Files:
    """Which files are the project's: those below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = str(root) + os.sep

    def is_project(self, filename: str) -> bool:
        return filename.startswith(self._root)

    def relative(self, filename: str) -> str:
        return filename.removeprefix(self._root)


class _Silent:
    def progress(self, stage: Any, message: str, fraction: float | None = None) -> None:
        return None

    def partial(self, profile: Any) -> None:
        return None


def _measure(
    folder: Path, build: Callable[[], tuple[Any, Callable[[], None], int]], goal: str = "profile", **measure: Any
) -> Any:
    """Run what `build` gives, (model, iteration, batch size), under a measurement; gives the measurement."""
    from skyline_lsp import protocol
    from skyline_lsp.worker.measurement import Measurement

    # What an earlier measurement of this process left behind would count as memory.
    gc.collect()
    entry = protocol.Entry(kind=protocol.EntryKind.PROVIDER, path=str(folder / "providers.py"))
    spec = protocol.RunSpec(
        run_id=1, goal=protocol.Goal(goal), entry=entry, measure=protocol.Measure(record_live_bytes=True, **measure)
    )
    measurement = Measurement(spec, _Files(folder), _Silent())
    model, iteration, measurement.batch_size = build()
    measurement.add_model(model)
    measurement.begin()
    while True:
        iteration()
        if measurement.boundary():
            return measurement


def _example(name: str, batch_size: int | None = None) -> tuple[Path, Callable[[], Any]]:
    folder = REPOSITORY / "examples" / name

    def build() -> tuple[Any, Callable[[], None], int]:
        sys.path.insert(0, str(folder))
        specification = importlib.util.spec_from_file_location(f"providers_{name}", folder / "providers.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        model = module.skyline_model_provider()
        default = module.skyline_input_provider.__defaults__[0]
        inputs = module.skyline_input_provider(batch_size=batch_size or default)
        iteration = module.skyline_iteration_provider(model)
        return model, lambda: iteration(*inputs), batch_size or default

    return folder, build


# -- the checks --------------------------------------------------------------------------------------------------------


def check_self_test(quick: bool) -> Report:
    """The private parts of torch do what the tracer expects."""
    from skyline_lsp.worker import self_test

    assert self_test.problem() is None, self_test.problem()
    return {}


def check_description(quick: bool) -> Report:
    """The device's name and capacity."""
    from skyline_lsp.protocol import to_json

    described = _device().describe()
    assert described.memory_bytes, "no memory capacity"
    return {"device": to_json(described)}


def check_peaks(quick: bool) -> Report:
    """What the device can do at most."""
    from skyline_lsp.protocol import to_json
    from skyline_lsp.worker.calibration import measure_peaks

    peaks = measure_peaks(_device())
    assert peaks.flop_per_second, "no data type could be measured"
    return {"peaks": to_json(peaks)}


def check_line_times(quick: bool) -> Report:
    """Kernels that take a known time, forward and backward, land on their line within 10 % + 1 ms."""
    import torch

    device = _device()
    on_cpu = device.kind == "cpu"
    if not on_cpu and device.kind != "cuda":
        raise NotHere(f"no kernel of known duration on {device.kind}")
    cycles_per_ms = 0.0 if on_cpu else _cycles_per_ms(device)

    class Nap(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, forward_ms: float, backward_ms: float) -> Any:
            ctx.backward_ms = backward_ms
            spend(forward_ms)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            spend(ctx.backward_ms)
            return gradient.clone(), None, None

    def spend(milliseconds: float) -> None:
        if on_cpu:
            time.sleep(milliseconds / 1000)
        else:
            torch.cuda._sleep(int(milliseconds * cycles_per_ms))

    program = (
        "def iteration(nap, x, w):\n"
        "    y = nap(x @ w, 5, 9)\n"
        "    y = nap(y, 2, 4)\n"
        "    y.sum().backward()\n"
        "    z = nap(x @ w, 3, 6)\n"
        "    z.sum().backward()\n"
    )
    truth = {2: (5, 9), 3: (2, 4), 5: (3, 6)}
    names: dict[str, Any] = {}
    exec(compile(program, "/known/step.py", "exec"), names)
    x = torch.ones(8, 8, device=device.kind)
    w = torch.ones(8, 8, device=device.kind, requires_grad=True)
    model = torch.nn.Linear(8, 8, device=device.kind)
    measurement = _measure(
        Path("/known"), lambda: (model, lambda: names["iteration"](Nap.apply, x, w), 8), max_iterations=5
    )
    profile, _, _ = measurement.result()
    rows = {}
    for line in profile.lines:
        if line.line in truth:
            rows[line.line] = [line.self_forward_ms, line.self_backward_ms, *truth[line.line]]
    for line, (forward, backward, true_forward, true_backward) in rows.items():
        for measured, true in ((forward, true_forward), (backward, true_backward)):
            assert abs(measured - true) <= 0.1 * true + 1, f"line {line}: {measured} ms instead of {true} ms"
    assert set(rows) == set(truth), f"lines {sorted(rows)} instead of {sorted(truth)}"
    return {"lines": rows, "slowdown": profile.slowdown}


def _cycles_per_ms(device: Any) -> float:
    import torch

    torch.cuda._sleep(1000)
    device.synchronize()
    start = device.mark()
    torch.cuda._sleep(50_000_000)
    end = device.mark()
    device.synchronize()
    return 50_000_000 / (device.elapsed_ns(start, end) / 1e6)


def check_examples(quick: bool) -> Report:
    """The examples' books are balanced: lines + untracked = iteration, classes of memory = peak."""
    rows = {}
    for name in EXAMPLES[:2] if quick else EXAMPLES:
        profile, _, _ = _measure(*_example(name)).result()
        iteration = profile.iteration
        tracked = sum(line.self_forward_ms + line.self_backward_ms for line in profile.lines)
        assert math.isclose(tracked + profile.untracked_ms, iteration.run_time_ms, rel_tol=1e-6), name
        classes = profile.memory
        total = sum(getattr(classes, field) for field in type(classes).__dataclass_fields__)
        assert total == iteration.peak_bytes, f"{name}: classes sum to {total}, the peak is {iteration.peak_bytes}"
        rows[name] = {
            "run_time_ms": iteration.run_time_ms,
            "spread_ms": iteration.spread_ms,
            "coverage": tracked / iteration.run_time_ms,
            "slowdown": profile.slowdown,
            "peak_bytes": iteration.peak_bytes,
            "warnings": profile.warnings,
        }
        assert tracked >= 0.95 * iteration.run_time_ms, f"{name}: lines cover {tracked / iteration.run_time_ms:.1%}"
    return {"examples": rows}


def check_storage_accounting(quick: bool) -> Report:
    """The peak by storage accounting against the allocator's."""
    _accelerator()
    rows = {}
    for name in EXAMPLES[:2] if quick else EXAMPLES:
        measurement = _measure(*_example(name))
        accounted, _ = measurement.recording.peak()
        allocator = measurement.result()[0].iteration.peak_bytes
        rows[name] = {"accounted": accounted, "allocator": allocator, "ratio": accounted / allocator}
    # Workspaces inside operations are the allocator's only; beyond 2 % the reason must be one of them.
    return {"examples": rows, "within_2_percent": all(abs(row["ratio"] - 1) <= 0.02 for row in rows.values())}


def check_peak_law(quick: bool) -> Report:
    """Peak memory at other batch sizes, from the live-bytes time lines of two."""
    rows = {}
    for name in EXAMPLES[:1] if quick else EXAMPLES:
        samples = {size: _measure(*_example(name, size), goal="sample").result()[1] for size in (4, 8, 16)}
        small, large = samples[4].live_bytes, samples[8].live_bytes
        assert len(small) == len(large), f"{name}: the operations differ between batch sizes"
        predicted = max(a + (b - a) / 4 * 12 for a, b in zip(small, large, strict=True))
        true = max(samples[16].live_bytes)
        assert math.isclose(predicted, true, rel_tol=0.005), f"{name}: predicted {predicted}, true {true}"
        rows[name] = {"predicted": predicted, "true": true, "error": predicted / true - 1}
    return {"examples": rows}


def check_fake_tensors(quick: bool) -> Report:
    """Peak memory without allocating, against the device's."""
    from skyline_lsp.worker.fake import fake_tensors

    rows = {}
    for name in EXAMPLES[:1] if quick else EXAMPLES:
        folder, build = _example(name)
        with fake_tensors():
            estimate = _measure(folder, build, goal="estimate").estimate().peak_bytes
        true = _measure(folder, build, goal="sample").result()[1].peak_bytes
        rows[name] = {"estimate": estimate, "true": true, "error": estimate / true - 1}
    return {"examples": rows}


def check_out_of_memory(quick: bool) -> Report:
    """Running out of memory raises torch's own type, and the device works afterwards."""
    import torch

    device = _accelerator()
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device=device.kind)
    except torch.OutOfMemoryError as error:
        message = str(error).splitlines()[0]
    else:
        raise AssertionError("a pebibyte was allocated")
    assert float(torch.ones(2, device=device.kind).sum()) == 2
    return {"message": message}


def check_worker_process(quick: bool) -> Report:
    """The real worker, forked children and all, profiles an example that uses the device."""
    from skyline_lsp import protocol

    root = REPOSITORY / "examples" / "resnet50"
    worker = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "skyline_lsp" / "worker" / "__main__.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None

    def ask(identity: int, method: str, params: Any) -> Any:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(protocol.encode(protocol.request(identity, method, protocol.to_json(params))))
        worker.stdin.flush()
        for line in worker.stdout:
            message = json.loads(line)
            if message.get("id") == identity:
                assert "error" not in message, message["error"]
                return message["result"]
        raise AssertionError("the worker ended")

    try:
        hello = ask(
            1,
            "initialize",
            protocol.InitializeParams(protocol_version=protocol.PROTOCOL_VERSION, root=str(root)),
        )
        assert hello["problem"] is None, hello["problem"]
        entry = protocol.Entry(kind=protocol.EntryKind.PROVIDER, path=str(root / "providers.py"))
        kinds = []
        for identity in (2, 3):
            spec = protocol.RunSpec(run_id=identity, goal=protocol.Goal.PROFILE, entry=entry)
            result = ask(identity, "run", spec)
            assert result["status"] == "done", result["failure"]
            kinds.append(result["profile"]["device"]["kind"])
        assert kinds == [_device().kind] * 2, f"ran on {kinds}"
    finally:
        worker.stdin.close()
        worker.wait(timeout=30)
    return {"fork": hello["fork"], "device": kinds[0]}


def check_compile(quick: bool) -> Report:
    """A compiled model runs compiled under the tracer, and its region is labelled."""
    import torch

    device = _device()
    folder = REPOSITORY / "examples" / "gpt"
    backend = "aot_eager" if device.kind == "cpu" else "inductor"

    def build() -> tuple[Any, Callable[[], None], int]:
        _, example = _example("gpt")
        model, iteration, batch_size = example()
        torch._dynamo.reset()
        model.compile(backend=backend)
        return model, iteration, batch_size

    profile, _, _ = _measure(folder, build).result()
    labels = {node.label for node in profile.tree if node.label}
    assert labels, "no region is labelled as compiled"
    return {"backend": backend, "run_time_ms": profile.iteration.run_time_ms, "slowdown": profile.slowdown}


def check_double_backward(quick: bool) -> Report:
    """A gradient penalty leaves the books balanced, though nodes are numbered by the device's own thread."""
    import torch

    device = _device()
    program = (
        "def iteration(x, w, grad):\n"
        "    z = x.clone().requires_grad_()\n"
        "    y = (z @ w).tanh()\n"
        "    (g,) = grad(y.sum(), z, create_graph=True)\n"
        "    g.pow(2).sum().backward()\n"
    )
    names: dict[str, Any] = {}
    exec(compile(program, "/known/step.py", "exec"), names)
    x = torch.ones(256, 256, device=device.kind)
    w = torch.ones(256, 256, device=device.kind, requires_grad=True)
    model = torch.nn.Linear(8, 8, device=device.kind)
    measurement = _measure(Path("/known"), lambda: (model, lambda: names["iteration"](x, w, torch.autograd.grad), 256))
    profile, _, _ = measurement.result()
    return {
        "coverage": 1 - profile.untracked_ms / profile.iteration.run_time_ms,
        "backward_ms": {line.line: line.self_backward_ms for line in profile.lines},
    }


def check_roofline(quick: bool) -> Report:
    """Every line with FLOP has a utilisation that the measured peaks allow for, and the step has a bound."""
    from skyline_lsp.prediction.roofline import line_roofline, step_roofline

    rows = {}
    for name in EXAMPLES[:1] if quick else EXAMPLES:
        profile, _, _ = _measure(*_example(name)).result()
        assert profile.peaks is not None
        step = step_roofline(profile)
        assert step is not None
        assert step.utilisation is not None
        lines = [roofline for cost in profile.lines if (roofline := line_roofline(cost, profile.peaks)) is not None]
        bounds = {bound: sum(line.bound is bound for line in lines) for bound in {line.bound for line in lines}}
        highest = max(line.utilisation or 0 for line in lines)
        if profile.device.kind != "cpu":
            # Convolutions may round to TF32, of which the peak was not measured. A CPU's peak others share.
            assert highest < 8.5, f"{name}: a line reaches {highest:.0%}"
        rows[name] = {
            "utilisation": step.utilisation,
            "bound": step.bound.value,
            "reason": step.reason,
            "lines": {bound.value: count for bound, count in bounds.items()},
            "highest_utilisation": highest,
        }
    return {"examples": rows}


def check_observations(quick: bool) -> Report:
    """What advice is drawn from on an accelerator: values read, copies not pinned, layouts, what can be fused."""
    import torch

    from skyline_lsp.features.advice import advise

    device = _accelerator()
    program = (
        "def iteration(net, optimizer, images, device):\n"
        "    x = images.to(device)\n"
        "    loss = net(x).square().mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    return loss.item()\n"
    )
    names: dict[str, Any] = {}
    exec(compile(program, "/known/step.py", "exec"), names)
    layers = [torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(4)]
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), *layers).to(device.kind)
    optimizer = torch.optim.Adam(net.parameters())
    images = torch.ones(32, 3, 64, 64)
    measurement = _measure(
        Path("/known"), lambda: (net, lambda: names["iteration"](net, optimizer, images, device.kind), 32)
    )
    profile, _, _ = measurement.result()
    reads = {node.line: node.self_host_reads for node in profile.tree if node.self_host_reads}
    copies = {node.line: node.self_pageable_bytes for node in profile.tree if node.self_pageable_bytes}
    assert reads == {7: 1}, f"values read at lines {reads} instead of line 7"
    assert copies == {2: images.numel() * 4}, f"copies at lines {copies} instead of line 2"
    host = {node.line: node.self_host_ms for node in profile.tree if node.self_host_ms > 0}
    assert 7 in host, f"no host time at line 7: {host}"
    assert profile.layout_trials, "no convolution was tried in both layouts"
    (use,) = profile.optimizers
    assert use.line == 6, f"the optimizer steps on line {use.line} instead of line 6"
    return {
        "host_ms": host,
        "can_fuse": use.can_fuse,
        "layout_trials": [
            [trial.contiguous_ms, trial.channels_last_ms, trial.rounds_won / trial.rounds]
            for trial in profile.layout_trials
        ],
        "advice": [f"{one.line} {one.code.value}: {one.message}" for one in advise(profile, {"step.py": program})],
    }


def check_autocast(quick: bool) -> Report:
    """An example as it is and under autocast: both are measured, and the second computes in half precision."""
    from skyline_lsp import protocol
    from skyline_lsp.worker.measurement import Measurement

    folder, build = _example("gpt")
    entry = protocol.Entry(kind=protocol.EntryKind.PROVIDER, path=str(folder / "providers.py"))
    rows = {}
    for autocast in (None, "bfloat16"):
        spec = protocol.RunSpec(
            run_id=1, goal=protocol.Goal.PROFILE, entry=entry, autocast=autocast, device=_device().kind
        )
        measurement = Measurement(spec, _Files(folder), _Silent())
        model, iteration, measurement.batch_size = build()
        measurement.add_model(model)
        measurement.begin()
        iteration()
        while not measurement.boundary():
            iteration()
        profile, sample, _ = measurement.result()
        assert profile is not None
        assert sample is not None
        flop: dict[str, int] = {}
        for product in profile.products:
            flop[product.dtype] = flop.get(product.dtype, 0) + product.flop
        most = max(flop, key=lambda dtype: flop[dtype])
        assert most == (autocast or "float32"), f"most FLOP are in {most}"
        rows[str(autocast)] = {"run_time_ms": sample.run_time_ms, "peak_bytes": sample.peak_bytes, "flop": flop}
    return rows


CHECKS: dict[str, Callable[[bool], Report]] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}

if __name__ == "__main__":
    sys.exit(main())
