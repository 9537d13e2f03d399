"""Attributes, elements and iteration of values, as far as they are known."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.dataflow.values import (
    Choice,
    Class,
    External,
    Field,
    FileContent,
    Function,
    Instance,
    Items,
    Known,
    Mapping,
    Method,
    Module,
    Native,
    Partial,
    Property,
    Sequence,
    Static,
    Super,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    label_of,
    sequence,
)

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

MAX_UNROLLED = 64
"""Elements up to which a loop over a known sequence is followed one by one."""


def mro(cls: Class) -> list[Class]:
    """The class and its bases in the project, nearest first; close enough to Python's order for single roots."""
    out: list[Class] = []
    for base in (cls, *(base for base in cls.bases if isinstance(base, Class))):
        for found in [cls] if base is cls else mro(base):
            if found in out:
                out.remove(found)
            out.append(found)
    return out


def external_bases(cls: Class) -> list[External]:
    """Bases from outside the project, of the class or of any base of it."""
    return [base for found in mro(cls) for base in found.bases if isinstance(base, External)]


def class_attribute(cls: Class, name: str) -> tuple[Value, Class] | None:
    """An attribute found on a class or its bases, and where."""
    for found in mro(cls):
        if name in found.cells:
            return found.cells[name], found
    return None


def get_attribute(run: Run, value: Value, name: str) -> Value:
    """`value.name`."""
    if isinstance(value, Choice):
        return join(get_attribute(run, option, name) for option in value.options)
    if isinstance(value, Instance):
        return _instance_attribute(run, value, name)
    if isinstance(value, Module):
        return _module_attribute(run, value, name)
    if isinstance(value, Class):
        return _class_member(run, value, name)
    if isinstance(value, Super):
        return _super_attribute(run, value, name)
    if isinstance(value, External):
        return run.library.attribute(run, value, name)
    if isinstance(value, Mapping):
        if name == "__dict__":
            return value
        if value.namespace and name in value.cells:
            return run.resolved(value.cells[name])
        return Method(value, name)
    if isinstance(value, Native):
        return value.attribute(run, name) or Method(value, name)
    if isinstance(value, Known) and isinstance(value.value, PurePosixPath):
        return _path_attribute(value, name)
    if isinstance(value, Function):
        return Known(value.name) if name in ("__name__", "__qualname__") else Method(value, name)
    if isinstance(value, (Known, Sequence, FileContent, Partial)):
        return Method(value, name)
    return Unknown(f"{label_of(value)}.{name}", feeds_of(value), ())


def has_attribute(run: Run, value: Value, name: str) -> bool | None:
    """`hasattr(value, name)`; None where not known."""
    if isinstance(value, Instance):
        if name in value.cells or class_attribute(value.cls, name) is not None:
            return True
        return None if external_bases(value.cls) else False
    if isinstance(value, Mapping):
        if name in value.cells and value.namespace:
            return True
        return True if hasattr(dict, name) else False if value.complete else None
    if isinstance(value, Known):
        return hasattr(type(value.value), name)
    if isinstance(value, Module):
        return name in value.cells or None
    if isinstance(value, Class):
        return class_attribute(value, name) is not None or None
    return None


def set_attribute(run: Run, value: Value, name: str, new: Value) -> None:
    """`value.name = new`."""
    new = carried(new, name)
    run.name_feeds(new, name)
    if isinstance(value, Choice):
        for option in value.options:
            set_attribute(run, option, name, new)
    elif isinstance(value, Instance):
        setter = class_attribute(value.cls, "__setattr__")
        if name == "__dict__" and isinstance(new, Instance) and isinstance(new.native, Mapping):
            value.cells = new.native.cells
        elif name == "__dict__" and isinstance(new, Mapping):
            value.cells = new.cells
        elif setter is not None and isinstance(setter[0], Function) and not run.is_running(setter[0]):
            run.call(bind(setter[0], value, setter[1]), run.plain_call([Known(name), new]))
        else:
            run.store(value.cells, name, new)
    elif isinstance(value, (Module, Class)) or (isinstance(value, Mapping) and value.namespace):
        run.store(value.cells, name, new)
        for feed in value.feeds if isinstance(value, Mapping) else ():
            if feed.name == name:
                # `training_args.per_device_train_batch_size = 16`
                feed.batch = new
    elif isinstance(value, (External, Unknown, Method)):
        run.library.set_attribute(run, value, name, new)


def get_item(run: Run, value: Value, key: Value, text: str) -> Value:
    """`value[key]`; `text` is how the source writes it."""
    if isinstance(value, Choice):
        return join(get_item(run, option, key, text) for option in value.options)
    if isinstance(key, Choice):
        return join(get_item(run, value, option, text) for option in key.options)
    if isinstance(value, Mapping):
        if isinstance(key, Known) and _hashable(key.value):
            if key.value in value.cells:
                return run.resolved(value.cells[key.value])
            if value.factory is not None:
                made = run.call(value.factory, run.plain_call([]))
                run.store(value.cells, key.value, made)
                return made
        elif value.cells and value.complete:
            return join(run.resolved(item) for item in value.cells.values())
        return Unknown(text, feeds_of(value))
    if isinstance(value, Sequence):
        return _sequence_item(value, key, text)
    if isinstance(value, Known) and isinstance(key, Known):
        try:
            return Known(value.value[key.value])
        except (TypeError, KeyError, IndexError, ValueError):
            return Unknown(text)
    if isinstance(value, Instance):
        getter = class_attribute(value.cls, "__getitem__")
        if getter is not None and isinstance(getter[0], Function):
            return run.call(bind(getter[0], value, getter[1]), run.plain_call([key]))
        if value.native is not None:
            return get_item(run, value.native, key, text)
        return Unknown(text, _held_feeds(value))
    if isinstance(value, Native):
        found = value.item(run, key)
        if found is not None:
            return found
    if isinstance(value, External):
        return run.library.item(run, value, key, text)
    item = value.item if isinstance(value, Unknown) else None
    if item is not None and isinstance(key, Known) and isinstance(key.value, int):
        return item
    return Unknown(text, feeds_of(value) | feeds_of(key))


def set_item(run: Run, value: Value, key: Value, new: Value) -> None:
    """`value[key] = new`."""
    if isinstance(key, Known) and isinstance(key.value, str):
        new = carried(new, key.value)
        run.name_feeds(new, key.value)
    if isinstance(value, Choice):
        for option in value.options:
            set_item(run, option, key, new)
    elif isinstance(value, Mapping):
        if isinstance(key, Known) and _hashable(key.value):
            run.store(value.cells, key.value, new)
        else:
            value.complete = False
    elif isinstance(value, Sequence):
        items = list(value.items)
        if isinstance(key, Known) and isinstance(key.value, int) and -len(items) <= key.value < len(items):
            items[key.value] = new
            run.store(value.cells, "items", Items(tuple(items)))
    elif isinstance(value, Instance):
        setter = class_attribute(value.cls, "__setitem__")
        if setter is not None and isinstance(setter[0], Function):
            run.call(bind(setter[0], value, setter[1]), run.plain_call([key, new]))
        elif value.native is not None:
            set_item(run, value.native, key, new)


def elements(run: Run, value: Value) -> tuple[list[Value], bool]:
    """What iterating gives: all elements and True, or one that stands for each and False."""
    if isinstance(value, Sequence) and value.complete:
        if len(value.items) <= MAX_UNROLLED:
            return list(value.items), True
        return [join(value.items)], False
    if isinstance(value, Sequence):
        return [join(value.items) if value.items else Unknown(f"an element of {value.kind}")], False
    if isinstance(value, Mapping):
        if value.complete and len(value.cells) <= MAX_UNROLLED:
            return [Known(key) for key in value.cells], True
        return [Unknown("a key")], False
    if isinstance(value, Known) and isinstance(value.value, str) and len(value.value) <= MAX_UNROLLED:
        return [Known(character) for character in value.value], True
    if isinstance(value, Choice):
        return [join(elements(run, option)[0][0] for option in value.options if elements(run, option)[0])], False
    if isinstance(value, Instance):
        return [_iterated_instance(run, value)], False
    if isinstance(value, Unknown):
        if value.item is not None:
            return [value.item], False
        return [Unknown(f"an element of {value.label}", value.feeds)], False
    return [Unknown(f"an element of {label_of(value)}", feeds_of(value))], False


def unpack(run: Run, value: Value, count: int, starred: int | None) -> list[Value]:
    """`value` taken apart into `count` targets, one of which may be starred."""
    if isinstance(value, Choice):
        columns = [unpack(run, option, count, starred) for option in value.options]
        return [join(column) for column in zip(*columns, strict=True)]
    if isinstance(value, Sequence) and value.complete:
        items = list(value.items)
        if starred is None and len(items) == count:
            return items
        if starred is not None and len(items) >= count - 1:
            tail = count - 1 - starred
            middle = items[starred : len(items) - tail] if tail else items[starred:]
            return [*items[:starred], sequence("list", middle), *(items[-tail:] if tail else [])]
    if isinstance(value, Known) and isinstance(value.value, str) and len(value.value) == count:
        return [Known(character) for character in value.value]
    if isinstance(value, Mapping) and value.complete and len(value.cells) == count:
        return [Known(key) for key in value.cells]
    if isinstance(value, Instance) and value.cls.record and len(value.cls.fields) == count:
        return [value.cells.get(name, Unknown(name)) for name in value.cls.fields]
    found, concrete = elements(run, value)
    if concrete and len(found) == count and starred is None:
        return found
    each = found[0] if found and not concrete else Unknown(label_of(value), feeds_of(value))
    return [each] * count


def bind(function: Function, receiver: Value, owner: Class | None) -> Function:
    """The function as a method of `receiver`."""
    return Function(
        node=function.node,
        scope=function.scope,
        name=function.name,
        defaults=function.defaults,
        receiver=receiver,
        owner=owner or function.owner,
    )


def clone(value: Value, deep: bool = True) -> Value:
    """A copy of a container or object, as `copy.deepcopy` makes it."""
    if isinstance(value, Mapping):
        cells = {key: clone(item) if deep else item for key, item in value.cells.items()}
        return Mapping(cells, value.complete, value.namespace, value.factory)
    if isinstance(value, Sequence):
        return sequence(value.kind, [clone(item) if deep else item for item in value.items], value.complete)
    if isinstance(value, Instance):
        cells = {key: clone(item) if deep and item is not value else item for key, item in value.cells.items()}
        native = clone(value.native, deep) if value.native is not None else None
        return Instance(cls=value.cls, cells=cells, native=native)
    return value


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _instance_attribute(run: Run, value: Instance, name: str) -> Value:
    if name == "__dict__":
        return Mapping(value.cells, complete=True, namespace=True)
    if name == "__class__":
        return value.cls
    member = class_attribute(value.cls, name)
    if member is not None and isinstance(member[0], Property):
        getter = member[0].getter
        if isinstance(getter, Function) and not run.is_running(getter):
            return run.call(bind(getter, value, member[1]), run.plain_call([]))
        return Unknown(f"{value.cls.name}.{name}")
    if name in value.cells:
        return run.resolved(value.cells[name])
    if member is not None:
        return _bound(run, member[0], value, value.cls, member[1])
    if value.native is not None:
        if isinstance(value.native, Native):
            return value.native.attribute(run, name) or Method(value.native, name)
        if isinstance(value.native, Mapping) and (value.native.namespace or hasattr(dict, name)):
            return get_attribute(run, value.native, name)
    fallback = class_attribute(value.cls, "__getattr__")
    if fallback is not None and not name.startswith("__"):
        if isinstance(fallback[0], Function) and not run.is_running(fallback[0]):
            return run.call(bind(fallback[0], value, fallback[1]), run.plain_call([Known(name)]))
        got = class_attribute(value.cls, "__getitem__") or fallback
        if got is not fallback or isinstance(fallback[0], External):
            return get_item(run, value, Known(name), f"{value.cls.name}.{name}")
    if isinstance(value.native, Unknown):
        return get_attribute(run, value.native, name)
    if external_bases(value.cls):
        return Method(value, name)
    return Unknown(f"{value.cls.name}.{name}", feeds_of(value))


def _class_member(run: Run, cls: Class, name: str) -> Value:
    if name in ("__name__", "__qualname__"):
        return Known(cls.name)
    if name == "__dict__":
        return Mapping(cls.cells)
    member = class_attribute(cls, name)
    if member is None:
        return Unknown(f"{cls.name}.{name}")
    value, owner = member
    if isinstance(value, Static):
        return _bound(run, value, cls, cls, owner)
    if isinstance(value, Function):
        return Function(
            node=value.node,
            scope=value.scope,
            name=value.name,
            defaults=value.defaults,
            owner=owner,
        )
    if isinstance(value, Field):
        return _field_default(run, value)
    return run.resolved(value)


def _bound(run: Run, value: Value, receiver: Value, cls: Class, owner: Class) -> Value:
    if isinstance(value, Function):
        return bind(value, receiver, owner)
    if isinstance(value, Static):
        inner = value.function
        if isinstance(inner, Function):
            return (
                bind(inner, cls, owner)
                if value.of_class
                else _class_member(run, owner, inner.name)
                if (isinstance(owner.cells.get(inner.name), Function))
                else inner
            )
        return inner
    if isinstance(value, Field):
        return _field_default(run, value)
    return value


def _field_default(run: Run, value: Field) -> Value:
    if value.default is not None:
        return value.default
    if value.factory is not None:
        return run.call(value.factory, run.plain_call([]))
    return Unknown("a field")


def field_default(run: Run, value: Value) -> Value:
    """The value that a record's field starts with."""
    return _field_default(run, value) if isinstance(value, Field) else value


def _super_attribute(run: Run, value: Super, name: str) -> Value:
    receiver = value.receiver
    start = receiver.cls if isinstance(receiver, Instance) else receiver if isinstance(receiver, Class) else value.cls
    order = mro(start)
    after = order[order.index(value.cls) + 1 :] if value.cls in order else mro(value.cls)[1:]
    for cls in after:
        if name in cls.cells:
            found = cls.cells[name]
            if isinstance(found, Property) and isinstance(found.getter, Function):
                return run.call(bind(found.getter, receiver, cls), run.plain_call([]))
            return _bound(run, found, receiver, start, cls)
    return Method(value, name)


def _module_attribute(run: Run, module: Module, name: str) -> Value:
    if name == "__dict__":
        return Mapping(module.cells)
    if name in module.cells:
        return module.cells[name]
    submodule = run.modules.submodule(run, module, name)
    if submodule is not None:
        return submodule
    if module.star_externals:
        return External(f"{module.star_externals[-1]}.{name}")
    return Unknown(f"{module.name}.{name}")


def _path_attribute(value: Known, name: str) -> Value:
    path = value.value
    assert isinstance(path, PurePosixPath)
    if name == "parent":
        return Known(path.parent)
    if name == "parents":
        return sequence("tuple", [Known(parent) for parent in path.parents])
    if name in ("name", "stem", "suffix"):
        return Known(getattr(path, name))
    return Method(value, name)


def _sequence_item(value: Sequence, key: Value, text: str) -> Value:
    items = value.items
    if isinstance(key, Known) and isinstance(key.value, int) and value.complete:
        if -len(items) <= key.value < len(items):
            return items[key.value]
        return Unknown(text)
    if isinstance(key, Known) and isinstance(key.value, slice) and value.complete:
        return sequence(value.kind, items[key.value])
    if items:
        return join(items)
    return Unknown(text)


def _iterated_instance(run: Run, value: Instance) -> Value:
    for name, calls in (("__iter__", []), ("__getitem__", [Unknown("an index")])):
        member = class_attribute(value.cls, name)
        if member is None or not isinstance(member[0], Function) or run.is_running(member[0]):
            continue
        result = run.call(bind(member[0], value, member[1]), run.plain_call(list(calls)))
        if name == "__getitem__":
            return result
        following = class_attribute(result.cls, "__next__") if isinstance(result, Instance) else None
        if isinstance(result, Instance) and following is not None and isinstance(following[0], Function):
            return run.call(bind(following[0], result, following[1]), run.plain_call([]))
        if result is not value:
            found, _ = elements(run, result)
            return join(found) if found else Unknown(value.cls.name)
    return Unknown(f"an element of {value.cls.name}", feeds_of(value) | _held_feeds(value))


def _held_feeds(value: Instance) -> frozenset[Any]:
    found: frozenset[Any] = feeds_of(value)
    for held in value.cells.values():
        found = found | feeds_of(held, 1)
    return found
