"""Follows a program from its first statement without running it.

Statements are taken in the order in which Python would run them, with what is known of each value; so the binding that
wins at run time wins here, across functions and files. Where it is not known which way the program goes, both ways are
followed and joined. A loop over a known sequence is followed element by element, any other once. A way that ends in an
exception or an exit is taken not to be gone: what is profiled runs.

Nothing of the program is executed: known strings and numbers are computed with, everything else is modelled.
"""

from __future__ import annotations

import ast
import posixpath

from skyline_lsp.source.dataflow import calls, expressions, imports, statements
from skyline_lsp.source.dataflow.branches import Branches, Ended, Flow, OutOfSteps
from skyline_lsp.source.dataflow.library import Library
from skyline_lsp.source.dataflow.modules import Modules, is_absolute, normal
from skyline_lsp.source.dataflow.values import (
    Call,
    Class,
    Feed,
    Function,
    Instance,
    Known,
    Module,
    Reference,
    Scope,
    Unknown,
    Value,
    feeds_of,
)
from skyline_lsp.source.files import Files

MAX_STEPS = 40_000
"""Statements and calls followed in one program: about a second. Public training programs take up to 25,000."""


class Run(Branches):
    """One program being followed."""

    def __init__(
        self,
        files: Files,
        entry_path: str,
        arguments: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        lenient: bool = False,
        max_steps: int = MAX_STEPS,
    ) -> None:
        super().__init__()
        self.files: Files = files
        self.entry_path = normal(entry_path)
        self.arguments = arguments
        self.environment = environment or {}
        self.lenient = lenient
        """Whether options of the command line may have any value, beside the one that is known."""
        self.modules = Modules(files, self.entry_path)
        self.library = Library()
        self.feeds: list[Feed] = []
        self.entered: set[int] = set()
        """Functions that were followed, by the identity of their node."""
        self.steps = 0
        self.max_steps = max_steps
        self.alternative = 0
        """Which subcommand to follow where the arguments name none."""
        self.alternatives = 1
        """How many subcommands there are."""
        self.stack: list[Function] = []
        self.times_called: dict[int, int] = {}
        self.loops: list[frozenset[Feed]] = []
        self.called_back: set[int] = set()
        self.computing: dict[int, bool] = {}
        """Whether a class is a plain torch module, by the identity of its node."""
        self.generators: dict[int, bool] = {}
        """Whether a function is a generator, by the identity of its node."""

    def main(self) -> Module | None:
        """Follow the entry file as `__main__`; None where it can't be parsed."""
        return self.load(self.entry_path, "__main__", is_package=False)

    def load(self, path: str, name: str, is_package: bool) -> Module | None:
        """Follow a file as a module."""
        syntax = self.modules.syntax(path)
        if syntax is None:
            return None
        module = Module(name=name, path=path, syntax=syntax, cells={}, is_package=is_package)
        module.cells["__name__"] = Known(name)
        module.cells["__file__"] = Known(self.modules.native_path(path))
        if name != "__main__":
            self.modules.loaded[path] = module
        scope = Scope(cells=module.cells, module=module)
        loops, self.loops = self.loops, []
        try:
            self.block(syntax.tree.body, scope)
        except Ended:
            pass
        finally:
            self.loops = loops
        return module

    def read(self, path: str) -> tuple[str, bytes] | None:
        """A file that the program names: as it is, from the root, from the entry's folder or from one above that."""
        clean = normal(path)
        folders = [normal(self.files.root), posixpath.dirname(self.entry_path)]
        while folders[-1].startswith(f"{folders[0]}/"):
            folders.append(posixpath.dirname(folders[-1]))
        for folder in [""] if is_absolute(clean) else folders:
            candidate = normal(posixpath.join(folder, clean))
            data = self.files.read(self.modules.native_path(candidate))
            if data is not None:
                return candidate, data
        return None

    def step(self) -> None:
        """Count a step. Raises `OutOfSteps` at the limit."""
        self.steps += 1
        if self.steps > self.max_steps:
            raise OutOfSteps

    def block(self, body: list[ast.stmt], scope: Scope) -> Flow:
        """Follow statements in order."""
        return statements.block(self, body, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> Flow:
        """Follow one statement."""
        return statements.statement(self, node, scope)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a target to a value."""
        return statements.assign(self, target, value, scope)

    def bind_name(self, name: str, value: Value, scope: Scope) -> None:
        """Bind a name in the scope that it belongs to."""
        return statements.bind_name(self, name, value, scope)

    def import_module(self, name: str) -> Value:
        """The module that `import name` means."""
        return imports.import_module(self, name)

    def make_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Function:
        """A function as its definition makes it, defaults evaluated."""
        return statements.make_function(self, node, scope)

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression gives."""
        return expressions.evaluate(self, node, scope)

    def text(self, node: ast.expr, scope: Scope) -> str:
        """How the source writes an expression, on one line, shortened."""
        return expressions.text(self, node, scope)

    def lookup(self, name: str, scope: Scope) -> Value:
        """What a name means."""
        return expressions.lookup(self, name, scope)

    def plain_call(self, args: list[Value], scope: Scope | None = None) -> Call:
        """A call that the source does not write."""
        return calls.plain_call(self, args, scope)

    def call(self, function: Value, call: Call) -> Value:
        """What a call gives."""
        return calls.call_value(self, function, call)

    def is_running(self, function: Function) -> bool:
        """Whether a function is being followed already."""
        return calls.is_running(self, function)

    def call_function(self, function: Function, call: Call) -> Value:
        """Follow a function of the project."""
        return calls.call_function(self, function, call)

    def call_root(self, function: Function, receiver: Value | None = None) -> Value:
        """Follow a function that nothing seen calls: parameters have their defaults or are unknown."""
        return calls.call_root(self, function, receiver)

    def call_back(self, function: Value, feeds: frozenset[Feed]) -> Value:
        """Follow, once, a function that was given to a library: its parameters hold what comes from `feeds`."""
        return calls.call_back(self, function, feeds)

    def instantiate(self, cls: Class, call: Call) -> Value:
        """Make an object of a class of the project."""
        return calls.instantiate(self, cls, call)

    def make(self, cls: Class) -> Value:
        """An object of a class of which nothing was seen to be made."""
        return calls.make(self, cls)

    def super_of(self, call: Call) -> Value:
        """What `super()` or `super(Class, self)` gives where it is called."""
        return calls.super_of(self, call)

    def name_feeds(self, value: Value, name: str) -> None:
        """Remember the first name that a feed is bound to."""
        if isinstance(value, Unknown):
            for feed in value.feeds:
                if not feed.name and value.label.startswith(feed.call):
                    feed.name = name
        elif isinstance(value, Instance) and value.native is not None:
            for feed in feeds_of(value.native):
                if not feed.name:
                    feed.name = name

    def backward(self, feeds: frozenset[Feed]) -> None:
        """A backward pass was seen on what comes from `feeds`, in the loops that are being followed."""
        for feed in feeds.union(*self.loops):
            feed.trained = True

    def resolved(self, value: Value) -> Value:
        """The value itself, with an interpolation replaced by what it stands for."""
        return self.library.resolve(self, value) if isinstance(value, Reference) else value
