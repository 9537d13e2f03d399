"""Expressions: what each gives, as far as it can be known."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.objects import (
    elements,
    get_attribute,
    get_item,
)
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    Call,
    External,
    Instance,
    Known,
    Mapping,
    PythonLiteral,
    Scope,
    Sequence,
    Source,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    sequence,
    sources_of,
)
from skyline_lsp.source.syntax import dotted_name

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run


def evaluate(run: Run, node: ast.expr, scope: Scope) -> Value:
    """What an expression gives."""
    handler = _EXPRESSIONS.get(type(node))
    return handler(run, node, scope) if handler is not None else Unknown(run.text(node, scope))


def text(run: Run, node: ast.expr, scope: Scope) -> str:
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


def _constant(run: Run, node: ast.Constant, scope: Scope) -> Value:
    value = node.value
    if (type(value) is int) or value is None or (isinstance(value, str) and value.isascii() and value.isdigit()):
        literal = PythonLiteral(scope.module.path, scope.module.syntax, node)
        return Known(value, (Source(literal=literal),))
    return Known(value)


def _name(run: Run, node: ast.Name, scope: Scope) -> Value:
    return run.lookup(node.id, scope)


def lookup(run: Run, name: str, scope: Scope) -> Value:
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
    if run.library.is_builtin(name):
        return External(f"builtins.{name}")
    if scope.module.star_externals:
        return External(f"{scope.module.star_externals[-1]}.{name}")
    return Unknown(name)


def _attribute(run: Run, node: ast.Attribute, scope: Scope) -> Value:
    value = get_attribute(run, run.eval(node.value, scope), node.attr)
    if isinstance(value, Unknown) and not value.label:
        value.label = run.text(node, scope)
    return value


def _subscript(run: Run, node: ast.Subscript, scope: Scope) -> Value:
    owner = run.eval(node.value, scope)
    if isinstance(node.slice, ast.Slice):
        return _sliced(run, owner, node.slice, run.text(node, scope), scope)
    return get_item(run, owner, run.eval(node.slice, scope), run.text(node, scope))


def _sliced(run: Run, owner: Value, node: ast.Slice, text: str, scope: Scope) -> Value:
    bounds = [run.eval(part, scope) if part is not None else NOTHING for part in (node.lower, node.upper, node.step)]
    if all(isinstance(bound, Known) for bound in bounds) and isinstance(owner, (Sequence, Known)):
        cut = slice(*(bound.value for bound in bounds if isinstance(bound, Known)))
        return get_item(run, owner, Known(cut), text)
    upper = bounds[1]
    feeds = feeds_of(owner)
    # `data[i : i + batch_size]` cuts a batch.
    if any(operators.speaks_of_batch(source) for source in sources_of(upper)) and not isinstance(upper, Known):
        feed = run.library.new_feed(run, text, upper, 3, _line(node.upper), scope)
        feeds = feeds | {feed}
    if isinstance(owner, Sequence):
        return Sequence(owner.kind, owner.cells, complete=False)
    return Unknown(text, feeds)


def _slice_expression(run: Run, node: ast.Slice, scope: Scope) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            run.eval(part, scope)
    return Unknown(run.text(node, scope))


def _display(run: Run, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value:
    kind = {"Tuple": "tuple", "List": "list", "Set": "set"}[type(node).__name__]
    items, complete = spread(run, node.elts, scope)
    return sequence(kind, items, complete)


def spread(run: Run, nodes: list[ast.expr], scope: Scope) -> tuple[list[Value], bool]:
    items: list[Value] = []
    complete = True
    for node in nodes:
        if not isinstance(node, ast.Starred):
            items.append(run.eval(node, scope))
            continue
        value = run.eval(node.value, scope)
        found, concrete = elements(run, value)
        if concrete:
            items.extend(found)
        else:
            complete = False
            if feeds_of(value):
                items.extend(found)
    return items, complete


def _dictionary(run: Run, node: ast.Dict, scope: Scope) -> Value:
    cells: dict[Any, Value] = {}
    complete = True
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = run.eval(value_node, scope)
        if key_node is None:
            if isinstance(value, Mapping):
                cells.update(value.cells)
                complete = complete and value.complete
            else:
                complete = False
            continue
        key = run.eval(key_node, scope)
        if isinstance(key, Known) and isinstance(key.value, (str, int, float, bool, bytes, type(None))):
            name = str(key.value)
            run.name_feeds(value, name)
            cells[key.value] = carried(value, name)
        else:
            complete = False
    return Mapping(cells, complete)


def _binary(run: Run, node: ast.BinOp, scope: Scope) -> Value:
    left, right = run.eval(node.left, scope), run.eval(node.right, scope)
    if isinstance(left, Known) and isinstance(right, Known) and not left.sources and not right.sources:
        return operators.binary(node.op, left, right, "", "")
    return operators.binary(node.op, left, right, run.text(node.left, scope), run.text(node.right, scope))


def _unary(run: Run, node: ast.UnaryOp, scope: Scope) -> Value:
    operand = node.operand
    if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) is int:
        literal = PythonLiteral(scope.module.path, scope.module.syntax, node)
        return Known(-operand.value, (Source(literal=literal),))
    return operators.unary(node.op, run.eval(operand, scope), run.text(node, scope))


def _boolean(run: Run, node: ast.BoolOp, scope: Scope) -> Value:
    stops = isinstance(node.op, ast.Or)
    options: list[Value] = []
    for item in node.values:
        value = run.eval(item, scope)
        known = operators.truth(value)
        if known is stops:
            options.append(value)
            return join(options)
        last = item is node.values[-1]
        if known is None or last:
            options.append(value)
    return join(options)


def _compare(run: Run, node: ast.Compare, scope: Scope) -> Value:
    left = run.eval(node.left, scope)
    answer: bool | None = True
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = run.eval(comparator, scope)
        holds = operators.compare(op, left, right)
        if holds is False:
            return Known(False)
        answer = answer if holds else None
        left = right
    return Known(True) if answer else Unknown(run.text(node, scope))


def _conditional(run: Run, node: ast.IfExp, scope: Scope) -> Value:
    known = operators.truth(run.eval(node.test, scope))
    if known is None:
        return join([run.eval(node.body, scope), run.eval(node.orelse, scope)])
    return run.eval(node.body if known else node.orelse, scope)


def _lambda(run: Run, node: ast.Lambda, scope: Scope) -> Value:
    return run.make_function(node, scope)


def _named(run: Run, node: ast.NamedExpr, scope: Scope) -> Value:
    value = run.eval(node.value, scope)
    run.assign(node.target, value, scope)
    return value


def _await(run: Run, node: ast.Await, scope: Scope) -> Value:
    return run.eval(node.value, scope)


def _yield(run: Run, node: ast.Yield, scope: Scope) -> Value:
    scope.yields.append(run.eval(node.value, scope) if node.value is not None else NOTHING)
    return Unknown("what is sent in")


def _yield_from(run: Run, node: ast.YieldFrom, scope: Scope) -> Value:
    scope.yields.extend(elements(run, run.eval(node.value, scope))[0])
    return Unknown("what is sent in")


def _starred(run: Run, node: ast.Starred, scope: Scope) -> Value:
    return run.eval(node.value, scope)


def _formatted(run: Run, node: ast.JoinedStr, scope: Scope) -> Value:
    parts: list[str] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = run.eval(part.value, scope)
        spec = run.eval(part.format_spec, scope) if part.format_spec is not None else Known("")
        if not (isinstance(value, Known) and isinstance(spec, Known) and isinstance(spec.value, str)):
            return Unknown(run.text(node, scope))
        try:
            shown = repr(value.value) if part.conversion == ord("r") else value.value
            parts.append(format(shown, spec.value) if len(spec.value) < 16 else str(shown))
        except (TypeError, ValueError):
            return Unknown(run.text(node, scope))
    return Known("".join(parts)[:10_000])


def _comprehension(run: Run, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
    inner = Scope(cells={}, module=scope.module, parent=scope, function=scope.function)
    inner.arguments = scope.arguments
    collected: list[tuple[Value, Value]] = []
    complete = _generate(run, node, 0, inner, collected)
    if isinstance(node, ast.DictComp):
        cells: dict[Any, Value] = {}
        for key, value in collected:
            if isinstance(key, Known):
                cells[key.value] = carried(value, str(key.value))
                run.name_feeds(value, str(key.value))
            else:
                complete = False
        if not complete and not cells:
            feeds = frozenset().union(*(feeds_of(value) for _, value in collected)) if collected else frozenset()
            return Unknown(run.text(node, scope), feeds)
        return Mapping(cells, complete)
    values = [value for _, value in collected]
    kind = "set" if isinstance(node, ast.SetComp) else "list"
    if complete:
        return sequence(kind, values)
    feeds = frozenset().union(*(feeds_of(value) for value in values)) if values else frozenset()
    return Unknown(run.text(node, scope), feeds, item=join(values) if values else None)


def _generate(
    run: Run,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    depth: int,
    scope: Scope,
    collected: list[tuple[Value, Value]],
) -> bool:
    """Add what a comprehension gives; whether that is all it gives."""
    if depth == len(node.generators):
        run.step()
        if isinstance(node, ast.DictComp):
            collected.append((run.eval(node.key, scope), run.eval(node.value, scope)))
        else:
            collected.append((NOTHING, run.eval(node.elt, scope)))
        return True
    generator = node.generators[depth]
    items, complete = elements(run, run.eval(generator.iter, scope))
    for item in items:
        run.assign(generator.target, item, scope)
        tests = [operators.truth(run.eval(test, scope)) for test in generator.ifs]
        if False in tests:
            continue
        if None in tests:
            complete = False
        complete = _generate(run, node, depth + 1, scope, collected) and complete
    return complete


def call_expression(run: Run, node: ast.Call, scope: Scope) -> Value:
    run.step()
    function = run.eval(node.func, scope)
    args, complete = spread(run, node.args, scope)
    call = Call(args=args, kwargs={}, node=node, scope=scope, open=not complete)
    for keyword in node.keywords:
        value = run.eval(keyword.value, scope)
        if keyword.arg is not None:
            call.kwargs[keyword.arg] = carried(value, keyword.arg)
            continue
        if isinstance(value, Instance) and isinstance(value.native, Mapping):
            value = value.native
        if isinstance(value, Mapping):
            for key, item in value.cells.items():
                call.kwargs[str(key)] = run.resolved(item)
            call.open = call.open or not value.complete
        else:
            call.open = True
    return run.call(function, call)


def _line(node: ast.expr | None) -> int:
    """Line of an expression; 0 where there is none."""
    return node.lineno if node is not None else 0


_EXPRESSIONS: dict[type[ast.expr], Callable[[Run, Any, Scope], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice_expression,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _dictionary,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: _starred,
    ast.JoinedStr: _formatted,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Call: call_expression,
}
