"""Checks, in some milliseconds, that the private parts of torch that the tracer stands on still do what they did."""

import functools

import torch

from skyline_lsp.worker.device import Cpu
from skyline_lsp.worker.line_tracer import BACKWARD, LineTracer
from skyline_lsp.worker.live_storages import LiveStorages

_PROGRAM = """\
def step(x, w):
    y = x @ w
    z = y.sigmoid()
    z.sum().backward()
"""
_NAME = "<skyline self-test>"


@functools.cache
def problem() -> str | None:
    """Run a program whose map is known. None when all is well, else a sentence for the user."""
    try:
        wrong = _try_out()
    except Exception as error:  # whatever a changed torch may raise here
        wrong = f"{type(error).__name__}: {error}"
    if wrong is None:
        return None
    return (
        f"Costs by line are left out: torch {torch.__version__} does not behave as the tracer expects ({wrong}). "
        "Please report it, with the version."
    )


def _try_out() -> str | None:
    names: dict[str, object] = {}
    exec(compile(_PROGRAM, _NAME, "exec"), names)
    step = names["step"]
    x, w = torch.ones(4, 8), torch.ones(8, 2, requires_grad=True)
    tracer = LineTracer(lambda filename: filename == _NAME, Cpu())
    storages = LiveStorages(tracer, [], [], [], "cpu")
    with torch.enable_grad():
        storages.start()
        tracer.start()
        try:
            step(x, w)  # type: ignore[operator]
        finally:
            trace = tracer.stop()
            recording = storages.stop()
    backward = {tracer.tree.nodes[key >> 2].line for key in trace.times_ns if key & 3 == BACKWARD}
    saved = {tracer.tree.nodes[s.saved_at].line: s.nbytes for s in recording.storages if s.saved_at is not None}
    if backward != {2, 3, 4}:
        return f"backward time on lines {sorted(backward)} instead of 2, 3 and 4"
    if saved != {3: 32}:
        return f"saved tensors {saved} instead of 32 bytes on line 3"
    return None
