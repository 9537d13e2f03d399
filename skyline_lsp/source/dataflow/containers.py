"""Methods of strings, lists, dictionaries, paths and opened files."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.dataflow.objects import clone, elements, get_item, set_item
from skyline_lsp.source.dataflow.operators import compare, truth
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    ArgumentLiteral,
    Call,
    FileContent,
    Instance,
    Items,
    Known,
    Mapping,
    Sequence,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    sequence,
)

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

_STRING_METHODS = {
    "lower", "upper", "strip", "lstrip", "rstrip", "replace", "split", "rsplit", "splitlines", "startswith",
    "endswith", "join", "format", "title", "capitalize", "removeprefix", "removesuffix", "isdigit", "isnumeric",
    "isalpha", "find", "index", "count", "partition", "rpartition", "zfill", "casefold", "swapcase", "encode",
    "decode", "isidentifier", "bit_length", "is_integer", "islower", "isupper",
}  # fmt: skip
_SAFE_ARGUMENTS = (str, int, bool, float, bytes, type(None), tuple)
_LONGEST = 10_000


def scalar_method(run: Run, value: Known, name: str, call: Call) -> Value | None:
    """A method of a string or number."""
    if isinstance(value.value, PurePosixPath):
        return path_method(run, value, name, call)
    if name not in _STRING_METHODS or not hasattr(value.value, name) or len(str(value.value)) > _LONGEST:
        return None
    args: list[Any] = []
    for arg in call.args:
        if name == "join" and isinstance(arg, Sequence) and arg.complete:
            parts = [item.value for item in arg.items if isinstance(item, Known)]
            if len(parts) != len(arg.items):
                return None
            args.append(parts)
        elif isinstance(arg, Known) and isinstance(arg.value, (*_SAFE_ARGUMENTS, PurePosixPath)):
            args.append(arg.value)
        else:
            return None
    kwargs: dict[str, Any] = {}
    for key, arg in call.kwargs.items():
        if not isinstance(arg, Known):
            return None
        kwargs[key] = arg.value
    if name in ("zfill", "encode", "decode") and any(isinstance(arg, int) and arg > 1000 for arg in args):
        return None
    if name == "format" and any(isinstance(part, str) and len(part) > _LONGEST for part in args):
        return None
    try:
        result = getattr(value.value, name)(*args, **kwargs)
    except Exception:
        return None
    if isinstance(result, (list, tuple)):
        kind = "list" if isinstance(result, list) else "tuple"
        # A part of a command-line argument, such as "--batch_size=32", is still of the command line.
        return sequence(kind, [Known(item, value.sources if _is_argument(value, item) else ()) for item in result])
    keeps = name in ("strip", "lstrip", "rstrip")
    return Known(result, value.sources if keeps else ())


def _is_argument(value: Known, part: Any) -> bool:
    literals = [source.literal for source in value.sources]
    return any(isinstance(literal, ArgumentLiteral) and literal.text == part for literal in literals)


def path_method(run: Run, value: Known, name: str, call: Call) -> Value | None:
    """A method of a path."""
    path = value.value
    assert isinstance(path, PurePosixPath)
    if name in ("resolve", "absolute", "expanduser"):
        return value
    if name in ("joinpath", "with_suffix", "with_name", "with_stem", "relative_to", "as_posix"):
        args = [arg.value for arg in call.args if isinstance(arg, Known)]
        if len(args) != len(call.args):
            return None
        try:
            return Known(getattr(path, name)(*args))
        except (TypeError, ValueError):
            return None
    if name in ("open", "read_text", "read_bytes"):
        return FileContent(str(path))
    if name in ("exists", "is_file"):
        return Known(True) if run.read(str(path)) is not None else Unknown(f"{path}.{name}()")
    return None


def mapping_method(run: Run, value: Mapping, name: str, call: Call) -> Value | None:
    """A method of a dictionary or namespace."""
    if name in ("get", "pop", "setdefault"):
        return _lookup(run, value, name, call)
    if name == "items":
        if value.complete and len(value.cells) <= 64:
            pairs = [sequence("tuple", [Known(key), run.resolved(item)]) for key, item in value.cells.items()]
            return sequence("list", pairs)
        held = join(value.cells.values()) if value.cells else Unknown("a value")
        return Unknown("items", feeds_of(value), item=sequence("tuple", [Unknown("a key"), held]))
    if name == "keys":
        return sequence("list", [Known(key) for key in value.cells], value.complete)
    if name == "values":
        return sequence("list", [run.resolved(item) for item in value.cells.values()], value.complete)
    if name in ("copy", "clone", "copy_and_resolve_references", "deepcopy"):
        return clone(value, deep=name != "copy")
    if name in ("update", "merge_from_dict", "merge_update"):
        for arg in call.args:
            update(run, value, arg, deep=name != "update")
        for key, item in call.kwargs.items():
            run.store(value.cells, key, item)
        if call.open:
            value.complete = False
        return NOTHING
    if name == "fromkeys":
        return None
    if name == "clear":
        for key in list(value.cells):
            run.remove(value.cells, key)
        return NOTHING
    if name in ("freeze", "defrost", "lock", "unlock", "set_immutable"):
        return NOTHING
    if name in ("to_dict", "toDict", "as_dict", "_asdict", "model_dump", "dict"):
        return clone(value)
    if name == "__setitem__" and len(call.args) == 2:
        set_item(run, value, call.args[0], call.args[1])
        return NOTHING
    if name == "__getitem__" and call.args:
        return get_item(run, value, call.args[0], "an entry")
    if name == "__contains__" and call.args and isinstance(call.args[0], Known):
        return Known(call.args[0].value in value.cells) if value.complete else None
    return None


def _lookup(run: Run, value: Mapping, name: str, call: Call) -> Value | None:
    if not call.args:
        return None
    key, default = call.args[0], call.get(1, "default") or NOTHING
    if not isinstance(key, Known):
        return join([*value.cells.values(), default]) if value.cells else Unknown("an entry", feeds_of(value))
    if key.value in value.cells:
        found = run.resolved(value.cells[key.value])
        if name == "pop":
            run.remove(value.cells, key.value)
        return found
    found = default if value.complete else join([default, Unknown(str(key.value))])
    if name == "setdefault":
        run.store(value.cells, key.value, carried(found, str(key.value)))
    return found


def update(run: Run, target: Mapping, other: Value, deep: bool = False) -> None:
    """Take over the entries of another mapping; with `deep`, nested ones one by one."""
    if isinstance(other, Instance) and isinstance(other.native, Mapping):
        other = other.native
    if not isinstance(other, Mapping):
        if isinstance(other, Known) and other.value is None:
            return
        target.complete = False
        return
    for key, item in other.cells.items():
        below = target.cells.get(key)
        if deep and isinstance(below, Mapping) and isinstance(item, Mapping):
            update(run, below, item, deep=True)
        else:
            run.store(target.cells, key, clone(item) if deep else item)
    if not other.complete:
        target.complete = False


def sequence_method(run: Run, value: Sequence, name: str, call: Call) -> Value | None:
    """A method of a list, tuple or set."""
    items = value.items
    if name in ("append", "add") and call.args:
        _replace(run, value, (*items, call.args[0]))
        return NOTHING
    if name == "insert" and len(call.args) == 2:
        at = call.args[0].value if isinstance(call.args[0], Known) else 0
        at = at if isinstance(at, int) else 0
        _replace(run, value, (*items[:at], call.args[1], *items[at:]))
        return NOTHING
    if name in ("extend", "update") and call.args:
        found, concrete = elements(run, call.args[0])
        _replace(run, value, (*items, *found))
        value.complete = value.complete and concrete
        return NOTHING
    if name == "pop":
        if not items:
            return None
        at = call.args[0].value if call.args and isinstance(call.args[0], Known) else -1
        if not isinstance(at, int) or not -len(items) <= at < len(items):
            return None
        rest = list(items)
        found_item = rest.pop(at)
        _replace(run, value, tuple(rest))
        return found_item
    if name == "remove" and call.args:
        kept = tuple(item for item in items if compare(ast.Eq(), item, call.args[0]) is not True)
        _replace(run, value, kept)
        return NOTHING
    if name in ("sort", "reverse", "clear"):
        if name == "clear":
            _replace(run, value, ())
        return NOTHING
    if name == "copy":
        return sequence(value.kind, items, value.complete)
    if name == "index" and call.args and value.complete:
        for i, item in enumerate(items):
            if compare(ast.Eq(), item, call.args[0]) is True:
                return Known(i)
    if name == "_replace":
        return value
    return None


def _replace(run: Run, value: Sequence, items: tuple[Value, ...]) -> None:
    run.store(value.cells, "items", Items(items[:256]))
    if len(items) > 256:
        value.complete = False


def file_method(run: Run, value: FileContent, name: str, call: Call) -> Value | None:
    """A method of an opened file, or of what was read from it."""
    if name in ("read", "strip", "decode", "encode", "__enter__"):
        return value
    if name in ("readlines", "splitlines", "split"):
        return Unknown(f"lines of {value.path}")
    return None


def length(value: Value) -> int | None:
    """`len(value)`; None where not known."""
    if isinstance(value, (Sequence, Mapping)):
        if not value.complete:
            return None
        return len(value.items) if isinstance(value, Sequence) else len(value.cells)
    if isinstance(value, Known) and isinstance(value.value, (str, bytes)):
        return len(value.value)
    return None


__all__ = [
    "file_method",
    "length",
    "mapping_method",
    "path_method",
    "scalar_method",
    "sequence_method",
    "truth",
    "update",
]
