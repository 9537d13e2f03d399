"""Operators and conversions on partly known values.

Numbers keep the literals they come from, with the part that each has in them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from skyline_lsp.source.dataflow.values import (
    Choice,
    Class,
    External,
    Function,
    Instance,
    Known,
    Mapping,
    Module,
    Sequence,
    Source,
    Unknown,
    Value,
    feeds_of,
    join,
    names_batch_size,
    sequence,
    sources_of,
)

_LARGEST = 1 << 64
_LONGEST = 10_000

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_VERBS: dict[type[ast.operator], str] = {
    ast.Add: "added to",
    ast.Sub: "with a subtraction of",
    ast.Mult: "multiplied by",
    ast.Div: "divided by",
    ast.FloorDiv: "divided by",
    ast.Pow: "raised to a power with",
    ast.LShift: "shifted with",
    ast.RShift: "shifted with",
}


def truth(value: Value) -> bool | None:
    """Whether a value is true; None where not known."""
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, Sequence):
        return bool(value.items) if value.items or value.complete else None
    if isinstance(value, Mapping):
        if value.namespace and not value.cells:
            return None
        return bool(value.cells) if value.cells or value.complete else None
    if isinstance(value, (Function, Class, Module)):
        return True
    if isinstance(value, Instance):
        return None if "__len__" in value.cls.cells or "__bool__" in value.cls.cells else True
    if isinstance(value, Choice):
        found = {truth(option) for option in value.options}
        return found.pop() if len(found) == 1 else None
    return None


def binary(op: ast.operator, left: Value, right: Value, left_text: str, right_text: str) -> Value:
    """`left op right`; the texts are how the source writes the two."""
    if isinstance(left, Choice):
        return join(binary(op, option, right, left_text, right_text) for option in left.options)
    if isinstance(right, Choice):
        return join(binary(op, left, option, left_text, right_text) for option in right.options)
    if isinstance(left, Known) and isinstance(right, Known):
        found, result = _compute(op, left.value, right.value)
        if found:
            return Known(result, _combine(op, left, right, left_text, right_text) if _is_number(result) else ())
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, (ast.Add, ast.BitOr)):
        return sequence(left.kind, (*left.items, *right.items), left.complete and right.complete)
    if isinstance(left, Sequence) and isinstance(op, ast.Mult) and isinstance(right, Known):
        count = right.value if isinstance(right.value, int) else 0
        if 0 <= count * len(left.items) <= 64:
            return sequence(left.kind, left.items * count, left.complete)
        return sequence(left.kind, left.items, False)
    if isinstance(left, Mapping) and isinstance(right, Mapping) and isinstance(op, ast.BitOr):
        return Mapping({**left.cells, **right.cells}, left.complete and right.complete, left.namespace)
    return Unknown(
        label=_short(f"{left_text} {_symbol(op)} {right_text}"),
        feeds=feeds_of(left) | feeds_of(right),
        sources=_combine(op, left, right, left_text, right_text),
    )


def unary(op: ast.unaryop, value: Value, text: str) -> Value:
    """`op value`."""
    if isinstance(value, Choice):
        return join(unary(op, option, text) for option in value.options)
    if isinstance(op, ast.Not):
        known = truth(value)
        return Unknown(f"not {text}") if known is None else Known(not known)
    if isinstance(value, Known) and isinstance(value.value, (int, float)):
        if isinstance(op, ast.USub):
            return Known(-value.value, _inexact(value.sources, "negated"))
        if isinstance(op, ast.UAdd):
            return value
        if isinstance(value.value, int):
            return Known(~value.value)
    return Unknown(text, feeds_of(value))


def compare(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """`left op right`; None where not known."""
    if isinstance(left, Choice):
        found = {compare(op, option, right) for option in left.options}
        return found.pop() if len(found) == 1 else None
    if isinstance(right, Choice):
        found = {compare(op, left, option) for option in right.options}
        return found.pop() if len(found) == 1 else None
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _identical(left, right)
        return same if same is None or isinstance(op, ast.Is) else not same
    if isinstance(op, (ast.In, ast.NotIn)):
        inside = contains(right, left)
        return inside if inside is None or isinstance(op, ast.In) else not inside
    if isinstance(left, Known) and isinstance(right, Known):
        try:
            return bool(_COMPARE[type(op)](left.value, right.value))
        except TypeError:
            return None
    if isinstance(op, (ast.Eq, ast.NotEq)):
        same = _identical(left, right)
        return same if same is None or isinstance(op, ast.Eq) else not same
    return None


def contains(container: Value, item: Value) -> bool | None:
    """`item in container`; None where not known."""
    if isinstance(container, Known) and isinstance(item, Known):
        try:
            return item.value in container.value
        except TypeError:
            return None
    if isinstance(container, Mapping) and isinstance(item, Known):
        return True if item.value in container.cells else False if container.complete else None
    if isinstance(container, Instance) and container.native is not None:
        return contains(container.native, item)
    if isinstance(container, Sequence) and isinstance(item, Known):
        answers = [compare(ast.Eq(), member, item) for member in container.items]
        if True in answers:
            return True
        return False if container.complete and None not in answers else None
    return None


def limit(name: str, values: list[Value], texts: list[str]) -> Value:
    """`min(...)` or `max(...)` of several values: the number that counts first, and remarks on the limit."""
    known = [value for value in values if isinstance(value, Known) and isinstance(value.value, (int, float))]
    if known and len(known) == len(values):
        pick = min if name == "min" else max
        best = pick(value.value for value in known)
        active = next(value for value in known if value.value == best)
        sources: list[Source] = []
        for value, text in zip(known, texts, strict=False):
            remark = _limit_remark(name, texts, text)
            maximum = None
            if name == "min":
                maximum = min((int(other.value) for other in known if other is not value), default=None)
            for source in value.sources:
                lowered = _lower(source.maximum, maximum)
                sources.append(replace(source, notes=(*source.notes, remark), maximum=lowered))
        sources.sort(key=lambda source: source.literal not in [s.literal for s in active.sources])
        return Known(best, tuple(sources))
    noted: list[Source] = []
    for limited, text in zip(values, texts, strict=False):
        remark = _limit_remark(name, texts, text)
        noted += [replace(source, notes=(*source.notes, remark)) for source in sources_of(limited)]
    noted.sort(key=lambda source: not speaks_of_batch(source))
    feeds = frozenset().union(*(feeds_of(value) for value in values)) if values else frozenset()
    return Unknown(f"{name}({', '.join(texts)})", feeds, tuple(noted))


def _limit_remark(name: str, texts: list[str], text: str) -> str:
    others = ", ".join(other for other in texts if other != text and other != "...")
    return f"limited to at {'most' if name == 'min' else 'least'} {others}" if others else f"chosen by {name}(...)"


def to_int(value: Value, text: str) -> Value:
    """`int(value)`."""
    if isinstance(value, Choice):
        return join(to_int(option, text) for option in value.options)
    if isinstance(value, Known):
        try:
            return Known(int(value.value), value.sources)
        except (TypeError, ValueError, OverflowError):
            return Unknown(f"int({text})")
    return Unknown(f"int({text})", feeds_of(value), sources_of(value))


def speaks_of_batch(source: Source) -> bool:
    """Whether one of the names that carried the number speaks of a batch size."""
    return any(names_batch_size(name) for name in source.via)


def _compute(op: ast.operator, left: Any, right: Any) -> tuple[bool, Any]:
    if isinstance(op, ast.Div) and isinstance(left, (PurePosixPath, str)) and isinstance(right, (PurePosixPath, str)):
        if isinstance(left, str) and isinstance(right, str):
            return False, None
        return True, PurePosixPath(left) / right
    if isinstance(op, ast.Mult):
        for text, count in ((left, right), (right, left)):
            if isinstance(text, (str, bytes)) and isinstance(count, int) and len(text) * count > _LONGEST:
                return False, None
    if isinstance(op, (ast.Pow, ast.LShift)) and not (
        isinstance(left, (int, float)) and isinstance(right, (int, float)) and abs(left) < 1 << 32 and abs(right) < 64
    ):
        return False, None
    if isinstance(op, ast.Mod) and isinstance(left, str):
        return _format(left, right)
    try:
        result = _BINARY[type(op)](left, right)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return False, None
    if isinstance(result, int) and abs(result) > _LARGEST:
        return False, None
    if isinstance(result, complex):
        return False, None
    return True, result


def _format(template: str, value: Any) -> tuple[bool, Any]:
    try:
        result = template % value
    except (TypeError, ValueError, OverflowError):
        return False, None
    return len(result) <= _LONGEST, result


def _combine(op: ast.operator, left: Value, right: Value, left_text: str, right_text: str) -> tuple[Source, ...]:
    """Sources of `left op right`: each with its part in the result."""
    a, b = sources_of(left), sources_of(right)
    if not a and not b:
        return ()
    if isinstance(op, ast.Mult):
        out = [*_scaled(a, right, right_text, "multiplier"), *_scaled(b, left, left_text, "multiplier")]
    elif isinstance(op, (ast.Div, ast.FloorDiv)):
        out = list(_scaled(a, right, right_text, "divisor"))
        out += _inexact(tuple(source for source in b if speaks_of_batch(source)), f"used to divide {left_text}")
    elif isinstance(op, ast.Mod):
        return ()
    else:
        verb = _VERBS.get(type(op), "combined with")
        out = [*_inexact(a, f"{verb} {right_text}"), *_inexact(b, f"{verb} {left_text}")]
    return tuple(sorted(out, key=_preference))


def _preference(source: Source) -> tuple[bool, bool, int]:
    value = source.literal
    number = getattr(value, "value", None)
    if number is None:
        node = getattr(value, "node", None)
        number = node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else 0
    # Of `4 * 8`, changing the 8 leaves the finer choice.
    return not speaks_of_batch(source), not source.linear, -int(number)


def _scaled(sources: tuple[Source, ...], by: Value, text: str, how: str) -> list[Source]:
    if isinstance(by, Known) and isinstance(by.value, int) and not isinstance(by.value, bool) and by.value > 0:
        if by.value == 1 and not by.sources:
            return list(sources)
        verb = "multiplied" if how == "multiplier" else "divided"
        remark = f"{verb} by {text}" + ("" if text == str(by.value) or by.value == 1 else f" ({by.value})")
        out = []
        for source in sources:
            multiplier, divisor = source.multiplier, source.divisor
            if how == "multiplier":
                multiplier *= by.value
            else:
                divisor *= by.value
            if multiplier % divisor == 0:
                multiplier, divisor = multiplier // divisor, 1
            elif divisor % multiplier == 0:
                multiplier, divisor = 1, divisor // multiplier
            out.append(replace(source, multiplier=multiplier, divisor=divisor, notes=(*source.notes, remark)))
        return out
    verb = "multiplied" if how == "multiplier" else "divided"
    return [replace(source, notes=(*source.notes, f"{verb} by {text}")) for source in sources]


def _inexact(sources: tuple[Source, ...], remark: str) -> tuple[Source, ...]:
    return tuple(replace(source, notes=(*source.notes, remark), linear=False) for source in sources)


def _identical(left: Value, right: Value) -> bool | None:
    """Whether two values are the same object; None where not known."""
    if isinstance(left, Known) and isinstance(right, Known):
        return type(left.value) is type(right.value) and left.value == right.value
    if left is right:
        return True
    objects = (Sequence, Mapping, Instance, Function, Class, Module)
    if (isinstance(left, Known) and isinstance(right, objects)) or (
        isinstance(right, Known) and isinstance(left, objects)
    ):
        return False
    for one, other in ((left, right), (right, left)):
        # What a loader gave, or what a library made, is hardly None.
        if isinstance(one, Unknown) and one.feeds and isinstance(other, Known) and other.value is None:
            return False
    if isinstance(left, External) and isinstance(right, External):
        return left.name == right.name
    if isinstance(left, objects) and isinstance(right, objects):
        return False
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _lower(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _symbol(op: ast.operator) -> str:
    return {
        ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
        ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
    }[type(op)]  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
