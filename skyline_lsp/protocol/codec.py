"""Frozen dataclasses to JSON values and back, checked against their annotations.

Standard library only, since the worker has nothing else. Unknown keys are ignored, so that a newer peer may add a
field; a missing key takes the field's default; anything else that does not fit raises `DecodeError` with the path.
"""

import dataclasses
import enum
import functools
import types
import typing
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")


class DecodeError(ValueError):
    """A JSON value that does not have the shape its type asks for; the message starts with the path to it."""


def to_json(value: Any) -> Any:
    """Turn dataclasses, enums, tuples and mappings, at any depth, into what `json.dumps` accepts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


def from_json(cls: type[T], value: Any) -> T:
    """Build a `cls` from a JSON value. Raises `DecodeError` where the value does not fit."""
    return typing.cast(T, _decode(cls, value, cls.__name__))


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, value: Any, path: str) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(hint, value, path)
    if origin is tuple:
        return _decode_tuple(hint, value, path)
    if origin is dict:
        if not isinstance(value, dict):
            raise DecodeError(f"{path}: an object is expected, not {type(value).__name__}")
        item = get_args(hint)[1]
        return {key: _decode(item, child, f"{path}.{key}") for key, child in value.items()}
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(typing.cast(type, hint), value, path)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError as error:
            raise DecodeError(f"{path}: {error}") from error
    return _decode_scalar(hint, value, path)


def _decode_union(hint: Any, value: Any, path: str) -> Any:
    options = [option for option in get_args(hint) if option is not type(None)]
    if value is None:
        if len(options) < len(get_args(hint)):
            return None
        raise DecodeError(f"{path}: null is not allowed here")
    errors = []
    for option in options:
        try:
            return _decode(option, value, path)
        except DecodeError as error:
            errors.append(str(error))
    raise DecodeError("; ".join(errors))


def _decode_tuple(hint: Any, value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise DecodeError(f"{path}: a list is expected, not {type(value).__name__}")
    arguments = get_args(hint)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    if len(arguments) != len(value):
        raise DecodeError(f"{path}: {len(arguments)} items are expected, not {len(value)}")
    return tuple(_decode(a, item, f"{path}[{i}]") for i, (a, item) in enumerate(zip(arguments, value, strict=True)))


def _decode_dataclass(cls: type, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise DecodeError(f"{path}: an object is expected, not {type(value).__name__}")
    hints = _hints(cls)
    arguments = {}
    for field in dataclasses.fields(cls):
        if field.name in value:
            arguments[field.name] = _decode(hints[field.name], value[field.name], f"{path}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise DecodeError(f"{path}.{field.name}: missing")
    return cls(**arguments)


def _decode_scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise DecodeError(f"{path}: {hint.__name__} is expected, not {type(value).__name__}")
    return value
