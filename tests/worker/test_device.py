"""The accelerator's way of measuring, against a fake with an accelerator's asynchronous manners."""

import sys
from dataclasses import dataclass, field
from types import CodeType

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp import protocol
from skyline_lsp.worker.device import Cpu, device_of
from skyline_lsp.worker.line_tracer import BACKWARD, FORWARD, LineTracer


@dataclass
class FakeMark:
    """A point in the queue of work; its time is known once the queue has been waited for."""

    at_ns: int
    done: bool = False


@dataclass
class FakeAccelerator:
    """Work is queued in no time and takes device time; reading a clock before waiting is an error."""

    kind: str = "cpu"
    marks_are_times: bool = False
    queued_ns: int = 0
    marks: list[FakeMark] = field(default_factory=list)

    def work(self, milliseconds: float) -> None:
        self.queued_ns += int(milliseconds * 1e6)

    def describe(self) -> protocol.Device:
        return protocol.Device(kind="fake", name="fake", memory_bytes=1 << 30)

    def synchronize(self) -> None:
        for mark in self.marks:
            mark.done = True

    def mark(self) -> FakeMark:
        mark = FakeMark(self.queued_ns)
        self.marks.append(mark)
        return mark

    def elapsed_ns(self, start: FakeMark, end: FakeMark) -> int:
        assert start.done, "elapsed time was read before the device was synchronised"
        assert end.done, "elapsed time was read before the device was synchronised"
        return end.at_ns - start.at_ns

    def reset_peak(self) -> None:
        return None

    def peak_bytes(self) -> int | None:
        return None


PROGRAM = """\
def step(kernel, x, w):
    y = kernel(x @ w, 5, 7)
    z = kernel(y, 2, 3)
    z.sum().backward()
"""


def test_device_time_goes_to_the_line_that_queued_the_work() -> None:
    """Times come from the device's marks, exactly, however little the host took."""
    device = FakeAccelerator()

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, forward_ms, backward_ms):  # type: ignore[no-untyped-def]
            ctx.backward_ms = backward_ms
            device.work(forward_ms)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            device.work(ctx.backward_ms)
            return gradient.clone(), None, None

    names: dict[str, object] = {}
    exec(compile(PROGRAM, "<step>", "exec"), names)
    tracer = LineTracer(lambda filename: filename == "<step>", device)
    tracer.start(sys._getframe())
    try:
        names["step"](Kernel.apply, torch.ones(2, 2), torch.ones(2, 2, requires_grad=True))  # type: ignore[operator]
    finally:
        trace = tracer.stop()
    times = {(tracer.tree.nodes[key >> 2].line, key & 3): spent / 1e6 for key, spent in trace.times_ns.items() if spent}
    assert times == {(2, FORWARD): 5, (2, BACKWARD): 7, (3, FORWARD): 2, (3, BACKWARD): 3}
    assert trace.total_ns == 17e6
    hosts = {tracer.tree.nodes[node].line for node, spent in trace.host_ns.items() if spent}
    assert {2, 3, 4} <= hosts, "what the host took is known apart"


def test_the_processor_is_described() -> None:
    """Name and memory of the machine are known."""
    device = device_of("cpu").describe()
    assert device.kind == "cpu"
    assert device.name
    assert device.memory_bytes
    assert device.memory_bytes > 2**28


def test_the_processor_keeps_no_allocator_statistics() -> None:
    """On the CPU the peak comes from storage accounting."""
    assert Cpu().peak_bytes() is None


def test_a_code_object_is_known_by_its_identity() -> None:
    """Two functions with equal code are two functions in the call tree."""
    from skyline_lsp.worker.call_tree import ROOT, CallTree

    def code() -> CodeType:
        names: dict[str, object] = {}
        exec(compile("def f():\n    pass\n", "<same>", "exec"), names)
        return names["f"].__code__  # type: ignore[attr-defined, no-any-return]

    tree = CallTree()
    first, second = code(), code()
    assert first == second
    assert tree.child(ROOT, first, 2) != tree.child(ROOT, second, 2)
    assert tree.child(ROOT, first, 2) == tree.child(ROOT, first, 2)
