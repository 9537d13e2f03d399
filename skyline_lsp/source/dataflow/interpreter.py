"""Follows a program from its first statement without running it.

Statements are taken in the order in which Python would run them, with what is known of each value; so the binding that
wins at run time wins here, across functions and files. Where it is not known which way the program goes, both ways are
followed and joined. A loop over a known sequence is followed element by element, any other once. A way that ends in an
exception or an exit is taken not to be gone: what is profiled runs.

Nothing of the program is executed: known strings and numbers are computed with, everything else is modelled.
"""

from __future__ import annotations

import ast
import enum
import posixpath
import re
from collections.abc import Callable
from typing import Any

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.library import Library
from skyline_lsp.source.dataflow.modules import Modules, normal
from skyline_lsp.source.dataflow.objects import (
    bind,
    class_attribute,
    elements,
    external_bases,
    field_default,
    get_attribute,
    get_item,
    mro,
    set_attribute,
    set_item,
    unpack,
)
from skyline_lsp.source.dataflow.values import (
    NO_FEEDS,
    NOTHING,
    Call,
    Choice,
    Class,
    External,
    Feed,
    Function,
    Instance,
    Items,
    Known,
    Mapping,
    Module,
    Native,
    Partial,
    PythonLiteral,
    Reference,
    Scope,
    Sequence,
    Source,
    Static,
    Super,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    sequence,
    sources_of,
)
from skyline_lsp.source.files import Files
from skyline_lsp.source.syntax import dotted_name, parse

MAX_STEPS = 60_000
"""Statements and calls followed in one program: a second or two."""

MAX_DEPTH = 28
"""Project calls within each other: each takes about ten of the interpreter's own frames."""

MAX_CALLS_OF_ONE = 40
"""How often one function is followed; helpers called more often tell nothing new."""

_MODULES = {"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.Sequential", "torch.autograd.Function"}
_FEEDING = re.compile(r"batch_?size|loader|minibatch|sampler|\bbsz?\b|config|args", re.IGNORECASE)

_MISSING = Known("missing")


class Flow(enum.Enum):
    """How a block of statements ends."""

    NEXT = 0
    CONTINUE = 1
    BREAK = 2
    RETURN = 3


class Ended(Exception):
    """The way that is followed raises or exits."""


class OutOfSteps(Exception):
    """The program is too large to be followed to its end."""


class Run:
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
        self._trail: list[tuple[dict[Any, Value], Any, Value]] = []
        self._forks = 0
        self._stack: list[Function] = []
        self._calls: dict[int, int] = {}
        self._loops: list[frozenset[Feed]] = []
        self._called_back: set[int] = set()
        self._computing: dict[int, bool] = {}
        """Whether a class is a plain torch module, by the identity of its node."""
        self._generators: dict[int, bool] = {}
        """Whether a function is a generator, by the identity of its node."""

    # The program.

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
        loops, self._loops = self._loops, []
        try:
            self.block(syntax.tree.body, scope)
        except Ended:
            pass
        finally:
            self._loops = loops
        return module

    def read(self, path: str) -> tuple[str, bytes] | None:
        """A file that the program names: as it is, from the root, from the entry's folder or from one above that."""
        clean = normal(path)
        folders = [self.files.root, posixpath.dirname(self.entry_path)]
        while folders[-1].startswith(normal(self.files.root) + "/"):
            folders.append(posixpath.dirname(folders[-1]))
        candidates = (
            [clean] if posixpath.isabs(clean) else [normal(posixpath.join(folder, clean)) for folder in folders]
        )
        for candidate in candidates:
            data = self.files.read(self.modules.native_path(candidate))
            if data is not None:
                return candidate, data
        return None

    # State that can be taken back.

    def store(self, cells: dict[Any, Value], key: Any, value: Value) -> None:
        """Write a cell, so that the end of a branch can take it back."""
        if self._forks:
            self._trail.append((cells, key, cells.get(key, _MISSING)))
        cells[key] = value

    def remove(self, cells: dict[Any, Value], key: Any) -> None:
        """Take a cell away."""
        if key in cells:
            if self._forks:
                self._trail.append((cells, key, cells[key]))
            del cells[key]

    def fork(self, *branches: Callable[[], Flow]) -> Flow:
        """Follow each branch from the same state, and join what they leave. Raises `Ended` where all of them do."""
        if len(branches) == 1:
            return self._attempt(branches[0])
        self._forks += 1
        start = len(self._trail)
        outcomes: list[tuple[Flow, dict[tuple[int, Any], tuple[dict[Any, Value], Any, Value]]]] = []
        try:
            for branch in branches:
                try:
                    flow: Flow | None = branch()
                except Ended:
                    flow = None
                changed = self._take_back(start)
                if flow is not None:
                    outcomes.append((flow, changed))
        finally:
            self._forks -= 1
        if not outcomes:
            raise Ended
        through = [outcome for outcome in outcomes if outcome[0] is Flow.NEXT]
        kept = through or outcomes
        touched = {at: (cells, key) for _, changed in kept for at, (cells, key, _) in changed.items()}
        for at, (cells, key) in touched.items():
            values = [changed[at][2] if at in changed else cells.get(key, _MISSING) for _, changed in kept]
            values = [value for value in values if value is not _MISSING]
            if values:
                self.store(cells, key, _join_cells(values))
        return min((flow for flow, _ in kept), key=lambda flow: flow.value)

    def _attempt(self, branch: Callable[[], Flow]) -> Flow:
        """Follow the one branch there is; its changes are taken back where it raises `Ended`."""
        self._forks += 1
        start = len(self._trail)
        try:
            return branch()
        except Ended:
            self._take_back(start)
            raise
        finally:
            self._forks -= 1
            if not self._forks:
                self._trail.clear()

    def _take_back(self, start: int) -> dict[tuple[int, Any], tuple[dict[Any, Value], Any, Value]]:
        """Undo the changes since a point of the trail; what they were."""
        changed: dict[tuple[int, Any], tuple[dict[Any, Value], Any, Value]] = {}
        for cells, key, old in reversed(self._trail[start:]):
            at = (id(cells), key)
            if at not in changed:
                changed[at] = (cells, key, cells.get(key, _MISSING))
            if old is _MISSING:
                cells.pop(key, None)
            else:
                cells[key] = old
        del self._trail[start:]
        return changed

    def step(self) -> None:
        """Count a step. Raises `OutOfSteps` at the limit."""
        self.steps += 1
        if self.steps > self.max_steps:
            raise OutOfSteps

    # Statements.

    def block(self, body: list[ast.stmt], scope: Scope) -> Flow:
        """Follow statements in order."""
        for statement in body:
            flow = self.statement(statement, scope)
            if flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

    def statement(self, node: ast.stmt, scope: Scope) -> Flow:
        """Follow one statement."""
        self.step()
        handler = _STATEMENTS.get(type(node))
        if handler is None:
            return Flow.NEXT
        try:
            return handler(self, node, scope)
        except RecursionError:
            return Flow.NEXT

    def _expression(self, node: ast.Expr, scope: Scope) -> Flow:
        self.eval(node.value, scope)
        return Flow.NEXT

    def _assign(self, node: ast.Assign, scope: Scope) -> Flow:
        value = self.eval(node.value, scope)
        for target in node.targets:
            self.assign(target, value, scope)
        return Flow.NEXT

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> Flow:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value, scope), scope)
        return Flow.NEXT

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> Flow:
        target = node.target
        as_expression = ast.copy_location(_loaded(target), target)
        old = self.eval(as_expression, scope)
        by = self.eval(node.value, scope)
        new = operators.binary(node.op, old, by, self.text(target, scope), self.text(node.value, scope))
        self.assign(target, new, scope)
        return Flow.NEXT

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            value = carried(value, target.id)
            self.name_feeds(value, target.id)
            self.bind_name(target.id, value, scope)
        elif isinstance(target, ast.Attribute):
            set_attribute(self, self.eval(target.value, scope), target.attr, value)
        elif isinstance(target, ast.Subscript):
            set_item(self, self.eval(target.value, scope), self.eval(target.slice, scope), value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = next((i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)), None)
            for item, part in zip(target.elts, unpack(self, value, len(target.elts), starred), strict=True):
                self.assign(item.value if isinstance(item, ast.Starred) else item, part, scope)

    def bind_name(self, name: str, value: Value, scope: Scope) -> None:
        """Bind a name in the scope that it belongs to."""
        if name in scope.global_names:
            self.store(scope.module.cells, name, value)
            return
        if name in scope.outer_names:
            outer = scope.parent
            while outer is not None:
                if name in outer.cells:
                    self.store(outer.cells, name, value)
                    return
                outer = outer.parent
        self.store(scope.cells, name, value)

    def _delete(self, node: ast.Delete, scope: Scope) -> Flow:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.remove(scope.cells, target.id)
            elif isinstance(target, ast.Subscript):
                owner, key = self.eval(target.value, scope), self.eval(target.slice, scope)
                if isinstance(owner, Mapping) and isinstance(key, Known):
                    self.remove(owner.cells, key.value)
        return Flow.NEXT

    def _if(self, node: ast.If, scope: Scope) -> Flow:
        test = self.eval(node.test, scope)
        known = operators.truth(test)
        if known is None:
            return self.fork(lambda: self.block(node.body, scope), lambda: self.block(node.orelse, scope))
        taken, other = (node.body, node.orelse) if known else (node.orelse, node.body)
        if not known:
            self._note_limit(node, scope)
        automatic = self._automatic(node, scope) if known else []
        try:
            # In a fork, for its changes to be taken back where the branch ends in an exception.
            flow = self.fork(lambda: self.block(taken, scope))
        except Ended:
            return self.block(other, scope)
        for target, value in automatic:
            self._keep_automatic(target, value, scope)
        return flow

    def _automatic(self, node: ast.If, scope: Scope) -> list[tuple[ast.expr, Known]]:
        """What a condition compares that is -1 now: `if batch_size == -1: batch_size = find_batch_size()`."""
        found: list[tuple[ast.expr, Known]] = []
        for part in ast.walk(node.test):
            if isinstance(part, ast.Compare) and isinstance(part.left, (ast.Name, ast.Attribute)):
                value = self.eval(part.left, scope)
                if isinstance(value, Known) and value.value == -1 and value.sources:
                    found.append((part.left, value))
        return found

    def _keep_automatic(self, target: ast.expr, old: Known, scope: Scope) -> None:
        """A number written in place of the -1 would be used as it is, so the -1 stays the best place to write it."""
        new = self.eval(target, scope)
        if isinstance(new, (Known, Unknown)) and not (isinstance(new, Known) and new.value == -1):
            sources = (*old.sources, *new.sources)
            kept = Known(new.value, sources) if isinstance(new, Known) else Unknown(new.label, new.feeds, sources)
            self.assign(target, kept, scope)
        elif isinstance(new, Choice):
            self.assign(target, Unknown("an automatic batch size", sources=(*old.sources, *sources_of(new))), scope)

    def _note_limit(self, node: ast.If, scope: Scope) -> None:
        """`if batch_size > MAXIMUM: batch_size = MAXIMUM` limits a batch size even where it changes nothing now."""
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        for test in tests:
            if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1):
                continue
            name = test.left.id
            if not isinstance(test.ops[0], (ast.Gt, ast.GtE)) or not any(
                isinstance(target, ast.Name) and target.id == name
                for statement in node.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
            ):
                continue
            value = self.lookup(name, scope)
            bound = self.eval(test.comparators[0], scope)
            if isinstance(value, Known) and value.sources and isinstance(bound, Known) and isinstance(bound.value, int):
                maximum = bound.value if isinstance(test.ops[0], ast.Gt) else bound.value - 1
                remark = f"limited to {self.text(test.comparators[0], scope)} ({bound.value})"
                sources = tuple(
                    Source(
                        literal=source.literal,
                        multiplier=source.multiplier,
                        divisor=source.divisor,
                        notes=(*source.notes, remark),
                        via=source.via,
                        maximum=maximum,
                        linear=source.linear,
                    )
                    for source in value.sources
                )
                self.bind_name(name, Known(value.value, sources), scope)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> Flow:
        iterable = self.eval(node.iter, scope)
        items, concrete = elements(self, iterable)
        feeds = feeds_of(iterable)
        if not feeds and not concrete and items:
            feeds = feeds_of(items[0])
        for feed in feeds:
            feed.iterated = True
        self._loops.append(feeds)
        try:
            for item in items:
                flow = self._loop_body(node, item, scope)
                if flow is Flow.BREAK:
                    return Flow.NEXT
                if flow is Flow.RETURN:
                    return flow
        finally:
            self._loops.pop()
        return self.block(node.orelse, scope)

    def _loop_body(self, node: ast.For | ast.AsyncFor, item: Value, scope: Scope) -> Flow:
        self.assign(node.target, item, scope)
        try:
            flow = self.fork(lambda: self.block(node.body, scope))
        except Ended:
            return Flow.NEXT
        return Flow.NEXT if flow is Flow.CONTINUE else flow

    def _while(self, node: ast.While, scope: Scope) -> Flow:
        if operators.truth(self.eval(node.test, scope)) is False:
            return self.block(node.orelse, scope)
        try:
            flow = self.fork(lambda: self.block(node.body, scope))
        except Ended:
            flow = Flow.NEXT
        return Flow.RETURN if flow is Flow.RETURN else Flow.NEXT

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> Flow:
        for item in node.items:
            value = self.eval(item.context_expr, scope)
            entered = value
            if isinstance(value, Instance):
                enter = class_attribute(value.cls, "__enter__")
                if enter is not None and isinstance(enter[0], Function):
                    entered = self.call(bind(enter[0], value, enter[1]), self.plain_call([]))
            elif isinstance(value, Unknown) and value.item is not None:
                entered = value.item
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered, scope)
        return self.block(node.body, scope)

    def _try(self, node: ast.Try, scope: Scope) -> Flow:
        body = [*node.body, *node.orelse]
        branches: list[Callable[[], Flow]] = [lambda: self.block(body, scope)]
        for handler in node.handlers:
            branches.append(lambda handler=handler: self._handler(handler, scope))  # type: ignore[misc]
        try:
            flow = self.fork(*branches[: 1 if self._cannot_raise(node, scope) else None])
        except Ended:
            self.block(node.finalbody, scope)
            raise
        final = self.block(node.finalbody, scope)
        return final if final is not Flow.NEXT else flow

    def _handler(self, handler: ast.ExceptHandler, scope: Scope) -> Flow:
        if handler.name:
            self.bind_name(handler.name, Unknown(handler.name), scope)
        return self.block(handler.body, scope)

    def _cannot_raise(self, node: ast.Try, scope: Scope) -> bool:
        """Whether an import that is tried finds a module of the project, and nothing else is tried."""
        return all(
            isinstance(statement, ast.ImportFrom)
            and statement.level == 0
            and self.modules.find(statement.module or "") is not None
            for statement in node.body
        )

    def _raise(self, node: ast.Raise, scope: Scope) -> Flow:
        raise Ended

    def _return(self, node: ast.Return, scope: Scope) -> Flow:
        scope.returns.append(self.eval(node.value, scope) if node.value is not None else NOTHING)
        return Flow.RETURN

    def _break(self, node: ast.Break, scope: Scope) -> Flow:
        return Flow.BREAK

    def _continue(self, node: ast.Continue, scope: Scope) -> Flow:
        return Flow.CONTINUE

    def _global(self, node: ast.Global, scope: Scope) -> Flow:
        scope.global_names.update(node.names)
        return Flow.NEXT

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> Flow:
        scope.outer_names.update(node.names)
        return Flow.NEXT

    def _assert(self, node: ast.Assert, scope: Scope) -> Flow:
        self.eval(node.test, scope)
        return Flow.NEXT

    def _match(self, node: ast.Match, scope: Scope) -> Flow:
        subject = self.eval(node.subject, scope)
        possible: list[Callable[[], Flow]] = []
        for case in node.cases:
            matches = self._matches(case.pattern, subject, scope)
            if case.guard is not None and matches is not False:
                guard = operators.truth(self.eval(case.guard, scope))
                matches = matches if guard is True else False if guard is False else None
            if matches is False:
                continue
            possible.append(lambda case=case: self.block(case.body, scope))  # type: ignore[misc]
            if matches is True:
                break
        else:
            possible.append(lambda: Flow.NEXT)
        return self.fork(*possible)

    def _matches(self, pattern: ast.pattern, subject: Value, scope: Scope) -> bool | None:
        if isinstance(pattern, ast.MatchValue):
            return operators.compare(ast.Eq(), subject, self.eval(pattern.value, scope))
        if isinstance(pattern, ast.MatchSingleton):
            return operators.compare(ast.Is(), subject, Known(pattern.value))
        if isinstance(pattern, ast.MatchOr):
            answers = [self._matches(option, subject, scope) for option in pattern.patterns]
            return True if True in answers else None if None in answers else False
        if isinstance(pattern, ast.MatchAs):
            answer = True if pattern.pattern is None else self._matches(pattern.pattern, subject, scope)
            if pattern.name and answer is not False:
                self.bind_name(pattern.name, subject, scope)
            return answer
        return None

    def _import(self, node: ast.Import, scope: Scope) -> Flow:
        for alias in node.names:
            module = self.import_module(alias.name)
            if alias.asname:
                self.bind_name(alias.asname, module, scope)
                continue
            first = alias.name.split(".")[0]
            if isinstance(module, Module) and "." in alias.name:
                self.bind_name(first, self.import_module(first), scope)
            else:
                self.bind_name(first, module if "." not in alias.name else External(first), scope)
        return Flow.NEXT

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> Flow:
        base = self._from_module(node, scope.module)
        for alias in node.names:
            if alias.name == "*":
                if isinstance(base, Module):
                    self._import_star(base, scope)
                elif isinstance(base, External):
                    scope.module.star_externals.append(base.name)
                continue
            value: Value
            if isinstance(base, Module):
                value = self._from_name(base, alias.name)
            elif isinstance(base, External):
                value = External(f"{base.name}.{alias.name}")
            else:
                value = Unknown(alias.name)
            self.bind_name(alias.asname or alias.name, value, scope)
        return Flow.NEXT

    def _from_module(self, node: ast.ImportFrom, module: Module) -> Value:
        name = node.module or ""
        if node.level == 0:
            return self.import_module(name)
        folder = posixpath.dirname(module.path)
        for _ in range(node.level - 1):
            folder = posixpath.dirname(folder)
        if not name:
            found = self.modules.find(posixpath.basename(folder), [posixpath.dirname(folder)])
        else:
            found = self.modules.find(name, [folder])
        return self._load_found(found, name or posixpath.basename(folder)) if found else Unknown(name)

    def _from_name(self, base: Module, name: str) -> Value:
        if name in base.cells:
            return base.cells[name]
        if base.is_package:
            found = self.modules.find(name, [posixpath.dirname(base.path)])
            if found is not None:
                return self._load_found(found, f"{base.name}.{name}")
        return get_attribute(self, base, name)

    def _import_star(self, base: Module, scope: Scope) -> None:
        listed = base.cells.get("__all__")
        names = list(base.cells)
        if isinstance(listed, Sequence) and listed.complete:
            names = [str(item.value) for item in listed.items if isinstance(item, Known)]
        else:
            names = [str(name) for name in names if not str(name).startswith("_")]
        for name in names:
            if name in base.cells:
                self.bind_name(name, base.cells[name], scope)
        scope.module.star_externals.extend(base.star_externals)

    def import_module(self, name: str) -> Value:
        """The module that `import name` means."""
        found = self.modules.find(name) if name and not self.library.knows(name) else None
        if found is None:
            return External(name)
        parts = name.split(".")
        for i in range(1, len(parts)):
            above = self.modules.find(".".join(parts[:i]))
            if above is not None:
                self._load_found(above, ".".join(parts[:i]))
        return self._load_found(found, name)

    def _load_found(self, found: tuple[str, bool], name: str) -> Value:
        path, is_package = found
        loaded = self.modules.loaded.get(path)
        if loaded is not None:
            return loaded
        if path.endswith("/"):
            empty = Module(
                name=name,
                path=posixpath.join(path, "__init__.py"),
                syntax=_EMPTY,
                cells={},
                is_package=True,
            )
            self.modules.loaded[path] = empty
            return empty
        return self.load(path, name, is_package) or Unknown(name)

    # Definitions.

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Flow:
        value: Value = self.make_function(node, scope)
        for decorator in reversed(node.decorator_list):
            value = self._decorated(self.eval(decorator, scope), value, scope)
        self.bind_name(node.name, value, scope)
        return Flow.NEXT

    def make_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Function:
        """A function as its definition makes it, defaults evaluated."""
        arguments = node.args
        defaults: dict[str, Value] = {}
        positional = [*arguments.posonlyargs, *arguments.args]
        for parameter, default in zip(positional[::-1], arguments.defaults[::-1], strict=False):
            defaults[parameter.arg] = self.eval(default, scope)
        for parameter, optional in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if optional is not None:
                defaults[parameter.arg] = self.eval(optional, scope)
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        return Function(node=node, scope=scope, name=name, defaults=defaults)

    def _decorated(self, decorator: Value, value: Value, scope: Scope) -> Value:
        if isinstance(decorator, (Function, Class, Partial, Instance)):
            result = self.call(decorator, self.plain_call([value], scope))
            return value if isinstance(result, Unknown) or result is NOTHING else result
        return self.library.decorate(self, decorator, value)

    def _class(self, node: ast.ClassDef, scope: Scope) -> Flow:
        bases = tuple(self.eval(base, scope) for base in node.bases)
        cells: dict[Any, Value] = {}
        inner = Scope(cells=cells, module=scope.module, parent=scope, is_class=True)
        fields = tuple(
            statement.target.id
            for statement in node.body
            if isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and not ast.unparse(statement.annotation).startswith(("ClassVar", "typing.ClassVar"))
        )
        flat = tuple(option for base in bases for option in (base.options if isinstance(base, Choice) else (base,)))
        cls = Class(node=node, module=scope.module, name=node.name, bases=flat, cells=cells, fields=fields)
        cls.record = self.library.makes_records(cls)
        self.block(node.body, inner)
        value: Value = cls
        for decorator in reversed(node.decorator_list):
            value = self._decorated(self.eval(decorator, scope), value, scope)
        self.bind_name(node.name, value, scope)
        return Flow.NEXT

    # Expressions.

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression gives."""
        handler = _EXPRESSIONS.get(type(node))
        return handler(self, node, scope) if handler is not None else Unknown(self.text(node, scope))

    def text(self, node: ast.expr, scope: Scope) -> str:
        """How the source writes an expression, on one line, shortened."""
        name = dotted_name(node)
        if name:
            return name
        if isinstance(node, ast.Constant):
            return repr(node.value)[:60]
        if node.lineno == node.end_lineno:
            line = scope.module.syntax.source.lines[node.lineno - 1]
            if line.isascii():
                text = line[node.col_offset : node.end_col_offset]
                return text if len(text) <= 60 else text[:57] + "..."
        try:
            text = " ".join(ast.unparse(node).split())
        except (RecursionError, ValueError):
            return "..."
        return text if len(text) <= 60 else text[:57] + "..."

    def _constant(self, node: ast.Constant, scope: Scope) -> Value:
        value = node.value
        if (type(value) is int) or value is None or (isinstance(value, str) and value.isascii() and value.isdigit()):
            literal = PythonLiteral(scope.module.path, scope.module.syntax, node)
            return Known(value, (Source(literal=literal),))
        return Known(value)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        return self.lookup(node.id, scope)

    def lookup(self, name: str, scope: Scope) -> Value:
        """What a name means."""
        found: Scope | None = scope
        if name in scope.global_names:
            found = None
        while found is not None:
            if name in found.cells and (found is scope or not found.is_class):
                return found.cells[name]
            found = found.parent
        if name in scope.module.cells:
            return scope.module.cells[name]
        if self.library.is_builtin(name):
            return External(f"builtins.{name}")
        if scope.module.star_externals:
            return External(f"{scope.module.star_externals[-1]}.{name}")
        return Unknown(name)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        value = get_attribute(self, self.eval(node.value, scope), node.attr)
        if isinstance(value, Unknown) and not value.label:
            value.label = self.text(node, scope)
        return value

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner = self.eval(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return self._sliced(owner, node.slice, self.text(node, scope), scope)
        return get_item(self, owner, self.eval(node.slice, scope), self.text(node, scope))

    def _sliced(self, owner: Value, node: ast.Slice, text: str, scope: Scope) -> Value:
        bounds = [
            self.eval(part, scope) if part is not None else NOTHING for part in (node.lower, node.upper, node.step)
        ]
        if all(isinstance(bound, Known) for bound in bounds) and isinstance(owner, (Sequence, Known)):
            cut = slice(*(bound.value for bound in bounds if isinstance(bound, Known)))
            return get_item(self, owner, Known(cut), text)
        upper = bounds[1]
        feeds = feeds_of(owner)
        # `data[i : i + batch_size]` cuts a batch.
        if any(operators.speaks_of_batch(source) for source in sources_of(upper)) and not isinstance(upper, Known):
            feed = self.library.new_feed(self, text, upper, 3, node_line(node.upper), scope)
            feeds = feeds | {feed}
        if isinstance(owner, Sequence):
            return Sequence(owner.kind, owner.cells, complete=False)
        return Unknown(text, feeds)

    def _slice(self, node: ast.Slice, scope: Scope) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.eval(part, scope)
        return Unknown(self.text(node, scope))

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value:
        kind = {"Tuple": "tuple", "List": "list", "Set": "set"}[type(node).__name__]
        items, complete = self._spread(node.elts, scope)
        return sequence(kind, items, complete)

    def _spread(self, nodes: list[ast.expr], scope: Scope) -> tuple[list[Value], bool]:
        items: list[Value] = []
        complete = True
        for node in nodes:
            if not isinstance(node, ast.Starred):
                items.append(self.eval(node, scope))
                continue
            value = self.eval(node.value, scope)
            found, concrete = elements(self, value)
            if concrete:
                items.extend(found)
            else:
                complete = False
                if feeds_of(value):
                    items.extend(found)
        return items, complete

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        cells: dict[Any, Value] = {}
        complete = True
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.eval(value_node, scope)
            if key_node is None:
                if isinstance(value, Mapping):
                    cells.update(value.cells)
                    complete = complete and value.complete
                else:
                    complete = False
                continue
            key = self.eval(key_node, scope)
            if isinstance(key, Known) and isinstance(key.value, (str, int, float, bool, bytes, type(None))):
                name = str(key.value)
                self.name_feeds(value, name)
                cells[key.value] = carried(value, name)
            else:
                complete = False
        return Mapping(cells, complete)

    def _binary(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.eval(node.left, scope), self.eval(node.right, scope)
        if isinstance(left, Known) and isinstance(right, Known) and not left.sources and not right.sources:
            return operators.binary(node.op, left, right, "", "")
        return operators.binary(node.op, left, right, self.text(node.left, scope), self.text(node.right, scope))

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Value:
        operand = node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) is int:
            literal = PythonLiteral(scope.module.path, scope.module.syntax, node)
            return Known(-operand.value, (Source(literal=literal),))
        return operators.unary(node.op, self.eval(operand, scope), self.text(node, scope))

    def _bool(self, node: ast.BoolOp, scope: Scope) -> Value:
        stops = isinstance(node.op, ast.Or)
        options: list[Value] = []
        for item in node.values:
            value = self.eval(item, scope)
            known = operators.truth(value)
            if known is stops:
                options.append(value)
                return join(options)
            last = item is node.values[-1]
            if known is None or last:
                options.append(value)
        return join(options)

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        left = self.eval(node.left, scope)
        answer: bool | None = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.eval(comparator, scope)
            holds = operators.compare(op, left, right)
            if holds is False:
                return Known(False)
            answer = answer if holds else None
            left = right
        return Known(True) if answer else Unknown(self.text(node, scope))

    def _conditional(self, node: ast.IfExp, scope: Scope) -> Value:
        known = operators.truth(self.eval(node.test, scope))
        if known is None:
            return join([self.eval(node.body, scope), self.eval(node.orelse, scope)])
        return self.eval(node.body if known else node.orelse, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return self.make_function(node, scope)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Value:
        value = self.eval(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def _await(self, node: ast.Await, scope: Scope) -> Value:
        return self.eval(node.value, scope)

    def _yield(self, node: ast.Yield, scope: Scope) -> Value:
        scope.yields.append(self.eval(node.value, scope) if node.value is not None else NOTHING)
        return Unknown("what is sent in")

    def _yield_from(self, node: ast.YieldFrom, scope: Scope) -> Value:
        scope.yields.extend(elements(self, self.eval(node.value, scope))[0])
        return Unknown("what is sent in")

    def _starred(self, node: ast.Starred, scope: Scope) -> Value:
        return self.eval(node.value, scope)

    def _formatted(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.eval(part.value, scope)
            spec = self.eval(part.format_spec, scope) if part.format_spec is not None else Known("")
            if not (isinstance(value, Known) and isinstance(spec, Known) and isinstance(spec.value, str)):
                return Unknown(self.text(node, scope))
            try:
                shown = repr(value.value) if part.conversion == ord("r") else value.value
                parts.append(format(shown, spec.value) if len(spec.value) < 16 else str(shown))
            except (TypeError, ValueError):
                return Unknown(self.text(node, scope))
        return Known("".join(parts)[:10_000])

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
        inner = Scope(cells={}, module=scope.module, parent=scope, function=scope.function)
        inner.arguments = scope.arguments
        collected: list[tuple[Value, Value]] = []
        complete = self._generate(node, 0, inner, collected)
        if isinstance(node, ast.DictComp):
            cells: dict[Any, Value] = {}
            for key, value in collected:
                if isinstance(key, Known):
                    cells[key.value] = carried(value, str(key.value))
                    self.name_feeds(value, str(key.value))
                else:
                    complete = False
            if not complete and not cells:
                feeds = frozenset().union(*(feeds_of(value) for _, value in collected)) if collected else frozenset()
                return Unknown(self.text(node, scope), feeds)
            return Mapping(cells, complete)
        values = [value for _, value in collected]
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        if complete:
            return sequence(kind, values)
        feeds = frozenset().union(*(feeds_of(value) for value in values)) if values else frozenset()
        return Unknown(self.text(node, scope), feeds, item=join(values) if values else None)

    def _generate(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        depth: int,
        scope: Scope,
        collected: list[tuple[Value, Value]],
    ) -> bool:
        """Add what a comprehension gives; whether that is all it gives."""
        if depth == len(node.generators):
            self.step()
            if isinstance(node, ast.DictComp):
                collected.append((self.eval(node.key, scope), self.eval(node.value, scope)))
            else:
                collected.append((NOTHING, self.eval(node.elt, scope)))
            return True
        generator = node.generators[depth]
        items, complete = elements(self, self.eval(generator.iter, scope))
        for item in items:
            self.assign(generator.target, item, scope)
            tests = [operators.truth(self.eval(test, scope)) for test in generator.ifs]
            if False in tests:
                continue
            if None in tests:
                complete = False
            complete = self._generate(node, depth + 1, scope, collected) and complete
        return complete

    # Calls.

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        self.step()
        function = self.eval(node.func, scope)
        args, complete = self._spread(node.args, scope)
        call = Call(args=args, kwargs={}, node=node, scope=scope, open=not complete)
        for keyword in node.keywords:
            value = self.eval(keyword.value, scope)
            if keyword.arg is not None:
                call.kwargs[keyword.arg] = carried(value, keyword.arg)
                continue
            if isinstance(value, Instance) and isinstance(value.native, Mapping):
                value = value.native
            if isinstance(value, Mapping):
                for key, item in value.cells.items():
                    call.kwargs[str(key)] = self.resolved(item)
                call.open = call.open or not value.complete
            else:
                call.open = True
        return self.call(function, call)

    def plain_call(self, args: list[Value], scope: Scope | None = None) -> Call:
        """A call that the source does not write."""
        return Call(args=args, kwargs={}, node=None, scope=scope or _NOWHERE)

    def call(self, function: Value, call: Call) -> Value:
        """What a call gives."""
        if isinstance(function, Function):
            return self.call_function(function, call)
        if isinstance(function, Class):
            return self.instantiate(function, call)
        if isinstance(function, Partial):
            merged = Call(
                args=[*function.args, *call.args],
                kwargs={**function.kwargs, **call.kwargs},
                node=call.node,
                scope=call.scope,
                open=call.open,
            )
            return self.call(function.function, merged)
        if isinstance(function, Choice):
            return join(self.call(option, call) for option in function.options)
        if isinstance(function, Static):
            return self.call(function.function, call)
        if isinstance(function, Instance):
            member = class_attribute(function.cls, "__call__")
            if member is not None and isinstance(member[0], Function):
                return self.call_function(bind(member[0], function, member[1]), call)
            if isinstance(function.native, Native):
                return function.native.call(self, call)
            return self.library.call_object(self, function, call)
        if isinstance(function, Native):
            return function.call(self, call)
        return self.library.call(self, function, call)

    def is_running(self, function: Function) -> bool:
        """Whether a function is being followed already."""
        return any(running.node is function.node for running in self._stack)

    def call_function(self, function: Function, call: Call) -> Value:
        """Follow a function of the project."""
        node = function.node
        times = self._calls.get(id(node), 0)
        deep = len(self._stack) >= MAX_DEPTH
        nested = sum(running.node is node for running in self._stack)
        passed = NO_FEEDS.union(*(feeds_of(value) for value in (*call.args, *call.kwargs.values())))
        if deep or nested >= 2 or times >= MAX_CALLS_OF_ONE:
            return Unknown(f"{function.name}(...)", passed)
        self._calls[id(node)] = times + 1
        self.entered.add(id(node))
        self.step()
        scope = Scope(cells={}, module=function.scope.module, parent=function.scope, function=function)
        if function.scope.is_class:
            scope.parent = function.scope.parent
        self._bind_arguments(function, call, scope)
        self._stack.append(function)
        made = len(self.feeds)
        try:
            if isinstance(node, ast.Lambda):
                return self.eval(node.body, scope)
            self.fork(lambda: self.block(node.body, scope))
        except RecursionError:
            return Unknown(f"{function.name}(...)", passed)
        finally:
            self._stack.pop()
        if self._yields(node):
            item = join(scope.yields) if scope.yields else None
            feeds = feeds_of(item) if item is not None else NO_FEEDS
            feeds = feeds | frozenset(self.feeds[made:])
            return Unknown(f"{function.name}(...)", feeds, item=_tainted(item, feeds))
        return join(scope.returns) if scope.returns else NOTHING

    def _yields(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
        """Whether a function is a generator."""
        known = self._generators.get(id(node))
        if known is None:
            known = not isinstance(node, ast.Lambda) and _is_generator(node)
            self._generators[id(node)] = known
        return known

    def _bind_arguments(self, function: Function, call: Call, scope: Scope) -> None:
        arguments = function.node.args
        positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
        given = [function.receiver, *call.args] if function.receiver is not None else list(call.args)
        kwargs = dict(call.kwargs)
        cells = scope.cells
        for i, name in enumerate(positional):
            if i < len(given):
                held = given[i]
                assert held is not None
                cells[name] = carried(held, name) if held is not function.receiver else held
            elif name in kwargs:
                cells[name] = carried(kwargs.pop(name), name)
            elif name in function.defaults:
                default = carried(function.defaults[name], name)
                cells[name] = join([default, Unknown(name)]) if call.open else default
            else:
                cells[name] = Unknown(name)
        scope.arguments = [cells[name] for name in positional]
        rest = [value for value in given[len(positional) :] if value is not None]
        if arguments.vararg is not None:
            cells[arguments.vararg.arg] = sequence("tuple", rest, not call.open)
        for parameter in arguments.kwonlyargs:
            name = parameter.arg
            if name in kwargs:
                cells[name] = carried(kwargs.pop(name), name)
            elif name in function.defaults:
                cells[name] = carried(function.defaults[name], name)
            else:
                cells[name] = Unknown(name)
        if arguments.kwarg is not None:
            cells[arguments.kwarg.arg] = Mapping(dict(kwargs), complete=not call.open)

    def call_root(self, function: Function, receiver: Value | None = None) -> Value:
        """Follow a function that nothing seen calls: parameters have their defaults or are unknown."""
        target = bind(function, receiver, function.owner) if receiver is not None else function
        try:
            return self.call_function(target, self.plain_call([]))
        except Ended:
            return Unknown(function.name)

    def call_back(self, function: Value, feeds: frozenset[Feed]) -> Value:
        """Follow, once, a function that was given to a library: its parameters hold what comes from `feeds`."""
        if isinstance(function, Partial):
            inner = function.function
            if isinstance(inner, Function):
                return self.call_back(
                    Function(
                        node=inner.node,
                        scope=inner.scope,
                        name=inner.name,
                        defaults={**inner.defaults, **function.kwargs},
                        receiver=inner.receiver,
                        owner=inner.owner,
                    ),
                    feeds,
                )
            return Unknown("")
        if not isinstance(function, Function) or id(function.node) in self._called_back:
            return Unknown("")
        self._called_back.add(id(function.node))
        arguments = function.node.args
        count = len(arguments.posonlyargs) + len(arguments.args) - (function.receiver is not None)
        names = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
        names = names[len(names) - count :]
        args: list[Value] = []
        for name in names:
            if name in function.defaults:
                break
            args.append(Unknown(name, feeds))
        try:
            return self.call_function(function, self.plain_call(args))
        except Ended:
            return Unknown(function.name)

    def instantiate(self, cls: Class, call: Call) -> Value:
        """Make an object of a class of the project."""
        instance = Instance(cls=cls, cells={})
        for found in mro(cls):
            found.instances.append(instance)
        maker = class_attribute(cls, "__new__")
        if maker is None and any(base.name.endswith(("Enum", "Flag")) for base in external_bases(cls)):
            return self._enum_member(cls, call)
        init = class_attribute(cls, "__init__")
        if self._only_computes(cls):
            return instance
        if init is not None and isinstance(init[0], Function):
            if any(base.name == "builtins.dict" for base in external_bases(cls)):
                instance.native = Mapping({})
            self.call_function(bind(init[0], instance, init[1]), call)
            if instance.native is None:
                self.library.make_native(self, instance, None)
        elif cls.record or any(found.record for found in mro(cls)):
            self._fill_record(instance, call)
            self.library.make_native(self, instance, call)
        else:
            self.library.make_native(self, instance, call)
        self.library.after_construction(self, instance, call)
        return instance

    def _only_computes(self, cls: Class) -> bool:
        """Whether a class is a plain torch module whose text says nothing of batch sizes or loaders.

        Models are the largest part of many programs, and none of a batch size's way.
        """
        known = self._computing.get(id(cls.node))
        if known is None:
            roots = external_bases(cls)
            known = bool(roots) and all(base.name in _MODULES for base in roots)
            for found in mro(cls) if known else ():
                lines = found.module.syntax.source.lines[found.node.lineno - 1 : found.node.end_lineno]
                known = known and not any(_FEEDING.search(line) for line in lines)
            self._computing[id(cls.node)] = known
        return known

    def make(self, cls: Class) -> Value:
        """An object of a class of which nothing was seen to be made."""
        try:
            return self.instantiate(cls, self.plain_call([]))
        except Ended:
            return Instance(cls=cls, cells={})

    def _enum_member(self, cls: Class, call: Call) -> Value:
        return call.args[0] if call.args else Unknown(cls.name)

    def _fill_record(self, instance: Instance, call: Call) -> None:
        names: list[str] = []
        for found in reversed(mro(instance.cls)):
            names += [name for name in found.fields if name not in names]
        given = dict(zip(names, call.args, strict=False))
        for name in names:
            if name in given:
                value = given[name]
            elif name in call.kwargs:
                value = call.kwargs[name]
            else:
                member = class_attribute(instance.cls, name)
                value = field_default(self, member[0]) if member is not None else Unknown(name)
                if call.open:
                    value = join([value, Unknown(name)])
            self.store(instance.cells, name, carried(value, name))
        for name, value in call.kwargs.items():
            if name not in names:
                self.store(instance.cells, name, carried(value, name))
        after = class_attribute(instance.cls, "__post_init__")
        if after is not None and isinstance(after[0], Function):
            self.call_function(bind(after[0], instance, after[1]), self.plain_call([]))

    def super_of(self, call: Call) -> Value:
        """What `super()` or `super(Class, self)` gives where it is called."""
        if len(call.args) == 2 and isinstance(call.args[0], Class):
            return Super(cls=call.args[0], receiver=call.args[1])
        scope: Scope | None = call.scope
        while scope is not None and (scope.function is None or scope.function.owner is None):
            scope = scope.parent
        if scope is None or scope.function is None or scope.function.owner is None or not scope.arguments:
            return Unknown("super()")
        return Super(cls=scope.function.owner, receiver=scope.arguments[0])

    # Feeds.

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
        for feed in feeds.union(*self._loops):
            feed.trained = True

    def resolved(self, value: Value) -> Value:
        """The value itself, with an interpolation replaced by what it stands for."""
        return self.library.resolve(self, value) if isinstance(value, Reference) else value


_EMPTY = parse(b"")
_NOWHERE = Scope(cells={}, module=Module(name="", path="", syntax=_EMPTY, cells={}))


def node_line(node: ast.expr | None) -> int:
    """Line of an expression; 0 where there is none."""
    return node.lineno if node is not None else 0


def _join_cells(values: list[Value]) -> Value:
    held = [value for value in values if isinstance(value, Items)]
    if held:
        return max(held, key=lambda items: len(items.values))
    return join(values)


def _tainted(item: Value | None, feeds: frozenset[Feed]) -> Value | None:
    if item is None:
        return None
    if isinstance(item, Unknown):
        return Unknown(item.label, item.feeds | feeds, item.sources, item.item)
    if isinstance(item, Sequence):
        return sequence(item.kind, [_tainted(part, feeds) or part for part in item.items], item.complete)
    return item


def _loaded(target: ast.expr) -> ast.expr:
    """A target as the expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.Name(id=target.id, ctx=ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(value=target.value, slice=target.slice, ctx=ast.Load())


def _is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        found = pending.pop()
        if isinstance(found, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(found))
    return False


_STATEMENTS: dict[type[ast.stmt], Callable[[Run, Any, Scope], Flow]] = {
    ast.Expr: Run._expression,
    ast.Assign: Run._assign,
    ast.AnnAssign: Run._annotated,
    ast.AugAssign: Run._augmented,
    ast.Delete: Run._delete,
    ast.If: Run._if,
    ast.For: Run._for,
    ast.AsyncFor: Run._for,
    ast.While: Run._while,
    ast.With: Run._with,
    ast.AsyncWith: Run._with,
    ast.Try: Run._try,
    ast.Raise: Run._raise,
    ast.Return: Run._return,
    ast.Break: Run._break,
    ast.Continue: Run._continue,
    ast.Global: Run._global,
    ast.Nonlocal: Run._nonlocal,
    ast.Assert: Run._assert,
    ast.Match: Run._match,
    ast.Import: Run._import,
    ast.ImportFrom: Run._import_from,
    ast.FunctionDef: Run._function,
    ast.AsyncFunctionDef: Run._function,
    ast.ClassDef: Run._class,
}

_EXPRESSIONS: dict[type[ast.expr], Callable[[Run, Any, Scope], Value]] = {
    ast.Constant: Run._constant,
    ast.Name: Run._name,
    ast.Attribute: Run._attribute,
    ast.Subscript: Run._subscript,
    ast.Slice: Run._slice,
    ast.Tuple: Run._tuple,
    ast.List: Run._tuple,
    ast.Set: Run._tuple,
    ast.Dict: Run._dict,
    ast.BinOp: Run._binary,
    ast.UnaryOp: Run._unary,
    ast.BoolOp: Run._bool,
    ast.Compare: Run._compare,
    ast.IfExp: Run._conditional,
    ast.Lambda: Run._lambda,
    ast.NamedExpr: Run._named,
    ast.Await: Run._await,
    ast.Yield: Run._yield,
    ast.YieldFrom: Run._yield_from,
    ast.Starred: Run._starred,
    ast.JoinedStr: Run._formatted,
    ast.ListComp: Run._comprehension,
    ast.SetComp: Run._comprehension,
    ast.GeneratorExp: Run._comprehension,
    ast.DictComp: Run._comprehension,
    ast.Call: Run._call,
}
