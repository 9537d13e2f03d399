"""What is known of a value while a program is followed without running it.

A value is known exactly, or known by its shape, or unknown; integers remember the literals they come from (`Source`),
and whatever comes out of a data loader remembers the loader (`Feed`), through every operation on it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.site import SiteKind
from skyline_lsp.source.syntax import Syntax

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

MAX_OPTIONS = 6
"""Alternatives kept of one value; programs with more do not choose by the batch size."""

MAX_VIA = 8
"""Names kept of the way a number took."""


class Literal:
    """A number as written somewhere."""

    __slots__ = ()

    @property
    def key(self) -> tuple[str, int, int]:
        """Tells literals apart: path and position."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class PythonLiteral(Literal):
    """A number, -1, None or a string of digits in Python source."""

    path: str
    syntax: Syntax
    node: ast.expr

    @property
    def key(self) -> tuple[str, int, int]:
        return self.path, self.node.lineno, self.node.col_offset


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileLiteral(Literal):
    """A number in a configuration file."""

    path: str
    line: int
    column: int
    """0-based, in code points."""
    start: int
    """Byte offset."""
    end: int
    text: str
    value: int
    kind: SiteKind
    name: str
    """Its keys, joined with dots."""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.path, self.line, self.column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArgumentLiteral(Literal):
    """A number on the command line of the run."""

    text: str
    value: int
    option: str
    overridden: Value | None
    """The default that would count without it."""
    path: str
    """Where the option is declared."""
    line: int

    @property
    def key(self) -> tuple[str, int, int]:
        return f"\0{self.option}", self.line, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A literal that a number comes from, and what happened on the way."""

    literal: Literal
    multiplier: int = 1
    divisor: int = 1
    notes: tuple[str, ...] = ()
    via: tuple[str, ...] = ()
    """Names that carried it, the literal's own first."""
    maximum: int | None = None
    linear: bool = True
    """Whether the number is `literal * multiplier // divisor` as far as known; False after a sum, a power, ..."""


class Value:
    """Anything a program computes with."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Known(Value):
    """A scalar, or a path (`PurePosixPath`), known exactly."""

    value: Any
    sources: tuple[Source, ...] = ()


@dataclass(slots=True, eq=False)
class Unknown(Value):
    """Something not known."""

    label: str
    """What it is, in terms of the source: "cfg.batch_size"."""
    feeds: frozenset[Feed] = frozenset()
    sources: tuple[Source, ...] = ()
    item: Value | None = None
    """What iterating it gives, where known."""


@dataclass(slots=True, eq=False)
class Choice(Value):
    """One of several values; which one is not known."""

    options: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Sequence(Value):
    """A list, tuple or set."""

    kind: str
    cells: dict[Any, Value]
    """One cell, "items", that holds an `Items`."""
    complete: bool = True

    @property
    def items(self) -> tuple[Value, ...]:
        """Its elements as far as known."""
        held = self.cells["items"]
        assert isinstance(held, Items)
        return held.values


@dataclass(slots=True, eq=False)
class Items(Value):
    """The elements of a sequence at one time."""

    values: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dictionary, or a namespace whose attributes are its keys."""

    cells: dict[Any, Value]
    complete: bool = True
    """Whether it holds no other keys."""
    namespace: bool = False
    """Whether attributes are keys: argparse.Namespace, SimpleNamespace, OmegaConf's and others' dictionaries."""
    factory: Value | None = None
    """What a missing key is given: a defaultdict's factory."""
    feeds: frozenset[Feed] = frozenset()
    """Feeds that it configures: a library's training arguments."""


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function, method or lambda of the project."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    name: str
    defaults: dict[str, Value]
    receiver: Value | None = None
    owner: Class | None = None


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of the project."""

    node: ast.ClassDef
    module: Module
    name: str
    bases: tuple[Value, ...]
    cells: dict[Any, Value]
    fields: tuple[str, ...] = ()
    """Annotated names of its body, in order."""
    record: bool = False
    """Whether a decorator or base makes its fields the parameters of its constructor."""
    instances: list[Instance] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a class of the project."""

    cls: Class
    cells: dict[Any, Value]
    native: Value | None = None
    """What it is as an object of its base class from outside the project."""


@dataclass(slots=True, eq=False)
class Module(Value):
    """A module of the project."""

    name: str
    path: str
    syntax: Syntax
    cells: dict[Any, Value]
    star_externals: list[str] = field(default_factory=list)
    """Modules from outside the project whose names were all imported."""
    is_package: bool = False


@dataclass(slots=True, eq=False)
class External(Value):
    """A name from outside the project: "torch.utils.data.DataLoader"."""

    name: str


@dataclass(slots=True, eq=False)
class Method(Value):
    """A method of a value that is not a project object."""

    receiver: Value
    name: str


@dataclass(slots=True, eq=False)
class Partial(Value):
    """A callable with some arguments given."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass(slots=True, eq=False)
class Super(Value):
    """What `super()` gives."""

    cls: Class
    receiver: Value


@dataclass(slots=True, eq=False)
class Property(Value):
    """A property of a class."""

    getter: Value


@dataclass(slots=True, eq=False)
class Static(Value):
    """A static or class method."""

    function: Value
    of_class: bool


@dataclass(slots=True, eq=False)
class Field(Value):
    """What `dataclasses.field(...)` and its like give."""

    default: Value | None
    factory: Value | None


@dataclass(slots=True, eq=False)
class FileContent(Value):
    """An opened file, or the text of one."""

    path: str


@dataclass(slots=True, eq=False)
class Reference(Value):
    """An OmegaConf interpolation, which is resolved when it is read."""

    root: Mapping
    text: str


class Native(Value):
    """An object of a library whose behaviour is modelled."""

    __slots__ = ()

    def attribute(self, run: Run, name: str) -> Value | None:
        """An attribute's value; None means a method of that name."""
        return None

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        """The result of calling a method; None means that nothing is known about it."""
        return None

    def call(self, run: Run, call: Call) -> Value:
        """The result of calling the object."""
        return Unknown("")

    def item(self, run: Run, key: Value) -> Value | None:
        """An element; None where not known."""
        return None


@dataclass(slots=True, eq=False)
class Call:
    """A call as it is made."""

    args: list[Value]
    kwargs: dict[str, Value]
    node: ast.Call | None
    scope: Scope
    open: bool = False
    """Whether it passes more arguments than are known."""

    def get(self, position: int | None, *names: str) -> Value | None:
        """The argument at a position or under one of the names."""
        for name in names:
            if name in self.kwargs:
                return self.kwargs[name]
        if position is not None and position < len(self.args):
            return self.args[position]
        return None

    def string(self, position: int | None, *names: str) -> str | None:
        """An argument that is a known string."""
        value = self.get(position, *names)
        return value.value if isinstance(value, Known) and isinstance(value.value, str) else None

    def without_first(self) -> Call:
        """The same call without its first positional argument."""
        return Call(args=self.args[1:], kwargs=self.kwargs, node=self.node, scope=self.scope, open=self.open)


@dataclass(slots=True, eq=False)
class Scope:
    """Names of a module, class or function while it runs."""

    cells: dict[Any, Value]
    module: Module
    parent: Scope | None = None
    is_class: bool = False
    function: Function | None = None
    arguments: list[Value] = field(default_factory=list)
    global_names: set[str] = field(default_factory=set)
    outer_names: set[str] = field(default_factory=set)
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    deferred: bool = False
    """Whether a yield or return happened where it is not known to happen."""


@dataclass(slots=True, eq=False)
class Feed:
    """Something that cuts data into batches."""

    call: str
    """What makes it: "DataLoader"."""
    path: str
    line: int
    batch: Value
    """Its batch size."""
    strength: int
    """0: surely a batch size. Higher: less so."""
    function: str
    """The function it is made in; empty at the top of a module."""
    data: str = ""
    """Source text of what it reads from."""
    name: str = ""
    """The first name it was bound to."""
    trained: bool = False
    """Whether a backward pass was seen on its batches."""
    iterated: bool = False
    evaluation: bool | None = None
    """What its maker says it is for."""
    shuffled: bool | None = None
    order: int = 0


NOTHING = Known(None)
NO_FEEDS: frozenset[Feed] = frozenset()

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_BATCH_WORDS = {"batch", "batchsize", "bs", "bsz", "minibatch", "microbatch"}
_COUNT_WORDS = {
    "num", "n", "number", "idx", "index", "norm", "first", "id", "count", "batches", "nbatch", "nb", "accum",
    "accumulation", "interval", "every", "limit", "iter", "iters", "time", "steps", "epoch", "epochs", "total_steps",
    "sampler", "log", "seed", "end", "start", "max_batches", "worker", "workers", "multiplier", "factor",
    "frequency", "freq", "period",
}  # fmt: skip
_EVALUATION_WORDS = {
    "test", "tests", "testing", "val", "valid", "validation", "eval", "evaluation", "evaluate", "dev", "infer",
    "inference", "predict", "prediction", "tst", "holdout", "sample", "sampling", "generate", "visualize", "validate",
    "metrics", "calib", "calibration", "query", "gallery",
}  # fmt: skip
_PLAIN_WORDS = {
    "size", "train", "training", "per", "device", "gpu", "gpus", "micro", "mini", "global", "local", "total", "cfg",
    "config", "args", "data", "loader", "samples", "ims", "imgs", "images", "c", "hp", "default", "trainer", "input",
}  # fmt: skip
_TRAINING_WORDS = {"train", "training", "trn", "tr", "finetune", "pretrain", "fit", "trainer"}


def words(name: str) -> list[str]:
    """The words of an identifier, in lower case: "trainBatch_size" -> train, batch, size."""
    return [word.lower() for word in _WORD.findall(name)]


def names_batch_size(name: str) -> bool:
    """Whether a name speaks of a batch size."""
    parts = words(name)
    joined = "_".join(parts)
    if joined.endswith(("per_gpu", "per_device", "per_batch")) and parts[0] in ("samples", "ims", "images", "imgs"):
        return True
    if joined in ("train_size", "train_batch"):
        return True
    if "per_batch" in joined:
        return False
    return any(part in _BATCH_WORDS for part in parts) and not any(part in _COUNT_WORDS for part in parts)


def qualifiers(name: str) -> int:
    """How many words of a batch size's name say that it is the size of something else than a training batch."""
    return sum(part not in _PLAIN_WORDS and part not in _BATCH_WORDS for part in words(name))


def names_evaluation(name: str) -> bool:
    """Whether a name speaks of evaluation and not of training."""
    parts = words(name)
    return any(part in _EVALUATION_WORDS for part in parts) and not any(part in _TRAINING_WORDS for part in parts)


def names_training(name: str) -> bool:
    """Whether a name speaks of training."""
    return any(part in _TRAINING_WORDS for part in words(name))


def sequence(kind: str, items: Iterable[Value], complete: bool = True) -> Sequence:
    """A new sequence."""
    return Sequence(kind=kind, cells={"items": Items(tuple(items))}, complete=complete)


def sources_of(value: Value) -> tuple[Source, ...]:
    """Literals that a number comes from."""
    if isinstance(value, (Known, Unknown)):
        return value.sources
    if isinstance(value, Choice):
        return tuple(source for option in value.options for source in sources_of(option))
    return ()


def feeds_of(value: Value, depth: int = 3) -> frozenset[Feed]:
    """Feeds that a value comes from or holds."""
    if isinstance(value, Unknown):
        return value.feeds
    if isinstance(value, (Known, External, Module, Class)) or depth == 0:
        return NO_FEEDS
    inside: Iterable[Value] = ()
    found = NO_FEEDS
    if isinstance(value, Choice):
        inside = value.options
    elif isinstance(value, Sequence):
        inside = value.items[:32]
    elif isinstance(value, Mapping):
        found = value.feeds
        inside = list(value.cells.values())[:32]
    elif isinstance(value, Instance):
        inside = (value.native,) if value.native is not None else ()
    elif isinstance(value, Partial):
        inside = (*value.args, *value.kwargs.values())
    elif isinstance(value, Method):
        inside = (value.receiver,)
    for item in inside:
        feeds = feeds_of(item, depth - 1)
        if feeds:
            found = found | feeds
    return found


def join(values: Iterable[Value]) -> Value:
    """A value that is one of `values`; of more than a few, those that come first."""
    options: dict[object, Value] = {}
    unknown: list[Unknown] = []
    for value in values:
        for option in value.options if isinstance(value, Choice) else (value,):
            if isinstance(option, Unknown):
                if not unknown:
                    options["unknown"] = option
                unknown.append(option)
            elif len(options) < MAX_OPTIONS:
                options.setdefault(_identity(option), option)
    if len(unknown) > 1:
        options["unknown"] = _merged(unknown)
    if len(options) == 1:
        return next(iter(options.values()))
    return Choice(tuple(options.values())) if options else NOTHING


def _merged(unknown: list[Unknown]) -> Unknown:
    feeds, sources, item = NO_FEEDS, dict[Source, None](), None
    for option in unknown:
        if option.feeds and not option.feeds <= feeds:
            feeds = feeds | option.feeds
        sources.update(dict.fromkeys(option.sources))
        item = item or option.item
    return Unknown(unknown[0].label, feeds, tuple(sources), item)


def _identity(value: Value) -> object:
    """Equal for values that are the same for all that is known."""
    if isinstance(value, Known) and isinstance(value.value, (str, int, float, bool, bytes, type(None))):
        return type(value.value), value.value, tuple(_keys(value))
    if isinstance(value, External):
        return value.name
    return id(value)


def _keys(value: Known) -> list[tuple[str, int, int]]:
    return [source.literal.key for source in value.sources]


def carried(value: Value, name: str) -> Value:
    """`value` after it was given a name, which its numbers remember."""
    if isinstance(value, (Known, Unknown)) and value.sources:
        sources = tuple(
            source
            if (source.via and source.via[-1] == name) or len(source.via) >= MAX_VIA
            else replace(source, via=(*source.via, name))
            for source in value.sources
        )
        if isinstance(value, Known):
            return Known(value.value, sources)
        return Unknown(value.label, value.feeds, sources, value.item)
    if isinstance(value, Choice) and any(sources_of(option) for option in value.options):
        return Choice(tuple(carried(option, name) for option in value.options))
    return value


def noted(value: Value, note: str) -> Value:
    """`value` with a remark on what happened to its number."""
    if isinstance(value, (Known, Unknown)) and value.sources:
        sources = tuple(replace(source, notes=(*source.notes, note)) for source in value.sources)
        if isinstance(value, Known):
            return Known(value.value, sources)
        return Unknown(value.label, value.feeds, sources, value.item)
    return value


def label_of(value: Value) -> str:
    """What a value is, in terms of the source, as far as known."""
    if isinstance(value, Unknown):
        return value.label
    if isinstance(value, External):
        return value.name
    if isinstance(value, (Function, Class, Module)):
        return value.name
    if isinstance(value, Instance):
        return value.cls.name
    if isinstance(value, Method):
        return f"{label_of(value.receiver)}.{value.name}"
    if isinstance(value, Choice):
        return label_of(value.options[0])
    return ""
