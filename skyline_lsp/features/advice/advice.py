"""A piece of advice, and the case that it is drawn from."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from skyline_lsp.features.units import format_percent
from skyline_lsp.protocol import CallNode, LineCost, Product, Profile
from skyline_lsp.source.text import split_lines
from skyline_lsp.source.torch_calls import TorchCall, TorchSource, insertion, torch_source

WORTH_PERCENT = 2.0
"""Of the iteration: what following a piece of advice may save at best, unless following it costs nothing."""


class AdviceCode(str, enum.Enum):
    """What a piece of advice is about; also its diagnostic code, by which it can be switched off."""

    DATA_LOADING = "data-loading"
    PINNED_MEMORY = "pinned-memory"
    MIXED_PRECISION = "mixed-precision"
    BIAS_BEFORE_NORM = "bias-before-norm"
    ZERO_GRAD = "zero-grad"
    SYNCHRONIZATION = "synchronization"
    CHANNELS_LAST = "channels-last"
    MATRIX_SIZES = "matrix-sizes"
    FUSED_OPTIMIZER = "fused-optimizer"
    UNUSED_GRADIENT = "unused-gradient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A replacement within one line that follows the advice, safe as far as the source tells."""

    title: str
    """For the user."""
    line: int
    """1-based."""
    start_column: int
    """0-based, in code points."""
    end_column: int
    old: str
    new: str
    first_line: int
    """First and last line of what must still be as it was when it was profiled, for the change to be right."""
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something that would make the step cheaper. Paths and lines are the profile's."""

    code: AdviceCode
    path: str
    line: int
    message: str
    """For the user: what was measured, and what to do."""
    change: Change | None = None
    worth_percent: float | None = None
    """Of the iteration, what it may save at best; None where that is not known, or nothing but clutter."""
    autocast: str | None = None
    """Data type that the program can be run in under `torch.autocast`, to measure what it gains."""


class Case:
    """A profile, the texts of its files when it was measured, and what several rules ask of them."""

    def __init__(self, profile: Profile, texts: Mapping[str, str]) -> None:
        """`texts` are by path as in the profile; files may be missing."""
        self.profile = profile
        self.texts = {path: text for path, text in texts.items() if path.endswith((".py", ".pyw"))}

    @property
    def run_time_ms(self) -> float:
        """Of the iteration."""
        return self.profile.iteration.run_time_ms

    @property
    def accelerated(self) -> bool:
        """Whether the device is none of the host's processors."""
        return self.profile.device.kind != "cpu"

    def percent(self, time_ms: float) -> float:
        """A time as a share of the iteration."""
        return 100 * time_ms / self.run_time_ms if self.run_time_ms > 0 else 0.0

    def share(self, time_ms: float) -> str:
        """The same as text: "12 % of the iteration"."""
        return f"{format_percent(self.percent(time_ms))} of the iteration"

    @cached_property
    def sources(self) -> Mapping[str, TorchSource]:
        """What each file says of torch."""
        return {path: torch_source(text) for path, text in self.texts.items()}

    @cached_property
    def lines(self) -> Mapping[tuple[str, int], LineCost]:
        """Costs by path and line."""
        return {(cost.path, cost.line): cost for cost in self.profile.lines}

    @cached_property
    def nodes(self) -> Mapping[tuple[str, int], Sequence[CallNode]]:
        """Nodes of the call tree by path and line."""
        found: dict[tuple[str, int], list[CallNode]] = {}
        for node in self.profile.tree:
            found.setdefault((node.path, node.line), []).append(node)
        return found

    @cached_property
    def products(self) -> Mapping[tuple[str, int], Sequence[Product]]:
        """Products by path and line."""
        found: dict[tuple[str, int], list[Product]] = {}
        for product in self.profile.products:
            node = self.profile.tree[product.node]
            found.setdefault((node.path, node.line), []).append(product)
        return found

    def self_ms(self, path: str, line: int) -> float:
        """A line's own time; 0 for one without."""
        cost = self.lines.get((path, line))
        return 0.0 if cost is None else cost.self_forward_ms + cost.self_backward_ms

    def cost_lines(self, path: str, call: TorchCall) -> tuple[int, ...]:
        """The lines of a file to which a layer's cost is charged, as the profile has them."""
        own = range(call.start.line, call.end.line + 1)
        if call.sequence is not None:
            return tuple(line for line in own if (path, line) in self.lines)
        if call.attribute is None or call.class_name is None:
            return ()
        used = self.sources[path].uses.get((call.class_name, call.attribute), ())
        return tuple(line for line in dict.fromkeys(used) if (path, line) in self.lines)

    @cached_property
    def model_line(self) -> tuple[str, int] | None:
        """Where the step calls its model: beside the line that steps the optimizer, the line with the most FLOP."""
        tree = self.profile.tree
        flop = [node.self_flop for node in tree]
        for i in range(len(tree) - 1, -1, -1):
            if tree[i].parent >= 0:
                flop[tree[i].parent] += flop[i]
        steps = {(use.path, use.line) for use in self.profile.optimizers}
        parents = {node.parent for node in tree if (node.path, node.line) in steps} or {-1}
        beside = [i for i, node in enumerate(tree) if node.parent in parents and flop[i]]
        if not beside:
            return None
        best = tree[max(beside, key=lambda i: flop[i])]
        return best.path, best.line

    def add_keyword(self, path: str, call: TorchCall, keyword: str, title: str) -> Change | None:
        """The change that gives a call another keyword argument; None where that can't be written safely."""
        place = insertion(call, keyword, split_lines(self.texts[path]))
        if place is None:
            return None
        at, text = place
        return Change(
            title=title,
            line=at.line,
            start_column=at.column,
            end_column=at.column,
            old="",
            new=text,
            first_line=call.start.line,
            last_line=call.end.line,
        )
