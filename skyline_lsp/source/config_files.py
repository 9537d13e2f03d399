"""Configuration files as trees whose integers know where they stand: YAML, JSON, TOML and INI.

PyYAML gives positions for YAML. The standard parsers of the others give none, so they are scanned here; a position is
kept only where it survives the proof: with other digits there, the standard parser reads the other number, and nothing
else has changed.
"""

import configparser
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from skyline_lsp.source.site import SiteKind
from skyline_lsp.source.text import SourceText, decode_as

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ConfigError(Exception):
    """A configuration file that can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a number is written."""

    line: int
    """1-based."""
    column: int
    """0-based, in code points."""
    start: int
    """Byte offset in the file's bytes."""
    end: int
    text: str
    """The digits, quotes left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A value, and for integers (and strings of digits) where it stands."""

    value: Any
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping with its keys in order."""

    entries: dict[Any, "Node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """A sequence."""

    items: tuple["Node", ...]


Node = Scalar | Table | Array

_KINDS = {
    ".yaml": SiteKind.YAML,
    ".yml": SiteKind.YAML,
    ".json": SiteKind.JSON,
    ".jsonc": SiteKind.JSON,
    ".toml": SiteKind.TOML,
    ".ini": SiteKind.INI,
    ".cfg": SiteKind.INI,
    ".conf": SiteKind.INI,
}

CONFIG_SUFFIXES = tuple(_KINDS)

_DEEPEST = 100
_LARGEST_BYTES = 1_000_000


def kind_of(path: str) -> SiteKind | None:
    """The format that a file's name tells."""
    suffix = path[path.rfind(".") :].lower() if "." in path else ""
    return _KINDS.get(suffix)


def integers(node: Node, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    """Integers, and strings of digits, below a node that know their position, each with its keys."""
    if isinstance(node, Table):
        for key, item in node.entries.items():
            yield from integers(item, (*keys, str(key)))
    elif isinstance(node, Array):
        for i, item in enumerate(node.items):
            yield from integers(item, (*keys, str(i)))
    elif node.position is not None and keys:
        yield keys, node


def read_config(data: bytes, kind: SiteKind) -> Node:
    """The tree of a file's bytes; several YAML documents stand in an array. Raises `ConfigError` on other formats."""
    documents = read_documents(data, kind)
    if not documents:
        return Table(entries={})
    return documents[0] if len(documents) == 1 else Array(items=documents)


@lru_cache(maxsize=256)
def read_documents(data: bytes, kind: SiteKind) -> tuple[Node, ...]:
    """The trees of a file's bytes: of YAML there may be several, or none."""
    if len(data) > _LARGEST_BYTES:
        raise ConfigError(f"longer than {_LARGEST_BYTES} bytes")
    source = decode_as(data)
    if source.problem is not None:
        raise ConfigError(source.problem)
    try:
        if kind is SiteKind.JSON:
            return (_Json(source).read(),)
        if kind is SiteKind.TOML:
            return (_toml(source),)
        if kind is SiteKind.INI:
            return (_ini(source),)
        return _yaml(source)
    except RecursionError as error:
        raise ConfigError("nested too deeply") from error


def _position(source: SourceText, index: int, text: str) -> Position:
    line, column = source.position(index)
    start, end = source.byte_offset(line, column), source.byte_offset(line, column + len(text))
    return Position(line=line, column=column, start=start, end=end, text=text)


# YAML

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser where PyYAML was built with it: ten times as fast."""

_CONSTRUCTOR = yaml.constructor.SafeConstructor()


def _yaml(source: SourceText) -> tuple[Node, ...]:
    """The documents of a YAML file."""
    try:
        roots = [root for root in yaml.compose_all(source.text, Loader=_LOADER) if root is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(" ".join(str(error).split())) from error
    return tuple(_yaml_node(source, root, 0, {}) for root in roots)


def _yaml_node(source: SourceText, node: yaml.Node, depth: int, seen: dict[int, Node]) -> Node:
    if depth > _DEEPEST:
        raise ConfigError("nested too deeply")
    found = seen.get(id(node))
    if found is not None:
        return found
    made: Node
    if isinstance(node, yaml.ScalarNode):
        made = _yaml_scalar(source, node)
    elif isinstance(node, yaml.SequenceNode):
        made = Array(items=tuple(_yaml_node(source, item, depth + 1, seen) for item in node.value))
    elif isinstance(node, yaml.MappingNode):
        entries: dict[Any, Node] = {}
        merged: dict[Any, Node] = {}
        for key_node, value_node in node.value:
            value = _yaml_node(source, value_node, depth + 1, seen)
            if key_node.tag == "tag:yaml.org,2002:merge":
                for part in value.items if isinstance(value, Array) else (value,):
                    if isinstance(part, Table):
                        merged = {**part.entries, **merged}
                continue
            key = _yaml_scalar(source, key_node).value if isinstance(key_node, yaml.ScalarNode) else None
            entries[key] = value
        made = Table(entries={**merged, **entries})
    else:
        made = Scalar(value=None)
    seen[id(node)] = made
    return made


def _yaml_scalar(source: SourceText, node: yaml.ScalarNode) -> Scalar:
    text = str(node.value)
    try:
        value = _CONSTRUCTOR.construct_object(yaml.ScalarNode(node.tag, text), deep=True)
    except (yaml.YAMLError, ValueError):
        value = text
    start = node.start_mark.index
    if isinstance(value, int) and not isinstance(value, bool):
        if source.text[start : start + len(text)] == text and not text.startswith(("+", "-")) and ":" not in text:
            return Scalar(value=value, position=_position(source, start, text))
        if text == "-1" and source.text[start : start + 2] == "-1":
            return Scalar(value=value, position=_position(source, start, text))
    elif isinstance(value, str) and node.style in ("'", '"') and text.isascii() and text.isdigit():
        # An escape would make the text and the value differ.
        if source.text[start + 1 : start + 1 + len(text)] != text:
            return Scalar(value=value)
        return Scalar(value=value, position=_position(source, start + 1, text))
    return Scalar(value=value)


# JSON


class _Json:
    """A recursive reader of JSON; comments, as in many tools' files, are skipped."""

    _space = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
    _number = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._text = source.text

    def read(self) -> Node:
        node, at = self._node(self._skip(0), 0)
        if self._skip(at) != len(self._text):
            raise ConfigError("something follows the JSON value")
        return node

    def _skip(self, at: int) -> int:
        match = self._space.match(self._text, at)
        return match.end() if match is not None else at

    def _node(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > _DEEPEST:
            raise ConfigError("nested too deeply")
        start = self._text[at : at + 1]
        if start == "{":
            return self._object(at + 1, depth)
        if start == "[":
            return self._array(at + 1, depth)
        if start == '"':
            value, end = self._string(at)
            if value.isascii() and value.isdigit() and self._text[at + 1 : end - 1] == value:
                return Scalar(value=value, position=_position(self._source, at + 1, value)), end
            return Scalar(value=value), end
        for word, constant in (("true", True), ("false", False), ("null", None)):
            if self._text.startswith(word, at):
                return Scalar(value=constant), at + len(word)
        match = self._number.match(self._text, at)
        if match is None or not match.group():
            line, column = self._source.position(at)
            raise ConfigError(f"not JSON at line {line}, column {column + 1}")
        text = match.group()
        if match.group(1) or match.group(2):
            return Scalar(value=float(text)), match.end()
        keep = not text.startswith("-") or text == "-1"
        position = _position(self._source, at, text) if keep else None
        return Scalar(value=int(text), position=position), match.end()

    def _string(self, at: int) -> tuple[str, int]:
        end = at + 1
        while end < len(self._text) and self._text[end] != '"':
            end += 2 if self._text[end] == "\\" else 1
        try:
            return str(json.loads(self._text[at : end + 1], strict=False)), end + 1
        except ValueError as error:
            raise ConfigError(f"not JSON: {error}") from error

    def _object(self, at: int, depth: int) -> tuple[Node, int]:
        entries: dict[Any, Node] = {}
        at = self._skip(at)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                line, column = self._source.position(at)
                raise ConfigError(f"a key is expected at line {line}, column {column + 1}")
            key, at = self._string(at)
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                raise ConfigError(f"a colon is expected after {key!r}")
            entries[key], at = self._node(self._skip(at + 1), depth + 1)
            at = self._skip(at)
            if self._text[at : at + 1] == ",":
                at = self._skip(at + 1)
        return Table(entries=entries), at + 1

    def _array(self, at: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        at = self._skip(at)
        while self._text[at : at + 1] != "]":
            item, at = self._node(at, depth + 1)
            items.append(item)
            at = self._skip(at)
            if self._text[at : at + 1] == ",":
                at = self._skip(at + 1)
        return Array(items=tuple(items)), at + 1


# TOML

_TOML_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*)")


def _toml(source: SourceText) -> Node:
    text = source.text
    try:
        values = tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ConfigError(str(error)) from error
    tree = _plain(values)
    for match in re.finditer(r"[0-9]", text):
        if match.start() and re.match(r"[0-9A-Za-z_.\-+:]", text[match.start() - 1]) and text[match.start() - 1] != "-":
            continue
        start = match.start() - (text[match.start() - 1 : match.start()] == "-")
        number = _TOML_INTEGER.match(text, start)
        if number is None:
            continue
        found = _toml_path(text, values, start, number.group())
        if found is not None:
            tree = _with_position(tree, found, _position(source, start, number.group()))
    return tree


def _toml_path(text: str, values: Any, start: int, digits: str) -> tuple[Any, ...] | None:
    """The keys of the integer written at an index: those of the value that changes when its digits do."""
    end = start + len(digits)
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    if "=" not in text[line_start:start] and "[" not in text[:start]:
        return None
    other = "7919" if digits.replace("_", "") != "7919" else "7907"
    try:
        changed = tomllib.loads((text[:start] + other + text[end:]).replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, ValueError):
        return None
    differing = _differences(values, changed, ())
    if len(differing) != 1:
        return None
    path, before, after = differing[0]
    if isinstance(before, int) and not isinstance(before, bool) and after == int(other):
        return path
    if isinstance(before, str) and before == digits and after == other:
        return path
    return None


def _differences(a: Any, b: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return [(path, None, None)] * 2
        return [found for key in a for found in _differences(a[key], b[key], (*path, key))]
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return [(path, None, None)] * 2
        return [found for i in range(len(a)) for found in _differences(a[i], b[i], (*path, i))]
    return [] if type(a) is type(b) and (a == b or a != a) else [(path, a, b)]


def _plain(value: Any) -> Node:
    if isinstance(value, dict):
        return Table(entries={key: _plain(item) for key, item in value.items()})
    if isinstance(value, list):
        return Array(items=tuple(_plain(item) for item in value))
    return Scalar(value=value)


def _with_position(node: Node, path: tuple[Any, ...], position: Position) -> Node:
    if not path:
        return Scalar(value=node.value, position=position) if isinstance(node, Scalar) else node
    if isinstance(node, Table):
        entries = dict(node.entries)
        entries[path[0]] = _with_position(entries[path[0]], path[1:], position)
        return Table(entries=entries)
    if isinstance(node, Array):
        items = list(node.items)
        items[path[0]] = _with_position(items[path[0]], path[1:], position)
        return Array(items=tuple(items))
    return node


# INI

_INI_SECTION = re.compile(r"^\[(?P<name>[^\]]+)\]")
_INI_OPTION = re.compile(r"^(?P<key>[^=:\s][^=:]*?)\s*[=:]\s*(?P<value>\d+)\s*(?:[#;].*)?$")


def _ini(source: SourceText) -> Node:
    parser = configparser.ConfigParser(interpolation=None, strict=False, inline_comment_prefixes=("#", ";"))
    try:
        parser.read_string(source.text)
    except configparser.Error as error:
        raise ConfigError(" ".join(str(error).split())) from error
    positions: dict[tuple[str, str], Position] = {}
    section = ""
    for number, line in enumerate(source.lines, 1):
        header = _INI_SECTION.match(line)
        if header is not None:
            section = header["name"]
            continue
        option = _INI_OPTION.match(line)
        if option is not None:
            column = option.start("value")
            index = source.index(number, column)
            positions[section, parser.optionxform(option["key"])] = _position(source, index, option["value"])
    entries: dict[Any, Node] = {}
    for name in [parser.default_section, *parser.sections()]:
        table: dict[Any, Node] = {}
        for key, value in parser[name].items():
            position = positions.get((name, key)) or positions.get((parser.default_section, key))
            kept = position if position is not None and position.text == value else None
            table[key] = Scalar(value=value, position=kept)
        entries[name] = Table(entries=table)
    return Table(entries=entries)
