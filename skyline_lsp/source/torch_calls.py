"""Calls of torch's classes in a file: their arguments, what they are assigned to, how a class uses its layers.

From the text alone. What can't be told for sure, such as a name that is bound twice, is left out.
"""

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeGuard

from skyline_lsp.source.syntax import called_name, dotted_name, is_main_guard
from skyline_lsp.source.text import split_lines

_CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
_TRANSPOSED = (*_CONVOLUTION[:5], "output_padding", "groups", "bias", "dilation")
_POOL = ("kernel_size", "stride", "padding")
_NORM = ("num_features", "eps", "momentum", "affine", "track_running_stats")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **{f"torch.nn.Conv{n}d": _CONVOLUTION for n in (1, 2, 3)},
    **{f"torch.nn.ConvTranspose{n}d": _TRANSPOSED for n in (1, 2, 3)},
    **{f"torch.nn.MaxPool{n}d": _POOL for n in (1, 2, 3)},
    **{f"torch.nn.AvgPool{n}d": _POOL for n in (1, 2, 3)},
    **{f"torch.nn.BatchNorm{n}d": _NORM for n in (1, 2, 3)},
    "torch.nn.Linear": ("in_features", "out_features", "bias"),
    "torch.nn.Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    **{f"torch.nn.{name}": ("input_size", "hidden_size", "num_layers", "bias") for name in ("RNN", "LSTM", "GRU")},
    "torch.nn.MultiheadAttention": ("embed_dim", "num_heads", "dropout", "bias"),
    "torch.utils.data.DataLoader": (
        *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
    ),
}
"""Names of the positional parameters, in order, of the classes whose calls are read in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in a file: the line counts from 1, the column from 0, in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a call."""

    name: str
    """Of the parameter; empty where that is not known."""
    start: Position
    """Of the keyword where there is one, else of the value."""
    value_start: Position
    end: Position
    text: str
    """The value as written."""
    value: int | bool | None
    """Where it is written as a literal."""

    def holds(self, line: int, column: int) -> bool:
        """Whether a position is within it; its end counts as well."""
        return (self.start.line, self.start.column) <= (line, column) <= (self.end.line, self.end.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCall:
    """A call of one of torch's classes."""

    name: str
    """In full, such as "torch.nn.Conv2d"."""
    start: Position
    end: Position
    """After the closing bracket."""
    arguments: tuple[Argument, ...]
    complete: bool
    """Whether `arguments` are all: no `*` and no `**` is among them."""
    class_name: str | None
    """The class in whose method it is."""
    attribute: str | None
    """`name` of `self.name = call`."""
    variable: str | None
    """`name` of `name = call`."""
    sequence: tuple[int, int] | None
    """As a direct argument of `nn.Sequential`: which of the file's, and at which position in it."""

    def argument(self, name: str) -> Argument | None:
        """The argument of a parameter."""
        return next((argument for argument in self.arguments if argument.name == name), None)

    @property
    def short_name(self) -> str:
        """Such as "Conv2d"."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroFill:
    """A call `zero_grad(set_to_none=False)`."""

    line: int
    literal: Argument
    """Its `False`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchSource:
    """What a file says of torch."""

    calls: tuple[TorchCall, ...] = ()
    uses: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """(Class, attribute) -> the lines on which its methods call `self.attribute(...)`, once for each call."""
    feeds: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(Class, first) -> second: whatever `self.first(...)` gives goes to `self.second(...)` and nowhere else, and
    `self.first` is used in no other way in the file."""
    attributes: frozenset[str] = frozenset()
    """Names that are read of anything but `self`."""
    bases: frozenset[str] = frozenset()
    """Last names of the classes that the file's classes derive from."""
    reads: frozenset[str] = frozenset()
    """Names of all attributes that are read, of `self` too."""
    has_main_guard: bool = False
    zero_fills: tuple[ZeroFill, ...] = ()
    loops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Variable -> the lines of the loops over it, wrapped in `enumerate` and the like or not."""


@lru_cache(maxsize=256)
def torch_source(text: str) -> TorchSource:
    """Read a file's text; one that can't be parsed says nothing."""
    try:
        with warnings.catch_warnings():
            # Invalid escapes are the user's, and would be printed on the server's standard error.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return TorchSource()
    return _Reader(text, tree).read()


def insertion(call: TorchCall, keyword: str, lines: Sequence[str]) -> tuple[Position, str] | None:
    """Where to write another keyword argument and what, on one line; None where the call takes it from elsewhere."""
    if not call.complete:
        return None
    if call.arguments:
        last = max(call.arguments, key=lambda argument: (argument.end.line, argument.end.column))
        rest = [lines[number - 1] for number in range(last.end.line, call.end.line + 1)]
        rest[-1] = rest[-1][: call.end.column - 1]
        rest[0] = rest[0][last.end.column :]
        # A bracket around the argument's value is none of its own.
        if "".join(line.partition("#")[0] for line in rest).strip(" \t\f,"):
            return None
        # Right behind the last argument: a comma that follows it then follows the new one.
        return last.end, f", {keyword}"
    at = Position(line=call.end.line, column=call.end.column - 1)
    inside = lines[at.line - 1][: at.column]
    return (at, keyword) if inside.rstrip().endswith("(") else None


class _Reader:
    """Walks one file."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self._text = text
        self._lines = split_lines(text)
        self._tree = tree
        self._parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
        self._names = _imported_names(tree)

    def read(self) -> TorchSource:
        """Everything."""
        reads: set[str] = set()
        others: set[str] = set()
        bases: set[str] = set()
        loops: dict[str, list[int]] = {}
        zero_fills = []
        nodes = list(ast.walk(self._tree))
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                reads.add(node.attr)
                if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                    others.add(node.attr)
            elif isinstance(node, ast.ClassDef):
                bases.update(dotted_name(base).rpartition(".")[2] for base in node.bases)
            elif isinstance(node, ast.For):
                name = _iterated(node.iter)
                if name:
                    loops.setdefault(name, []).append(node.lineno)
            elif isinstance(node, ast.Call) and (fill := self._zero_fill(node)) is not None:
                zero_fills.append(fill)
        uses: dict[tuple[str, str], tuple[int, ...]] = {}
        feeds: dict[tuple[str, str], str] = {}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                self._read_class(node, uses, feeds)
        return TorchSource(
            calls=tuple(self._calls(nodes)),
            uses=uses,
            feeds=feeds,
            attributes=frozenset(others),
            bases=frozenset(bases),
            reads=frozenset(reads),
            has_main_guard=any(isinstance(node, ast.If) and is_main_guard(node.test) for node in self._tree.body),
            zero_fills=tuple(zero_fills),
            loops={name: tuple(lines) for name, lines in loops.items()},
        )

    # -- calls ------------------------------------------------------------------------------------------------------

    def _full_name(self, function: ast.expr) -> str:
        first, _, rest = dotted_name(function).partition(".")
        known = self._names.get(first)
        return "" if known is None else f"{known}.{rest}" if rest else known

    def _calls(self, nodes: Sequence[ast.AST]) -> Iterator[TorchCall]:
        sequences: dict[ast.Call, int] = {}
        stores = Counter(
            (self._class_of(node), node.attr)
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            name = self._full_name(node.func)
            if not name.startswith("torch."):
                continue
            parent = self._parents.get(node)
            owner = self._class_of(node)
            attribute = variable = None
            if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
                target = parent.targets[0]
                if isinstance(target, ast.Name):
                    variable = target.id
                elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and owner is not None:
                    # An attribute that is set in two places may be either.
                    attribute = target.attr if target.value.id == "self" and stores[owner, target.attr] == 1 else None
            sequence = None
            if isinstance(parent, ast.Call) and self._full_name(parent.func) == "torch.nn.Sequential":
                number = sequences.setdefault(parent, len(sequences))
                sequence = (number, parent.args.index(node)) if node in parent.args else None
            yield self._call(node, name, owner, attribute, variable, sequence)

    def _call(
        self,
        node: ast.Call,
        name: str,
        owner: str | None,
        attribute: str | None,
        variable: str | None,
        sequence: tuple[int, int] | None,
    ) -> TorchCall:
        parameters = PARAMETERS.get(name, ())
        arguments = []
        complete = True
        for position, value in enumerate(node.args):
            if isinstance(value, ast.Starred) or position >= len(parameters):
                complete = complete and not isinstance(value, ast.Starred)
                start = self._start(value)
                arguments.append(self._argument("", start, value))
            else:
                arguments.append(self._argument(parameters[position], self._start(value), value))
        for keyword in node.keywords:
            complete = complete and keyword.arg is not None
            start = Position(line=keyword.lineno, column=self._column(keyword.lineno, keyword.col_offset))
            arguments.append(self._argument(keyword.arg or "", start, keyword.value))
        return TorchCall(
            name=name,
            start=self._start(node),
            end=self._end(node),
            arguments=tuple(arguments),
            complete=complete,
            class_name=owner,
            attribute=attribute,
            variable=variable,
            sequence=sequence,
        )

    def _argument(self, name: str, start: Position, value: ast.expr) -> Argument:
        constant = value.value if isinstance(value, ast.Constant) else None
        return Argument(
            name=name,
            start=start,
            value_start=self._start(value),
            end=self._end(value),
            text=ast.get_source_segment(self._text, value) or "",
            value=constant if isinstance(constant, int) else None,
        )

    def _zero_fill(self, call: ast.Call) -> ZeroFill | None:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
            return None
        given = [keyword.value for keyword in call.keywords if keyword.arg == "set_to_none"] or call.args
        if len(given) != 1 or len(call.args) + len(call.keywords) != 1:
            return None
        literal = self._argument("set_to_none", self._start(given[0]), given[0])
        return ZeroFill(line=call.lineno, literal=literal) if literal.value is False else None

    # -- how classes use their layers -------------------------------------------------------------------------------

    def _read_class(
        self, owner: ast.ClassDef, uses: dict[tuple[str, str], tuple[int, ...]], feeds: dict[tuple[str, str], str]
    ) -> None:
        called: dict[str, list[ast.Call]] = {}
        otherwise: set[str] = set()
        for node in ast.walk(owner):
            name = _of_self(node)
            if name is None or not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Store):
                continue
            parent = self._parents[node]
            if isinstance(parent, ast.Call) and parent.func is node:
                called.setdefault(name, []).append(parent)
            else:
                otherwise.add(name)
        derives = {self._full_name(base) for base in owner.bases}
        for name, calls in called.items():
            uses[owner.name, name] = tuple(call.lineno for call in calls)
            receivers = {self._receiver(call) for call in calls}
            (receiver,) = receivers if len(receivers) == 1 else (None,)
            if receiver is not None and name not in otherwise and derives == {"torch.nn.Module"}:
                feeds[owner.name, name] = receiver

    def _receiver(self, call: ast.Call) -> str | None:
        """`second` where the call's result goes to `self.second(...)` alone."""
        parent = self._parents[call]
        if isinstance(parent, ast.Call):
            return _sole_argument_of_self(parent, call)
        if not (
            isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)
        ):
            return None
        variable = parent.targets[0].id
        following = self._following(parent)
        if not isinstance(following, (ast.Assign, ast.Return, ast.Expr)):
            return None
        loads = [node for node in ast.walk(following) if _loads(node, variable)]
        if len(loads) != 1:
            return None
        consumer = self._parents[loads[0]]
        rebinds = isinstance(following, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == variable for target in following.targets
        )
        function = self._function_of(call)
        if not rebinds and (function is None or sum(_loads(node, variable) for node in ast.walk(function)) != 1):
            return None
        return _sole_argument_of_self(consumer, loads[0]) if isinstance(consumer, ast.Call) else None

    def _following(self, statement: ast.stmt) -> ast.stmt | None:
        parent = self._parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                after = block[block.index(statement) + 1 :]
                return after[0] if after else None
        return None

    def _function_of(self, node: ast.AST) -> ast.AST | None:
        while (parent := self._parents.get(node)) is not None:
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return parent
            node = parent
        return None

    def _class_of(self, node: ast.AST) -> str | None:
        """The class in one of whose methods a node is."""
        inside = False
        while (parent := self._parents.get(node)) is not None:
            if isinstance(parent, ast.ClassDef):
                return parent.name if inside else None
            inside = inside or isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef))
            node = parent
        return None

    # -- positions --------------------------------------------------------------------------------------------------

    def _column(self, line: int, utf8_column: int) -> int:
        text = self._lines[line - 1]
        if text.isascii():
            return utf8_column
        return len(text.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))

    def _start(self, node: ast.expr) -> Position:
        return Position(line=node.lineno, column=self._column(node.lineno, node.col_offset))

    def _end(self, node: ast.expr) -> Position:
        line, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return Position(line=line, column=self._column(line, column))


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name -> what of torch it stands for; names that something else binds too are left out."""
    found: dict[str, str] = {}
    bound: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import torch.nn` binds `torch`.
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound[node.name] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 1
    return {
        local: full
        for local, full in found.items()
        if not bound[local] and (full == "torch" or full.startswith("torch."))
    }


_WRAPPERS = {"enumerate", "tqdm", "trange", "track", "iter", "islice", "cycle", "progress_bar"}


def _iterated(iterated: ast.expr) -> str:
    """The variable that a loop goes over; empty where that is anything else."""
    while isinstance(iterated, ast.Call) and called_name(iterated) in _WRAPPERS and iterated.args:
        iterated = iterated.args[0]
    return iterated.id if isinstance(iterated, ast.Name) else ""


def _of_self(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _sole_argument_of_self(call: ast.Call, argument: ast.expr) -> str | None:
    """`name` of `self.name(argument)`."""
    return _of_self(call.func) if call.args == [argument] and not call.keywords else None


def _loads(node: ast.AST, variable: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Load)
