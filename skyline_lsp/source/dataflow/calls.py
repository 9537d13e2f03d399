"""Calls of the project's own functions and classes."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow.branches import Ended
from skyline_lsp.source.dataflow.objects import (
    bind,
    class_attribute,
    external_bases,
    field_default,
    mro,
)
from skyline_lsp.source.dataflow.values import (
    NO_FEEDS,
    NOTHING,
    Call,
    Choice,
    Class,
    Feed,
    Function,
    Instance,
    Mapping,
    Module,
    Native,
    Partial,
    Scope,
    Sequence,
    Static,
    Super,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    sequence,
)
from skyline_lsp.source.syntax import parse

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run


MAX_DEPTH = 28
"""Project calls within each other: each takes about ten of the interpreter's own frames."""

MAX_CALLS_OF_ONE = 40
"""How often one function is followed; helpers called more often tell nothing new."""

_MODULES = {"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.Sequential", "torch.autograd.Function"}
_FEEDING = re.compile(r"batch_?size|loader|minibatch|sampler|\bbsz?\b|config|args", re.IGNORECASE)
_EMPTY = parse(b"")
_NOWHERE = Scope(cells={}, module=Module(name="", path="", syntax=_EMPTY, cells={}))


def plain_call(run: Run, args: list[Value], scope: Scope | None = None) -> Call:
    """A call that the source does not write."""
    return Call(args=args, kwargs={}, node=None, scope=scope or _NOWHERE)


def call_value(run: Run, function: Value, call: Call) -> Value:
    """What a call gives."""
    if isinstance(function, Function):
        return run.call_function(function, call)
    if isinstance(function, Class):
        return run.instantiate(function, call)
    if isinstance(function, Partial):
        merged = Call(
            args=[*function.args, *call.args],
            kwargs={**function.kwargs, **call.kwargs},
            node=call.node,
            scope=call.scope,
            open=call.open,
        )
        return run.call(function.function, merged)
    if isinstance(function, Choice):
        return join(run.call(option, call) for option in function.options)
    if isinstance(function, Static):
        return run.call(function.function, call)
    if isinstance(function, Instance):
        member = class_attribute(function.cls, "__call__")
        if member is not None and isinstance(member[0], Function):
            return run.call_function(bind(member[0], function, member[1]), call)
        if isinstance(function.native, Native):
            return function.native.call(run, call)
        return run.library.call_object(run, function, call)
    if isinstance(function, Native):
        return function.call(run, call)
    return run.library.call(run, function, call)


def is_running(run: Run, function: Function) -> bool:
    """Whether a function is being followed already."""
    return any(running.node is function.node for running in run.stack)


def call_function(run: Run, function: Function, call: Call) -> Value:
    """Follow a function of the project."""
    node = function.node
    times = run.times_called.get(id(node), 0)
    deep = len(run.stack) >= MAX_DEPTH
    nested = sum(running.node is node for running in run.stack)
    passed = NO_FEEDS.union(*(feeds_of(value) for value in (*call.args, *call.kwargs.values())))
    if deep or nested >= 2 or times >= MAX_CALLS_OF_ONE:
        return Unknown(f"{function.name}(...)", passed)
    run.times_called[id(node)] = times + 1
    run.entered.add(id(node))
    run.step()
    scope = Scope(cells={}, module=function.scope.module, parent=function.scope, function=function)
    if function.scope.is_class:
        scope.parent = function.scope.parent
    _bind_arguments(run, function, call, scope)
    run.stack.append(function)
    made = len(run.feeds)
    try:
        if isinstance(node, ast.Lambda):
            return run.eval(node.body, scope)
        run.fork(lambda: run.block(node.body, scope))
    except RecursionError:
        return Unknown(f"{function.name}(...)", passed)
    finally:
        run.stack.pop()
    if _yields(run, node):
        item = join(scope.yields) if scope.yields else None
        feeds = feeds_of(item) if item is not None else NO_FEEDS
        feeds = feeds | frozenset(run.feeds[made:])
        return Unknown(f"{function.name}(...)", feeds, item=_tainted(item, feeds))
    return join(scope.returns) if scope.returns else NOTHING


def _yields(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function is a generator."""
    known = run.generators.get(id(node))
    if known is None:
        known = not isinstance(node, ast.Lambda) and _is_generator(node)
        run.generators[id(node)] = known
    return known


def _bind_arguments(run: Run, function: Function, call: Call, scope: Scope) -> None:
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


def call_root(run: Run, function: Function, receiver: Value | None = None) -> Value:
    """Follow a function that nothing seen calls: parameters have their defaults or are unknown."""
    target = bind(function, receiver, function.owner) if receiver is not None else function
    try:
        return run.call_function(target, run.plain_call([]))
    except Ended:
        return Unknown(function.name)


def call_back(run: Run, function: Value, feeds: frozenset[Feed]) -> Value:
    """Follow, once, a function that was given to a library: its parameters hold what comes from `feeds`."""
    if isinstance(function, Partial):
        inner = function.function
        if isinstance(inner, Function):
            return run.call_back(
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
    if not isinstance(function, Function) or id(function.node) in run.called_back:
        return Unknown("")
    run.called_back.add(id(function.node))
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
        return run.call_function(function, run.plain_call(args))
    except Ended:
        return Unknown(function.name)


def instantiate(run: Run, cls: Class, call: Call) -> Value:
    """Make an object of a class of the project."""
    instance = Instance(cls=cls, cells={})
    for found in mro(cls):
        found.instances.append(instance)
    maker = class_attribute(cls, "__new__")
    if maker is None and any(base.name.endswith(("Enum", "Flag")) for base in external_bases(cls)):
        return _enum_member(run, cls, call)
    init = class_attribute(cls, "__init__")
    if _only_computes(run, cls):
        return instance
    if init is not None and isinstance(init[0], Function):
        if any(base.name == "builtins.dict" for base in external_bases(cls)):
            instance.native = Mapping({})
        run.call_function(bind(init[0], instance, init[1]), call)
        if instance.native is None:
            run.library.make_native(run, instance, None)
    elif cls.record or any(found.record for found in mro(cls)):
        _fill_record(run, instance, call)
        run.library.make_native(run, instance, call)
    else:
        run.library.make_native(run, instance, call)
    run.library.after_construction(run, instance, call)
    return instance


def _only_computes(run: Run, cls: Class) -> bool:
    """Whether a class is a plain torch module whose text says nothing of batch sizes or loaders.

    Models are the largest part of many programs, and none of a batch size's way.
    """
    known = run.computing.get(id(cls.node))
    if known is None:
        roots = external_bases(cls)
        known = bool(roots) and all(base.name in _MODULES for base in roots)
        for found in mro(cls) if known else ():
            lines = found.module.syntax.source.lines[found.node.lineno - 1 : found.node.end_lineno]
            known = known and not any(_FEEDING.search(line) for line in lines)
        run.computing[id(cls.node)] = known
    return known


def make(run: Run, cls: Class) -> Value:
    """An object of a class of which nothing was seen to be made."""
    try:
        return run.instantiate(cls, run.plain_call([]))
    except Ended:
        return Instance(cls=cls, cells={})


def _enum_member(run: Run, cls: Class, call: Call) -> Value:
    return call.args[0] if call.args else Unknown(cls.name)


def _fill_record(run: Run, instance: Instance, call: Call) -> None:
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
            value = field_default(run, member[0]) if member is not None else Unknown(name)
            if call.open:
                value = join([value, Unknown(name)])
        run.store(instance.cells, name, carried(value, name))
    for name, value in call.kwargs.items():
        if name not in names:
            run.store(instance.cells, name, carried(value, name))
    after = class_attribute(instance.cls, "__post_init__")
    if after is not None and isinstance(after[0], Function):
        run.call_function(bind(after[0], instance, after[1]), run.plain_call([]))


def super_of(run: Run, call: Call) -> Value:
    """What `super()` or `super(Class, self)` gives where it is called."""
    if len(call.args) == 2 and isinstance(call.args[0], Class):
        return Super(cls=call.args[0], receiver=call.args[1])
    scope: Scope | None = call.scope
    while scope is not None and (scope.function is None or scope.function.owner is None):
        scope = scope.parent
    if scope is None or scope.function is None or scope.function.owner is None or not scope.arguments:
        return Unknown("super()")
    return Super(cls=scope.function.owner, receiver=scope.arguments[0])


def _tainted(item: Value | None, feeds: frozenset[Feed]) -> Value | None:
    if item is None:
        return None
    if isinstance(item, Unknown):
        return Unknown(item.label, item.feeds | feeds, item.sources, item.item)
    if isinstance(item, Sequence):
        return sequence(item.kind, [_tainted(part, feeds) or part for part in item.items], item.complete)
    return item


def _is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        found = pending.pop()
        if isinstance(found, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(found))
    return False
