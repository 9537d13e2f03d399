"""Profiles, predictions and hosts for the panel's tests, made in code and consistent in themselves."""

import asyncio
import dataclasses
from typing import Any

from skyline_lsp import prediction
from skyline_lsp.features import State
from skyline_lsp.panel import Advice, HistoryEntry, PanelSite, PanelState
from skyline_lsp.protocol import (
    CallNode,
    Device,
    Iteration,
    Memory,
    MemoryEvent,
    ParameterCost,
    Phase,
    PhaseKind,
    Profile,
    Sample,
    Workload,
    line_costs,
)

MIB = 2**20
BATCH_SIZE = 16
CAPACITY = 4096 * MIB


def run_time_ms(batch_size: int) -> float:
    """The time law of the programs here."""
    return 30.0 + 2.5 * batch_size


def peak_bytes(batch_size: int) -> int:
    """The memory law of the programs here: 40 MiB for each sample besides what lasts."""
    return (300 + 40 * batch_size) * MIB


def small_tree() -> tuple[CallNode, ...]:
    """A training step that calls a model of two blocks, whose lines are reached twice."""
    rows = [
        # parent, path, line, function, forward, backward, saved, times
        (-1, "train.py", 10, "step", 0.2, 0.0, 0, 1),
        (0, "model/net.py", 20, "Net.forward", 0.1, 0.0, 0, 1),
        (1, "model/block.py", 5, "Block.forward", 8.0, 14.0, 200 * MIB, 4),
        (1, "model/block.py", 6, "Block.forward", 2.0, 3.0, 100 * MIB, 4),
        (0, "model/net.py", 21, "Net.forward", 0.1, 0.1, 0, 1),
        (4, "model/block.py", 5, "Block.forward", 4.0, 8.0, 100 * MIB, 2),
        (-1, "train.py", 11, "step", 1.0, 2.0, 40 * MIB, 1),
        (-1, "train.py", 13, "step", 9.0, 0.0, 0, 1),
    ]
    return tuple(
        CallNode(
            parent=parent,
            path=path,
            line=line,
            function=function,
            self_forward_ms=forward,
            self_backward_ms=backward,
            self_activation_bytes=saved,
            invocations=times,
        )
        for parent, path, line, function, forward, backward, saved, times in rows
    )


def large_tree(nodes: int) -> tuple[CallNode, ...]:
    """A call tree of `nodes` nodes, each calling three lines, whose own costs differ by orders of magnitude."""
    rows: list[CallNode] = []
    for number in range(nodes):
        cost = 10.0 ** (number * 7919 % 97 / 32)
        rows.append(
            CallNode(
                parent=(number - 1) // 3 if number else -1,
                path=f"package/module_{number % 41}.py",
                line=1 + number % 613,
                function=f"Module{number % 83}.forward",
                self_forward_ms=cost,
                self_backward_ms=1.5 * cost,
                self_activation_bytes=round(50_000 * cost),
                invocations=1 + number % 5,
            )
        )
    return tuple(rows)


def profile_of(tree: tuple[CallNode, ...], **changes: Any) -> Profile:
    """A profile with this call tree, whose totals follow the laws above; untracked time is what is left."""
    time = run_time_ms(BATCH_SIZE)
    own = sum(node.self_forward_ms + node.self_backward_ms for node in tree)
    # A tree of any size is made to account for 95 % of the iteration.
    scale = 0.95 * time / own
    tree = tuple(
        dataclasses.replace(
            node, self_forward_ms=node.self_forward_ms * scale, self_backward_ms=node.self_backward_ms * scale
        )
        for node in tree
    )
    peak = peak_bytes(BATCH_SIZE)
    memory = Memory(
        weights_bytes=100 * MIB,
        gradients_bytes=80 * MIB,
        optimizer_bytes=120 * MIB,
        activations_bytes=560 * MIB,
        other_bytes=peak - 860 * MIB,
    )
    fields: dict[str, Any] = {
        "device": Device(kind="cuda", name="Test device", memory_bytes=CAPACITY),
        "workload": Workload(kind="provider", path="train.py"),
        "batch_size": BATCH_SIZE,
        "iteration": Iteration(
            run_time_ms=time,
            spread_ms=1.5,
            iterations=20,
            samples_per_second=1000 * BATCH_SIZE / time,
            peak_bytes=peak,
        ),
        "untracked_ms": 0.05 * time,
        "memory": memory,
        "phases": (
            Phase(kind=PhaseKind.FORWARD, run_time_ms=0.35 * time),
            Phase(kind=PhaseKind.BACKWARD, run_time_ms=0.5 * time),
            Phase(kind=PhaseKind.OPTIMIZER, run_time_ms=0.15 * time),
        ),
        "lines": line_costs(tree),
        "tree": tree,
        "parameters": tuple(
            ParameterCost(name=f"blocks.{block}.{part}.weight", weight_bytes=10 * MIB, gradient_bytes=8 * MIB)
            for block in range(5)
            for part in ("first", "second")
        ),
        "timeline": tuple(
            MemoryEvent(time_ms=float(step), live_bytes=peak - abs(50 - step) * 12 * MIB) for step in range(101)
        ),
        "torch_version": "2.13.0",
        "python_version": "3.11.2",
        "files": dict.fromkeys(sorted({node.path for node in tree}), "0" * 64),
    }
    return Profile(**(fields | changes))


def model_of(*batch_sizes: int) -> prediction.Model:
    """A model fitted to samples of the laws above, some a little off."""
    return prediction.fit(
        [
            Sample(
                batch_size=size,
                run_time_ms=run_time_ms(size) * (1 + 0.004 * (-1) ** number),
                spread_ms=0.6,
                iterations=20,
                peak_bytes=peak_bytes(size),
            )
            for number, size in enumerate(batch_sizes)
        ]
    )


def state_of(**changes: Any) -> PanelState:
    """A project that has been profiled and whose other batch sizes are predicted."""
    fields: dict[str, Any] = {
        "project": "project",
        "workload": "train.py",
        "state": State.READY,
        "profile": profile_of(small_tree()),
        "texts": {"model/block.py": {5: "return self.linear(x)", 6: "return x * self.scale"}},
        "model": model_of(4, 8, 16, 24, 32),
        "batch_size": BATCH_SIZE,
        "sites": (
            PanelSite(
                path="train.py",
                line=3,
                name="BATCH_SIZE",
                value=BATCH_SIZE,
                editable=True,
                reason="The data loader is given it.",
            ),
        ),
        "history": tuple(
            HistoryEntry(
                measured_at=f"2026-01-0{day}T10:00:00+00:00",
                batch_size=size,
                run_time_ms=run_time_ms(size),
                spread_ms=1.0,
                samples_per_second=1000 * size / run_time_ms(size),
                peak_bytes=peak_bytes(size),
                device_name="Test device",
                predicted=prediction.predict(model_of(4, 8, 24), size, CAPACITY) if day == 2 else None,
            )
            for day, size in ((1, 8), (2, 16))
        ),
        "advice": (
            Advice(code="data-loading", message="Loading takes 12 % of the iteration.", path="train.py", line=8),
        ),
    }
    return PanelState(**(fields | changes))


class Host:
    """A `PanelHost` that notes what it is asked, and whose edits change its state as an editor's would."""

    def __init__(self, state: PanelState) -> None:
        self.current = state
        self.asked: list[tuple[Any, ...]] = []
        self.refusal: str | None = None
        """Why `apply` fails; None where it does not."""
        self.changed = lambda: None
        """Called after each change, as the language server calls `PanelServer.notify`."""
        self._news = asyncio.Event()

    def state(self) -> PanelState:
        """The state now."""
        return self.current

    def change(self, **changes: Any) -> None:
        """Have another state, and tell."""
        self.current = dataclasses.replace(self.current, **changes)
        self.changed()

    async def predict(self, batch_size: int) -> prediction.Prediction | None:
        """Note it, and predict by the model."""
        self._note("predict", batch_size)
        if self.current.model is None or self.current.profile is None:
            return None
        return prediction.predict(self.current.model, batch_size, self.current.profile.device.memory_bytes)

    async def apply(self, batch_size: int) -> str | None:
        """Note it, and have the source say so."""
        self._note("apply", batch_size)
        if self.refusal is None:
            self.change(batch_size=batch_size, state=State.STALE, outdated=True)
        return self.refusal

    async def reveal(self, path: str, line: int) -> None:
        """Note it."""
        self._note("reveal", path, line)

    async def profile(self) -> None:
        """Note it, and be running."""
        self._note("profile")
        self.change(state=State.RUNNING, progress="timing iteration 3", fraction=0.25)

    async def cancel(self) -> None:
        """Note it, and be as before."""
        self._note("cancel")
        self.change(state=State.READY, progress=None, fraction=None)

    async def until(self, count: int) -> list[tuple[Any, ...]]:
        """Wait until `count` things have been asked; give them."""
        while len(self.asked) < count:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 20)
        return self.asked

    def _note(self, *asked: Any) -> None:
        self.asked.append(asked)
        self._news.set()
