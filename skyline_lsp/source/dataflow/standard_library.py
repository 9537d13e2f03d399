"""Built-in functions and the parts of the standard library that a batch size passes through."""

from __future__ import annotations

import ast
import math
import posixpath
import shlex
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.containers import length, update
from skyline_lsp.source.dataflow.modules import is_absolute
from skyline_lsp.source.dataflow.objects import (
    class_attribute,
    clone,
    elements,
    external_bases,
    get_attribute,
    get_item,
    has_attribute,
    mro,
    set_attribute,
)
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    Call,
    Choice,
    Class,
    External,
    Field,
    FileContent,
    Function,
    Instance,
    Known,
    Mapping,
    Method,
    Module,
    Native,
    Partial,
    Property,
    Scope,
    Sequence,
    Static,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    label_of,
    sequence,
    sources_of,
)
from skyline_lsp.source.syntax import SourceError, parse

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]


def _text(run: Run, call: Call, position: int) -> str:
    if call.node is not None and position < len(call.node.args):
        return run.text(call.node.args[position], call.scope)
    return "..."


def _int(run: Run, call: Call) -> Value:
    if not call.args:
        return Known(0)
    if len(call.args) == 2:
        base = call.args[1]
        if isinstance(call.args[0], Known) and isinstance(base, Known):
            try:
                return Known(int(call.args[0].value, base.value), call.args[0].sources)
            except (TypeError, ValueError):
                return Unknown("int(...)")
    return operators.to_int(call.args[0], _text(run, call, 0))


def _float(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else Known(0.0)
    if isinstance(value, Known):
        try:
            return Known(float(value.value), value.sources)
        except (TypeError, ValueError, OverflowError):
            return Unknown("float(...)")
    return Unknown("float(...)", feeds_of(value), sources_of(value))


def _round(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Known) and isinstance(value.value, (int, float)) and len(call.args) == 1:
        try:
            return Known(round(value.value), value.sources)
        except (ValueError, OverflowError):
            return Unknown("round(...)")
    return Unknown("round(...)", feeds_of(value), sources_of(value))


def _str(run: Run, call: Call) -> Value:
    if not call.args:
        return Known("")
    value = call.args[0]
    if isinstance(value, Known):
        return Known(str(value.value), value.sources)
    return value if isinstance(value, FileContent) else Unknown(f"str({_text(run, call, 0)})")


def _bool(run: Run, call: Call) -> Value:
    known = operators.truth(call.args[0]) if call.args else False
    return Unknown("bool(...)") if known is None else Known(known)


def _len(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Instance):
        member = class_attribute(value.cls, "__len__")
        if member is not None and isinstance(member[0], Function) and not run.is_running(member[0]):
            return Unknown(f"len({_text(run, call, 0)})")
        if value.native is not None:
            value = value.native
    known = length(value)
    return Unknown(f"len({_text(run, call, 0)})", feeds_of(value)) if known is None else Known(known)


def _limit(name: str) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        values = call.args
        if len(values) == 1:
            found, concrete = elements(run, values[0])
            if not concrete:
                return Unknown(f"{name}({_text(run, call, 0)})", feeds_of(values[0]))
            nodes = call.node.args[0] if call.node is not None and call.node.args else None
            inner = nodes.elts if isinstance(nodes, (ast.List, ast.Tuple)) and len(nodes.elts) == len(found) else []
            texts = [run.text(node, call.scope) for node in inner] or [label_of(value) or "..." for value in found]
            return operators.limit(name, found, texts) if found else Unknown(name)
        return operators.limit(name, values, [_text(run, call, i) for i in range(len(values))])

    return handler


def _arithmetic(function: Callable[[Any], Any]) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        value = call.args[0] if call.args else NOTHING
        if isinstance(value, Known) and isinstance(value.value, (int, float)):
            try:
                return Known(function(value.value), value.sources)
            except (ValueError, OverflowError):
                return Unknown("...")
        return Unknown(f"a number from {_text(run, call, 0)}", feeds_of(value), sources_of(value))

    return handler


def _mapping(namespace: bool) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        made = Mapping({}, complete=not call.open, namespace=namespace)
        for arg in call.args:
            if isinstance(arg, (Mapping, Instance)):
                update(run, made, arg)
                continue
            if isinstance(arg, Unknown) and arg.item is not None:
                made.complete = False
                continue
            pairs, concrete = elements(run, arg)
            made.complete = made.complete and concrete
            for pair in pairs:
                if isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Known):
                    key = pair.items[0].value
                    made.cells[key] = carried(pair.items[1], str(key))
        for key, value in call.kwargs.items():
            made.cells[key] = value
            run.name_feeds(value, key)
        if namespace:
            for key, value in list(made.cells.items()):
                made.cells[key] = as_namespace(value)
        return made

    return handler


def as_namespace(value: Value) -> Value:
    """Nested dictionaries as namespaces too, as EasyDict, Munch, Box and OmegaConf make them."""
    if isinstance(value, Mapping):
        cells = {key: as_namespace(item) for key, item in value.cells.items()}
        return Mapping(cells, value.complete, namespace=True, factory=value.factory)
    return value


def _simple_namespace(run: Run, call: Call) -> Value:
    made = Mapping({}, complete=not call.open, namespace=True)
    for arg in call.args:
        update(run, made, arg)
    made.cells.update(call.kwargs)
    return made


def _defaultdict(run: Run, call: Call) -> Value:
    made = Mapping({}, factory=call.args[0] if call.args else None)
    for arg in call.args[1:]:
        update(run, made, arg)
    return made


def _sequence(kind: str) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        if not call.args:
            return sequence(kind, ())
        value = call.args[0]
        items, concrete = elements(run, value)
        if concrete:
            return sequence(kind, items)
        return Unknown(f"{kind}({_text(run, call, 0)})", feeds_of(value), item=items[0] if items else None)

    return handler


def _same(run: Run, call: Call) -> Value:
    return call.args[0] if call.args else NOTHING


def _enumerate(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    items, concrete = elements(run, value)
    if concrete:
        return sequence("list", [sequence("tuple", [Known(i), item]) for i, item in enumerate(items)])
    return Unknown("enumerate(...)", feeds_of(value), item=sequence("tuple", [Unknown("an index"), *items[:1]]))


def _zip(run: Run, call: Call) -> Value:
    columns = [elements(run, value) for value in call.args]
    if columns and all(concrete for _, concrete in columns) and not call.open:
        rows = zip(*(items for items, _ in columns), strict=False)
        return sequence("list", [sequence("tuple", row) for row in rows])
    feeds = frozenset().union(*(feeds_of(value) for value in call.args)) if call.args else frozenset()
    firsts = [items[0] if items else Unknown("an element") for items, _ in columns]
    return Unknown("zip(...)", feeds, item=sequence("tuple", firsts, not call.open))


def _chain(run: Run, call: Call) -> Value:
    columns = [elements(run, value) for value in call.args]
    if all(concrete for _, concrete in columns):
        return sequence("list", [item for items, _ in columns for item in items])
    feeds = frozenset[Any]().union(*(feeds_of(value) for value in call.args))
    return Unknown("chain(...)", feeds, item=join(item for items, _ in columns for item in items))


def _range(run: Run, call: Call) -> Value:
    feeds = frozenset[Any]()
    step = call.args[2] if len(call.args) == 3 else NOTHING
    if sources_of(step) and not (isinstance(step, Known) and isinstance(step.value, int) and step.value < 2):
        speaks = any(operators.speaks_of_batch(source) for source in sources_of(call.args[2]))
        feed = run.library.new_feed(run, "range", call.args[2], 2 if speaks else 4, 0, call.scope, node=call.node)
        feeds = frozenset({feed})
    elif len(call.args) == 1 and any(operators.speaks_of_batch(source) for source in sources_of(call.args[0])):
        # `for _ in range(batch_size): rows.append(...)` gathers a batch.
        feeds = frozenset({run.library.new_feed(run, "range", call.args[0], 4, 0, call.scope, node=call.node)})
    return Unknown("range(...)", feeds, item=Unknown("an index", feeds))


def _next(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Instance):
        member = class_attribute(value.cls, "__next__")
        if member is not None:
            return run.call(get_attribute(run, value, "__next__"), run.plain_call([]))
    for feed in feeds_of(value):
        feed.iterated = True
    items, _ = elements(run, value)
    return items[0] if items else Unknown("next(...)", feeds_of(value))


def _iter(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Instance):
        items, _ = elements(run, value)
        return Unknown(label_of(value), feeds_of(value), item=join(items) if items else None)
    return value


def _map(run: Run, call: Call) -> Value:
    if len(call.args) < 2:
        return Unknown("map(...)")
    items, concrete = elements(run, call.args[1])
    results = [run.call(call.args[0], run.plain_call([item], call.scope)) for item in items]
    if concrete:
        return sequence("list", results)
    return Unknown("map(...)", feeds_of(call.args[1]), item=join(results) if results else None)


def _filter(run: Run, call: Call) -> Value:
    if len(call.args) < 2:
        return Unknown("filter(...)")
    items, concrete = elements(run, call.args[1])
    if not concrete:
        return call.args[1]
    kept = []
    for item in items:
        answer = operators.truth(run.call(call.args[0], run.plain_call([item], call.scope)))
        if answer is None:
            concrete = False
        if answer is not False:
            kept.append(item)
    return sequence("list", kept, concrete)


def _getattr(run: Run, call: Call) -> Value:
    if len(call.args) < 2:
        return Unknown("getattr(...)")
    owner, name = call.args[0], call.args[1]
    if isinstance(name, Choice):
        return join(_getattr_one(run, call, owner, option) for option in name.options)
    return _getattr_one(run, call, owner, name)


def _getattr_one(run: Run, call: Call, owner: Value, name: Value) -> Value:
    if not (isinstance(name, Known) and isinstance(name.value, str)):
        return Unknown(f"getattr({_text(run, call, 0)}, {_text(run, call, 1)})", feeds_of(owner))
    if len(call.args) > 2:
        present = has_attribute(run, owner, name.value)
        if present is False:
            return call.args[2]
        if present is None and not isinstance(owner, (Module, External)):
            return join([get_attribute(run, owner, name.value), call.args[2]])
    return get_attribute(run, owner, name.value)


def _setattr(run: Run, call: Call) -> Value:
    if len(call.args) == 3 and isinstance(call.args[1], Known) and isinstance(call.args[1].value, str):
        set_attribute(run, call.args[0], call.args[1].value, call.args[2])
    return NOTHING


def _object_setattr(run: Run, call: Call) -> Value:
    if len(call.args) == 3 and isinstance(call.args[0], Instance) and isinstance(call.args[1], Known):
        name = str(call.args[1].value)
        run.store(call.args[0].cells, name, carried(call.args[2], name))
    return NOTHING


def _hasattr(run: Run, call: Call) -> Value:
    if len(call.args) == 2 and isinstance(call.args[1], Known):
        answer = has_attribute(run, call.args[0], str(call.args[1].value))
        if answer is not None:
            return Known(answer)
    return Unknown("hasattr(...)")


_TYPES: dict[str, type | tuple[type, ...]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.bool": bool,
    "builtins.bytes": bytes,
}


def _isinstance(run: Run, call: Call) -> Value:
    if len(call.args) != 2:
        return Unknown("isinstance(...)")
    value, kinds = call.args
    options = list(kinds.items) if isinstance(kinds, Sequence) else [kinds]
    answers = [_is_instance(value, kind) for kind in options]
    if True in answers:
        return Known(True)
    return Unknown("isinstance(...)") if None in answers else Known(False)


def _is_instance(value: Value, kind: Value) -> bool | None:
    name = kind.name if isinstance(kind, External) else ""
    if isinstance(value, Known):
        wanted = _TYPES.get(name)
        if wanted is not None:
            return isinstance(value.value, wanted)
        if name in ("builtins.list", "builtins.dict", "builtins.tuple", "builtins.set"):
            return False
        if name in ("pathlib.Path", "pathlib.PurePath", "os.PathLike"):
            return isinstance(value.value, PurePosixPath)
        return False if isinstance(kind, Class) else None
    if isinstance(value, Mapping):
        if name in ("builtins.dict", "collections.abc.Mapping", "typing.Mapping"):
            return None if value.namespace else True
        return False if name in _TYPES or name in ("builtins.list", "builtins.tuple") else None
    if isinstance(value, Sequence):
        if name in ("builtins.list", "builtins.tuple", "builtins.set"):
            return name == f"builtins.{value.kind}"
        return False if name in _TYPES or name == "builtins.dict" else None
    if isinstance(value, (Native, Function, Class, Module)):
        return False if name in _TYPES or name.startswith("builtins.") else None
    if isinstance(value, Instance):
        if isinstance(kind, Class):
            return kind in mro(value.cls)
        if name and any(base.name == name for base in external_bases(value.cls)):
            return True
        return False if name in _TYPES else None
    return None


def _issubclass(run: Run, call: Call) -> Value:
    if len(call.args) == 2 and isinstance(call.args[0], Class):
        if isinstance(call.args[1], Class):
            return Known(call.args[1] in mro(call.args[0]))
        if isinstance(call.args[1], External):
            wanted = call.args[1].name.rsplit(".", 1)[-1]
            return Known(any(base.name.rsplit(".", 1)[-1] == wanted for base in external_bases(call.args[0])))
    if len(call.args) == 2 and isinstance(call.args[0], (Function, Known, Mapping, Sequence, External, Module)):
        return Known(False)
    return Unknown("issubclass(...)")


def _type(run: Run, call: Call) -> Value:
    if len(call.args) == 1:
        value = call.args[0]
        if isinstance(value, Instance):
            return value.cls
        if isinstance(value, Known) and value.value is not None:
            return External(f"builtins.{type(value.value).__name__}")
    return Unknown("type(...)")


def _open(run: Run, call: Call) -> Value:
    value = call.get(0, "file")
    if isinstance(value, Known) and isinstance(value.value, (str, PurePosixPath)):
        return FileContent(str(value.value))
    return Unknown(f"open({_text(run, call, 0)})")


def _exec(run: Run, call: Call) -> Value:
    code = call.args[0] if call.args else NOTHING
    while isinstance(code, Method):
        code = code.receiver
    target = call.args[1] if len(call.args) > 1 else None
    if isinstance(code, FileContent):
        found = run.read(code.path)
        if found is None:
            return NOTHING
        return _exec_source(run, found[1], found[0], call.scope, target)
    if isinstance(code, Known) and isinstance(code.value, str):
        return _exec_source(run, code.value.encode("utf-8", "replace"), "", call.scope, target)
    return NOTHING


def _exec_source(run: Run, data: bytes, path: str, scope: Scope, target: Value | None) -> Value:
    try:
        syntax = parse(data)
    except SourceError:
        return NOTHING
    cells = target.cells if isinstance(target, Mapping) else scope.cells
    # Literals of the executed file are in that file.
    module = Module(name="exec", path=path or scope.module.path, syntax=syntax, cells=scope.module.cells)
    if isinstance(target, Mapping):
        module.cells = target.cells
    inner = Scope(cells=cells, module=module, parent=scope.parent, function=scope.function)
    if not path:
        # No file holds these literals.
        inner.module = Module(name="exec", path="", syntax=syntax, cells=module.cells)
    run.block(syntax.tree.body, inner)
    return NOTHING


def _eval(run: Run, call: Call) -> Value:
    code = call.args[0] if call.args else NOTHING
    if isinstance(code, Known) and isinstance(code.value, str) and len(code.value) < 1000:
        try:
            syntax = parse(code.value.strip().encode("utf-8", "replace"))
        except SourceError:
            return Unknown("eval(...)")
        body = syntax.tree.body
        if len(body) == 1 and isinstance(body[0], ast.Expr):
            # Literals of the string stand in no file: hence no path.
            module = Module(name="eval", path="", syntax=syntax, cells=call.scope.module.cells)
            scope = Scope(cells=call.scope.cells, module=module, parent=call.scope.parent)
            return run.eval(body[0].value, scope)
    return Unknown("eval(...)")


def _literal_eval(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Known) and isinstance(value.value, str) and len(value.value) < 1000:
        try:
            found = ast.literal_eval(value.value)
        except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
            run.library.ended()
            return NOTHING
        if isinstance(found, (int, float, str, bool, bytes, type(None))):
            return Known(found, value.sources)
    return Unknown("literal_eval(...)")


def _vars(run: Run, call: Call) -> Value:
    if not call.args:
        return Mapping(call.scope.cells)
    value = call.args[0]
    if isinstance(value, Instance):
        return Mapping(value.cells, namespace=True)
    if isinstance(value, (Module, Class)):
        return Mapping(value.cells)
    return value


def _globals(run: Run, call: Call) -> Value:
    return Mapping(call.scope.module.cells, complete=not call.scope.module.star_externals)


def _locals(run: Run, call: Call) -> Value:
    return Mapping(call.scope.cells)


def _dir(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, (Module, Instance, Class, Mapping)):
        names = list(value.cells)
        if isinstance(value, Instance):
            names += [key for cls in mro(value.cls) for key in cls.cells]
        return sequence("list", [Known(name) for name in dict.fromkeys(names)])
    return Unknown("dir(...)")


def _exit(run: Run, call: Call) -> Value:
    run.library.ended()
    return NOTHING


def _property(run: Run, call: Call) -> Value:
    return Property(call.args[0] if call.args else NOTHING)


def _static(run: Run, call: Call) -> Value:
    return Static(call.args[0] if call.args else NOTHING, of_class=False)


def _class_method(run: Run, call: Call) -> Value:
    return Static(call.args[0] if call.args else NOTHING, of_class=True)


def _any(run: Run, call: Call) -> Value:
    items, concrete = elements(run, call.args[0] if call.args else NOTHING)
    answers = [operators.truth(item) for item in items]
    if True in answers and concrete:
        return Known(True)
    return Known(False) if concrete and None not in answers else Unknown("any(...)")


def _all(run: Run, call: Call) -> Value:
    items, concrete = elements(run, call.args[0] if call.args else NOTHING)
    answers = [operators.truth(item) for item in items]
    if False in answers and concrete:
        return Known(False)
    return Known(True) if concrete and None not in answers else Unknown("all(...)")


def _sum(run: Run, call: Call) -> Value:
    items, concrete = elements(run, call.args[0] if call.args else NOTHING)
    if concrete and items and all(isinstance(item, Known) and isinstance(item.value, (int, float)) for item in items):
        return Known(sum(item.value for item in items if isinstance(item, Known)))
    return Unknown("sum(...)", feeds_of(call.args[0]) if call.args else frozenset())


def _super(run: Run, call: Call) -> Value:
    return run.super_of(call)


# os, sys, pathlib


def _environment(run: Run, call: Call) -> Value:
    name = call.get(0, "key")
    default = call.get(1, "default") or NOTHING
    if not isinstance(name, Known):
        return join([Unknown("os.environ[...]"), default])
    return run.library.variable(run, str(name.value), default)


def _path_join(run: Run, call: Call) -> Value:
    parts = [arg.value for arg in call.args if isinstance(arg, Known)]
    if len(parts) != len(call.args) or not all(isinstance(part, (str, PurePosixPath)) for part in parts):
        return Unknown("os.path.join(...)")
    return Known(posixpath.join(*(str(part) for part in parts))) if parts else Known("")


def _path_function(function: Callable[[str], Any]) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        value = call.args[0] if call.args else NOTHING
        if isinstance(value, Known) and isinstance(value.value, (str, PurePosixPath)):
            result = function(str(value.value).replace("\\", "/"))
            if isinstance(result, tuple):
                return sequence("tuple", [Known(part) for part in result])
            return Known(result)
        return Unknown("a path")

    return handler


def _exists(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Known) and isinstance(value.value, (str, PurePosixPath)):
        text = str(value.value)
        if text and run.read(text) is not None:
            return Known(True)
    return Unknown("os.path.exists(...)")


def _path(run: Run, call: Call) -> Value:
    parts = [arg.value for arg in call.args if isinstance(arg, Known)]
    if len(parts) != len(call.args) or not all(isinstance(part, (str, PurePosixPath)) for part in parts):
        return Unknown("a path")
    return Known(PurePosixPath(*(str(part).replace("\\", "/") for part in parts)))


class SearchPath(Native):
    """`sys.path`."""

    __slots__ = ()

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        for arg in call.args:
            if isinstance(arg, Known) and isinstance(arg.value, (str, PurePosixPath)):
                folder = str(arg.value).replace("\\", "/")
                bases = [run.files.root, posixpath.dirname(run.entry_path)] if not is_absolute(folder) else [""]
                for base in bases:
                    path = posixpath.normpath(posixpath.join(base, folder))
                    if path not in run.modules.search_path:
                        run.modules.search_path.append(path)
        return NOTHING


def _partial(run: Run, call: Call) -> Value:
    if not call.args:
        return Unknown("partial(...)")
    return Partial(call.args[0], tuple(call.args[1:]), dict(call.kwargs))


def _reduce(run: Run, call: Call) -> Value:
    if len(call.args) < 2:
        return Unknown("reduce(...)")
    items, concrete = elements(run, call.args[1])
    if not concrete:
        return Unknown("reduce(...)", feeds_of(call.args[1]))
    values = [*call.args[2:3], *items]
    if not values:
        return Unknown("reduce(...)")
    result = values[0]
    for item in values[1:]:
        result = run.call(call.args[0], run.plain_call([result, item], call.scope))
    return result


def _getitem(run: Run, call: Call) -> Value:
    return get_item(run, call.args[0], call.args[1], "...") if len(call.args) == 2 else Unknown("getitem(...)")


def _operator(op: ast.operator) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        if len(call.args) != 2:
            return Unknown("...")
        return operators.binary(op, call.args[0], call.args[1], _text(run, call, 0), _text(run, call, 1))

    return handler


def _copy(run: Run, call: Call) -> Value:
    return clone(call.args[0], deep=False) if call.args else NOTHING


def _deepcopy(run: Run, call: Call) -> Value:
    return clone(call.args[0]) if call.args else NOTHING


def _import_module(run: Run, call: Call) -> Value:
    name = call.args[0] if call.args else NOTHING
    if not (isinstance(name, Known) and isinstance(name.value, str)):
        return Unknown("import_module(...)")
    text = name.value
    if text.startswith("."):
        package = call.string(1, "package") or call.scope.module.name
        text = f"{package}{text}" if len(text) - len(text.lstrip(".")) == 1 else text.lstrip(".")
    return run.import_module(text)


def _namedtuple(run: Run, call: Call) -> Value:
    fields = call.get(1, "field_names")
    names: list[str] = []
    if isinstance(fields, Known) and isinstance(fields.value, str):
        names = fields.value.replace(",", " ").split()
    elif isinstance(fields, Sequence):
        names = [str(item.value) for item in fields.items if isinstance(item, Known)]
    cells: dict[Any, Value] = {}
    defaults = call.kwargs.get("defaults")
    if isinstance(defaults, Sequence):
        for name, value in zip(names[::-1], defaults.items[::-1], strict=False):
            cells[name] = value
    name = call.string(0, "typename") or "namedtuple"
    node = ast.ClassDef(name=name, bases=[], keywords=[], body=[], decorator_list=[])
    return Class(
        node=node,
        module=call.scope.module,
        name=node.name,
        bases=(External("typing.NamedTuple"),),
        cells=cells,
        fields=tuple(names),
        record=True,
    )


def _field(run: Run, call: Call) -> Value:
    default = call.get(0, "default")
    if isinstance(default, Known) and default.value is Ellipsis:
        default = None
    return Field(default, call.get(None, "default_factory", "factory"))


def _keyword_field(run: Run, call: Call) -> Value:
    return Field(call.get(None, "default"), call.get(None, "default_factory", "factory"))


def _make_dataclass(run: Run, call: Call) -> Value:
    return Unknown("make_dataclass(...)")


def _asdict(run: Run, call: Call) -> Value:
    value = call.args[0] if call.args else NOTHING
    if isinstance(value, Instance):
        cells = {
            key: _asdict(run, run.plain_call([item])) if isinstance(item, Instance) else item
            for key, item in value.cells.items()
        }
        return Mapping(cells)
    return value


def _replace(run: Run, call: Call) -> Value:
    value = clone(call.args[0], deep=False) if call.args else NOTHING
    if isinstance(value, Instance):
        for key, item in call.kwargs.items():
            value.cells[key] = carried(item, key)
    return value


def _feed_of_count(position: int, *names: str) -> Handler:
    """A call that draws as many samples as an argument says."""

    def handler(run: Run, call: Call) -> Value:
        count = call.get(position, *names)
        feeds = frozenset().union(*(feeds_of(value) for value in call.args)) if call.args else frozenset()
        if isinstance(count, Sequence) and count.items:
            count = count.items[0]
        if count is not None and sources_of(count):
            text = run.text(call.node.func, call.scope) if call.node is not None else "a draw"
            feeds = feeds | {run.library.new_feed(run, text, count, 2, 0, call.scope, node=call.node)}
        return Unknown("a draw", feeds)

    return handler


def _thread(run: Run, call: Call) -> Value:
    target, args = call.get(None, "target"), call.get(None, "args")
    kwargs = call.get(None, "kwargs")
    if target is None:
        return Unknown("a thread")
    given = list(args.items) if isinstance(args, Sequence) else []
    named = {str(key): item for key, item in kwargs.cells.items()} if isinstance(kwargs, Mapping) else {}
    return Thread(Partial(target, tuple(given), named))


class Thread(Native):
    """A thread or process; what it is to run is followed when it starts."""

    __slots__ = ("_target",)

    def __init__(self, target: Partial) -> None:
        self._target = target

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("start", "run"):
            run.call(self._target, run.plain_call([], call.scope))
        return Unknown(name)


def _spawn(run: Run, call: Call) -> Value:
    """torch.multiprocessing.spawn: the function gets the process's rank before its arguments."""
    function, args = call.get(0, "fn"), call.get(1, "args")
    if function is not None:
        given = list(args.items) if isinstance(args, Sequence) else []
        run.call(function, run.plain_call([Unknown("rank"), *given], call.scope))
    return NOTHING


def _run_path(run: Run, call: Call) -> Value:
    path = call.string(0, "path_name")
    found = run.read(path) if path else None
    module = run.load(found[0], "__main__", False) if found is not None else None
    return Mapping(module.cells) if module is not None else Unknown("run_path(...)")


def _shlex(run: Run, call: Call) -> Value:
    text = call.string(0, "s")
    try:
        return sequence("list", [Known(part) for part in shlex.split(text)]) if text is not None else Unknown("...")
    except ValueError:
        return Unknown("...")


BUILTINS: dict[str, Handler] = {
    "int": _int, "float": _float, "str": _str, "bool": _bool, "len": _len, "min": _limit("min"), "max": _limit("max"),
    "abs": _arithmetic(abs), "round": _round, "sum": _sum, "dict": _mapping(False), "list": _sequence("list"),
    "tuple": _sequence("tuple"), "set": _sequence("set"), "frozenset": _sequence("set"), "sorted": _sequence("list"),
    "reversed": _sequence("list"), "enumerate": _enumerate, "zip": _zip, "range": _range, "iter": _iter,
    "next": _next, "map": _map, "filter": _filter, "getattr": _getattr, "setattr": _setattr, "hasattr": _hasattr,
    "isinstance": _isinstance, "issubclass": _issubclass, "type": _type, "open": _open, "exec": _exec, "eval": _eval,
    "vars": _vars, "globals": _globals, "locals": _locals, "dir": _dir, "exit": _exit, "quit": _exit,
    "property": _property, "staticmethod": _static, "classmethod": _class_method, "any": _any, "all": _all,
    "super": _super,
}  # fmt: skip

OTHER_BUILTINS = {
    "print", "id", "repr", "object", "callable", "input", "hash", "slice", "divmod", "pow", "chr", "ord", "bytes",
    "bytearray", "memoryview", "complex", "bin", "hex", "oct", "format", "compile", "__import__", "delattr", "ascii",
    "NotImplemented", "Ellipsis", "__debug__", "BaseException", "Exception", "ValueError", "TypeError", "KeyError",
    "IndexError", "RuntimeError", "AttributeError", "ImportError", "ModuleNotFoundError", "StopIteration",
    "NotImplementedError", "FileNotFoundError", "OSError", "IOError", "AssertionError", "KeyboardInterrupt",
    "SystemExit", "ZeroDivisionError", "OverflowError", "ArithmeticError", "LookupError", "NameError", "UserWarning",
    "Warning", "DeprecationWarning", "FutureWarning", "EOFError", "PermissionError", "TimeoutError", "MemoryError",
    "RecursionError", "GeneratorExit", "UnicodeDecodeError", "ConnectionError", "breakpoint", "copyright", "license",
}  # fmt: skip

CALLS: dict[str, Handler] = {
    **{f"builtins.{name}": handler for name, handler in BUILTINS.items()},
    "builtins.object.__setattr__": _object_setattr,
    "os.getenv": _environment,
    "os.environ.get": _environment,
    "os.environ.setdefault": _environment,
    "os.path.join": _path_join,
    "os.path.dirname": _path_function(posixpath.dirname),
    "os.path.basename": _path_function(posixpath.basename),
    "os.path.abspath": _path_function(lambda path: path),
    "os.path.realpath": _path_function(lambda path: path),
    "os.path.expanduser": _path_function(lambda path: path),
    "os.path.expandvars": _path_function(lambda path: path),
    "os.path.normpath": _path_function(posixpath.normpath),
    "os.path.splitext": _path_function(posixpath.splitext),
    "os.path.split": _path_function(posixpath.split),
    "os.fspath": _path_function(lambda path: path),
    "os.path.exists": _exists,
    "os.path.isfile": _exists,
    "os.getcwd": lambda run, call: Known(run.files.root),
    "os._exit": _exit,
    "sys.exit": _exit,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "pathlib.PosixPath": _path,
    "pathlib.Path.cwd": lambda run, call: Known(PurePosixPath(run.files.root)),
    "io.open": _open,
    "codecs.open": _open,
    "copy.copy": _copy,
    "copy.deepcopy": _deepcopy,
    "collections.OrderedDict": _mapping(False),
    "collections.defaultdict": _defaultdict,
    "collections.namedtuple": _namedtuple,
    "collections.deque": _sequence("list"),
    "types.SimpleNamespace": _simple_namespace,
    "types.MappingProxyType": _same,
    "argparse.Namespace": _simple_namespace,
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "operator.getitem": _getitem,
    "operator.mul": _operator(ast.Mult()),
    "operator.add": _operator(ast.Add()),
    "operator.floordiv": _operator(ast.FloorDiv()),
    "importlib.import_module": _import_module,
    "builtins.__import__": _import_module,
    "ast.literal_eval": _literal_eval,
    "math.ceil": _arithmetic(math.ceil),
    "math.floor": _arithmetic(math.floor),
    "math.trunc": _arithmetic(math.trunc),
    "numpy.ceil": _arithmetic(math.ceil),
    "numpy.floor": _arithmetic(math.floor),
    "itertools.cycle": _iter,
    "itertools.islice": _iter,
    "itertools.chain": _chain,
    "itertools.count": lambda run, call: Unknown("count()", item=Unknown("a count")),
    "dataclasses.field": _keyword_field,
    "dataclasses.asdict": _asdict,
    "dataclasses.replace": _replace,
    "dataclasses.make_dataclass": _make_dataclass,
    "attr.ib": _field,
    "attr.attrib": _field,
    "attr.field": _keyword_field,
    "attrs.field": _keyword_field,
    "pydantic.Field": _field,
    "simple_parsing.field": _field,
    "shlex.split": _shlex,
    "threading.Thread": _thread,
    "multiprocessing.Process": _thread,
    "torch.multiprocessing.Process": _thread,
    "torch.multiprocessing.spawn": _spawn,
    "torch_xla.distributed.xla_multiprocessing.spawn": _spawn,
    "runpy.run_path": _run_path,
    "random.sample": _feed_of_count(1, "k"),
    "random.choices": _feed_of_count(99, "k"),
    "numpy.random.choice": _feed_of_count(1, "size"),
    "numpy.random.randint": _feed_of_count(2, "size"),
    "numpy.random.random_integers": _feed_of_count(2, "size"),
}
