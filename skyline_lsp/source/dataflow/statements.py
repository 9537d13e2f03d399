"""Statements: what each does to the names and objects of a program that is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.branches import Ended, Flow
from skyline_lsp.source.dataflow.imports import import_, import_from
from skyline_lsp.source.dataflow.objects import (
    bind,
    class_attribute,
    elements,
    set_attribute,
    set_item,
    unpack,
)
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    Choice,
    Class,
    Function,
    Instance,
    Known,
    Mapping,
    Partial,
    Scope,
    Source,
    Unknown,
    Value,
    carried,
    feeds_of,
    sources_of,
)

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run


def block(run: Run, body: list[ast.stmt], scope: Scope) -> Flow:
    """Follow statements in order."""
    for statement in body:
        flow = run.statement(statement, scope)
        if flow is not Flow.NEXT:
            return flow
    return Flow.NEXT


def statement(run: Run, node: ast.stmt, scope: Scope) -> Flow:
    """Follow one statement."""
    run.step()
    handler = _STATEMENTS.get(type(node))
    if handler is None:
        return Flow.NEXT
    try:
        return handler(run, node, scope)
    except RecursionError:
        return Flow.NEXT


def _expression(run: Run, node: ast.Expr, scope: Scope) -> Flow:
    run.eval(node.value, scope)
    return Flow.NEXT


def _assignment(run: Run, node: ast.Assign, scope: Scope) -> Flow:
    value = run.eval(node.value, scope)
    for target in node.targets:
        run.assign(target, value, scope)
    return Flow.NEXT


def _annotated(run: Run, node: ast.AnnAssign, scope: Scope) -> Flow:
    if node.value is not None:
        run.assign(node.target, run.eval(node.value, scope), scope)
    return Flow.NEXT


def _augmented(run: Run, node: ast.AugAssign, scope: Scope) -> Flow:
    target = node.target
    as_expression = ast.copy_location(_loaded(target), target)
    old = run.eval(as_expression, scope)
    by = run.eval(node.value, scope)
    new = operators.binary(node.op, old, by, run.text(target, scope), run.text(node.value, scope))
    run.assign(target, new, scope)
    return Flow.NEXT


def assign(run: Run, target: ast.expr, value: Value, scope: Scope) -> None:
    """Bind a target to a value."""
    if isinstance(target, ast.Name):
        value = carried(value, target.id)
        run.name_feeds(value, target.id)
        run.bind_name(target.id, value, scope)
    elif isinstance(target, ast.Attribute):
        set_attribute(run, run.eval(target.value, scope), target.attr, value)
    elif isinstance(target, ast.Subscript):
        set_item(run, run.eval(target.value, scope), run.eval(target.slice, scope), value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = next((i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)), None)
        for item, part in zip(target.elts, unpack(run, value, len(target.elts), starred), strict=True):
            run.assign(item.value if isinstance(item, ast.Starred) else item, part, scope)


def bind_name(run: Run, name: str, value: Value, scope: Scope) -> None:
    """Bind a name in the scope that it belongs to."""
    if name in scope.global_names:
        run.store(scope.module.cells, name, value)
        return
    if name in scope.outer_names:
        outer = scope.parent
        while outer is not None:
            if name in outer.cells:
                run.store(outer.cells, name, value)
                return
            outer = outer.parent
    run.store(scope.cells, name, value)


def _delete(run: Run, node: ast.Delete, scope: Scope) -> Flow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            run.remove(scope.cells, target.id)
        elif isinstance(target, ast.Subscript):
            owner, key = run.eval(target.value, scope), run.eval(target.slice, scope)
            if isinstance(owner, Mapping) and isinstance(key, Known):
                run.remove(owner.cells, key.value)
    return Flow.NEXT


def _if(run: Run, node: ast.If, scope: Scope) -> Flow:
    test = run.eval(node.test, scope)
    known = operators.truth(test)
    if known is None:
        return run.fork(lambda: run.block(node.body, scope), lambda: run.block(node.orelse, scope))
    taken, other = (node.body, node.orelse) if known else (node.orelse, node.body)
    if not known:
        _note_limit(run, node, scope)
    automatic = _automatic(run, node, scope) if known else []
    try:
        # In a fork, for its changes to be taken back where the branch ends in an exception.
        flow = run.fork(lambda: run.block(taken, scope))
    except Ended:
        return run.block(other, scope)
    for target, value in automatic:
        _keep_automatic(run, target, value, scope)
    return flow


def _automatic(run: Run, node: ast.If, scope: Scope) -> list[tuple[ast.expr, Known]]:
    """What a condition compares that is -1 now: `if batch_size == -1: batch_size = find_batch_size()`."""
    found: list[tuple[ast.expr, Known]] = []
    for part in ast.walk(node.test):
        if isinstance(part, ast.Compare) and isinstance(part.left, (ast.Name, ast.Attribute)):
            value = run.eval(part.left, scope)
            if isinstance(value, Known) and value.value == -1 and value.sources:
                found.append((part.left, value))
    return found


def _keep_automatic(run: Run, target: ast.expr, old: Known, scope: Scope) -> None:
    """A number written in place of the -1 would be used as it is, so the -1 stays the best place to write it."""
    new = run.eval(target, scope)
    if isinstance(new, (Known, Unknown)) and not (isinstance(new, Known) and new.value == -1):
        sources = (*old.sources, *new.sources)
        kept = Known(new.value, sources) if isinstance(new, Known) else Unknown(new.label, new.feeds, sources)
        run.assign(target, kept, scope)
    elif isinstance(new, Choice):
        run.assign(target, Unknown("an automatic batch size", sources=(*old.sources, *sources_of(new))), scope)


def _note_limit(run: Run, node: ast.If, scope: Scope) -> None:
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
        value = run.lookup(name, scope)
        bound = run.eval(test.comparators[0], scope)
        if isinstance(value, Known) and value.sources and isinstance(bound, Known) and isinstance(bound.value, int):
            maximum = bound.value if isinstance(test.ops[0], ast.Gt) else bound.value - 1
            remark = f"limited to {run.text(test.comparators[0], scope)} ({bound.value})"
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
            run.bind_name(name, Known(value.value, sources), scope)


def _for(run: Run, node: ast.For | ast.AsyncFor, scope: Scope) -> Flow:
    iterable = run.eval(node.iter, scope)
    items, concrete = elements(run, iterable)
    feeds = feeds_of(iterable)
    if not feeds and not concrete and items:
        feeds = feeds_of(items[0])
    for feed in feeds:
        feed.iterated = True
    run.loops.append(feeds)
    try:
        for item in items:
            flow = _loop_body(run, node, item, scope)
            if flow is Flow.BREAK:
                return Flow.NEXT
            if flow is Flow.RETURN:
                return flow
    finally:
        run.loops.pop()
    return run.block(node.orelse, scope)


def _loop_body(run: Run, node: ast.For | ast.AsyncFor, item: Value, scope: Scope) -> Flow:
    run.assign(node.target, item, scope)
    try:
        flow = run.fork(lambda: run.block(node.body, scope))
    except Ended:
        return Flow.NEXT
    return Flow.NEXT if flow is Flow.CONTINUE else flow


def _while(run: Run, node: ast.While, scope: Scope) -> Flow:
    if operators.truth(run.eval(node.test, scope)) is False:
        return run.block(node.orelse, scope)
    try:
        flow = run.fork(lambda: run.block(node.body, scope))
    except Ended:
        flow = Flow.NEXT
    return Flow.RETURN if flow is Flow.RETURN else Flow.NEXT


def _with(run: Run, node: ast.With | ast.AsyncWith, scope: Scope) -> Flow:
    for item in node.items:
        value = run.eval(item.context_expr, scope)
        entered = value
        if isinstance(value, Instance):
            enter = class_attribute(value.cls, "__enter__")
            if enter is not None and isinstance(enter[0], Function):
                entered = run.call(bind(enter[0], value, enter[1]), run.plain_call([]))
        elif isinstance(value, Unknown) and value.item is not None:
            entered = value.item
        if item.optional_vars is not None:
            run.assign(item.optional_vars, entered, scope)
    return run.block(node.body, scope)


def _try(run: Run, node: ast.Try, scope: Scope) -> Flow:
    body = [*node.body, *node.orelse]
    branches: list[Callable[[], Flow]] = [lambda: run.block(body, scope)]
    for handler in node.handlers:
        branches.append(lambda handler=handler: _handler(run, handler, scope))  # type: ignore[misc]
    try:
        flow = run.fork(*branches[: 1 if _cannot_raise(run, node, scope) else None])
    except Ended:
        run.block(node.finalbody, scope)
        raise
    final = run.block(node.finalbody, scope)
    return final if final is not Flow.NEXT else flow


def _handler(run: Run, handler: ast.ExceptHandler, scope: Scope) -> Flow:
    if handler.name:
        run.bind_name(handler.name, Unknown(handler.name), scope)
    return run.block(handler.body, scope)


def _cannot_raise(run: Run, node: ast.Try, scope: Scope) -> bool:
    """Whether an import that is tried finds a module of the project, and nothing else is tried."""
    return all(
        isinstance(statement, ast.ImportFrom)
        and statement.level == 0
        and run.modules.find(statement.module or "") is not None
        for statement in node.body
    )


def _raise(run: Run, node: ast.Raise, scope: Scope) -> Flow:
    raise Ended


def _return(run: Run, node: ast.Return, scope: Scope) -> Flow:
    scope.returns.append(run.eval(node.value, scope) if node.value is not None else NOTHING)
    return Flow.RETURN


def _break(run: Run, node: ast.Break, scope: Scope) -> Flow:
    return Flow.BREAK


def _continue(run: Run, node: ast.Continue, scope: Scope) -> Flow:
    return Flow.CONTINUE


def _global(run: Run, node: ast.Global, scope: Scope) -> Flow:
    scope.global_names.update(node.names)
    return Flow.NEXT


def _nonlocal(run: Run, node: ast.Nonlocal, scope: Scope) -> Flow:
    scope.outer_names.update(node.names)
    return Flow.NEXT


def _assert(run: Run, node: ast.Assert, scope: Scope) -> Flow:
    run.eval(node.test, scope)
    return Flow.NEXT


def _match(run: Run, node: ast.Match, scope: Scope) -> Flow:
    subject = run.eval(node.subject, scope)
    possible: list[Callable[[], Flow]] = []
    for case in node.cases:
        matches = _matches(run, case.pattern, subject, scope)
        if case.guard is not None and matches is not False:
            guard = operators.truth(run.eval(case.guard, scope))
            matches = matches if guard is True else False if guard is False else None
        if matches is False:
            continue
        possible.append(lambda case=case: run.block(case.body, scope))  # type: ignore[misc]
        if matches is True:
            break
    else:
        possible.append(lambda: Flow.NEXT)
    return run.fork(*possible)


def _matches(run: Run, pattern: ast.pattern, subject: Value, scope: Scope) -> bool | None:
    if isinstance(pattern, ast.MatchValue):
        return operators.compare(ast.Eq(), subject, run.eval(pattern.value, scope))
    if isinstance(pattern, ast.MatchSingleton):
        return operators.compare(ast.Is(), subject, Known(pattern.value))
    if isinstance(pattern, ast.MatchOr):
        answers = [_matches(run, option, subject, scope) for option in pattern.patterns]
        return True if True in answers else None if None in answers else False
    if isinstance(pattern, ast.MatchAs):
        answer = True if pattern.pattern is None else _matches(run, pattern.pattern, subject, scope)
        if pattern.name and answer is not False:
            run.bind_name(pattern.name, subject, scope)
        return answer
    return None


def _function_definition(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Flow:
    value: Value = run.make_function(node, scope)
    for decorator in reversed(node.decorator_list):
        value = _decorated(run, run.eval(decorator, scope), value, scope)
    run.bind_name(node.name, value, scope)
    return Flow.NEXT


def make_function(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Function:
    """A function as its definition makes it, defaults evaluated."""
    arguments = node.args
    defaults: dict[str, Value] = {}
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter, default in zip(positional[::-1], arguments.defaults[::-1], strict=False):
        defaults[parameter.arg] = run.eval(default, scope)
    for parameter, optional in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if optional is not None:
            defaults[parameter.arg] = run.eval(optional, scope)
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return Function(node=node, scope=scope, name=name, defaults=defaults)


def _decorated(run: Run, decorator: Value, value: Value, scope: Scope) -> Value:
    if isinstance(decorator, (Function, Class, Partial, Instance)):
        result = run.call(decorator, run.plain_call([value], scope))
        return value if isinstance(result, Unknown) or result is NOTHING else result
    return run.library.decorate(run, decorator, value)


def _class(run: Run, node: ast.ClassDef, scope: Scope) -> Flow:
    bases = tuple(run.eval(base, scope) for base in node.bases)
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
    cls.record = run.library.makes_records(cls)
    run.block(node.body, inner)
    value: Value = cls
    for decorator in reversed(node.decorator_list):
        value = _decorated(run, run.eval(decorator, scope), value, scope)
    run.bind_name(node.name, value, scope)
    return Flow.NEXT


def _loaded(target: ast.expr) -> ast.expr:
    """A target as the expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.Name(id=target.id, ctx=ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(value=target.value, slice=target.slice, ctx=ast.Load())


_STATEMENTS: dict[type[ast.stmt], Callable[[Run, Any, Scope], Flow]] = {
    ast.Expr: _expression,
    ast.Assign: _assignment,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Assert: _assert,
    ast.Match: _match,
    ast.Import: import_,
    ast.ImportFrom: import_from,
    ast.FunctionDef: _function_definition,
    ast.AsyncFunctionDef: _function_definition,
    ast.ClassDef: _class,
}
