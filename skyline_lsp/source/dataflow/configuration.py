"""Configuration files and objects: YAML, JSON, TOML, INI, OmegaConf, Hydra, yacs, mmengine."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from skyline_lsp.source.config_files import (
    Array,
    ConfigError,
    Node,
    Scalar,
    Table,
    kind_of,
    read_config,
    read_documents,
)
from skyline_lsp.source.dataflow.command_line import override
from skyline_lsp.source.dataflow.containers import update
from skyline_lsp.source.dataflow.objects import clone, get_attribute
from skyline_lsp.source.dataflow.operators import to_int, truth
from skyline_lsp.source.dataflow.standard_library import as_namespace
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    Call,
    Class,
    External,
    FileContent,
    FileLiteral,
    Function,
    Instance,
    Known,
    Mapping,
    Method,
    Module,
    Native,
    Partial,
    Reference,
    Sequence,
    Source,
    Unknown,
    Value,
    label_of,
    sequence,
)
from skyline_lsp.source.site import SiteKind

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]
TailHandler = Callable[["Run", str, Call], "Value | None"]

_INTERPOLATION = re.compile(r"\$\{([^${}]+)\}")


# Files


def load(run: Run, what: Value, kind: SiteKind | None = None) -> Value:
    """The content of a configuration file: given by its path, opened, or read."""
    run.library.configured = True
    if isinstance(what, Known) and isinstance(what.value, (str, PurePosixPath)):
        path = str(what.value)
    elif isinstance(what, FileContent):
        path = what.path
    elif isinstance(what, Method):
        return load(run, what.receiver, kind)
    else:
        return Unknown(f"a configuration ({label_of(what)})" if label_of(what) else "a configuration")
    found = run.read(path)
    if found is None:
        run.library.problems.append(f"{path}, which the program reads, is not in the project")
        return Unknown(f"the content of {path}")
    return loaded(run, found[0], found[1], kind)


def loaded(run: Run, path: str, data: bytes, kind: SiteKind | None = None) -> Value:
    """The content of a file that was found."""
    kind = kind_of(path) or kind or SiteKind.YAML
    try:
        tree = read_config(data, kind)
    except ConfigError as error:
        run.library.problems.append(f"{path} can't be read: {error}")
        return Unknown(f"the content of {path}")
    return value_of(tree, run.modules.native_path(path), kind, ())


def value_of(node: Node, path: str, kind: SiteKind, keys: tuple[str, ...]) -> Value:
    """A configuration file's tree as a value; its integers are literals of that file."""
    if isinstance(node, Table):
        cells: dict[Any, Value] = {}
        for key, item in node.entries.items():
            cells[key] = value_of(item, path, kind, (*keys, str(key)))
        return Mapping(cells)
    if isinstance(node, Array):
        return sequence("list", [value_of(item, path, kind, (*keys, str(i))) for i, item in enumerate(node.items)])
    return _scalar(node, path, kind, keys)


def _scalar(node: Scalar, path: str, kind: SiteKind, keys: tuple[str, ...]) -> Known:
    position = node.position
    if position is None:
        return Known(node.value if isinstance(node.value, (str, int, float, bool)) else None)
    literal = FileLiteral(
        path=path,
        line=position.line,
        column=position.column,
        start=position.start,
        end=position.end,
        text=position.text,
        value=int(node.value),
        kind=kind,
        name=".".join(keys),
    )
    return Known(node.value, (Source(literal=literal, via=(keys[-1],) if keys else ()),))


def _load(kind: SiteKind | None) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        what = call.get(0, "stream", "fp", "f", "filename", "path", "s")
        return load(run, what, kind) if what is not None else NOTHING

    return handler


def _load_all(run: Run, call: Call) -> Value:
    """`yaml.load_all(stream)`: the documents one after the other."""
    what = call.get(0, "stream")
    found = run.read(what.path) if isinstance(what, FileContent) else None
    if found is None:
        return load(run, what) if what is not None else NOTHING
    run.library.configured = True
    path, data = found
    try:
        documents = read_documents(data, SiteKind.YAML)
    except ConfigError as error:
        run.library.problems.append(f"{path} can't be read: {error}")
        return Unknown(f"the content of {path}")
    native = run.modules.native_path(path)
    return sequence("list", [value_of(document, native, SiteKind.YAML, ()) for document in documents])


def _load_text(kind: SiteKind) -> Handler:
    """`json.loads(text)`: the text must have come from a file."""

    def handler(run: Run, call: Call) -> Value:
        what = call.get(0, "s", "stream")
        if isinstance(what, Known) and isinstance(what.value, str):
            return Unknown("a parsed string")
        return load(run, what, kind) if what is not None else NOTHING

    return handler


# configparser


class ConfigParser(Native):
    """A `configparser.ConfigParser`."""

    __slots__ = ("_sections",)

    def __init__(self) -> None:
        self._sections = Mapping({})

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("read", "read_file"):
            given = call.args[0] if call.args else NOTHING
            for what in given.items if isinstance(given, Sequence) else (given,):
                content = load(run, what, SiteKind.INI)
                if isinstance(content, Mapping):
                    update(run, self._sections, content, deep=True)
            return NOTHING
        if name in ("get", "getint", "getfloat", "getboolean") and len(call.args) >= 2:
            section, option = call.args[:2]
            found: Value | None = None
            if isinstance(section, Known) and isinstance(option, Known):
                table = self._sections.cells.get(section.value)
                if isinstance(table, Mapping):
                    found = table.cells.get(str(option.value).lower())
            found = found or call.get(None, "fallback")
            if found is None:
                return Unknown(f"a configuration's {label_of(option)}")
            return to_int(found, "an option") if name == "getint" else found
        if name == "sections":
            return sequence("list", [Known(key) for key in self._sections.cells])
        return None

    def item(self, run: Run, key: Value) -> Value | None:
        found = self._sections.cells.get(key.value) if isinstance(key, Known) else None
        return Section(found) if isinstance(found, Mapping) else None


class Section(Native):
    """A section of a `configparser.ConfigParser`."""

    __slots__ = ("_table",)

    def __init__(self, table: Mapping) -> None:
        self._table = table

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("get", "getint", "getfloat") and call.args and isinstance(call.args[0], Known):
            found = self._table.cells.get(str(call.args[0].value).lower()) or call.get(1, "fallback") or NOTHING
            return to_int(found, "an option") if name == "getint" else found
        return None

    def item(self, run: Run, key: Value) -> Value | None:
        return self._table.cells.get(str(key.value).lower()) if isinstance(key, Known) else None


# OmegaConf


def rooted(value: Value, root: Mapping) -> Value:
    """A copy whose interpolations look up in `root`."""
    if isinstance(value, Mapping):
        made = root if value is root else Mapping({}, value.complete, namespace=True)
        cells = {key: rooted(item, root) for key, item in value.cells.items()}
        made.cells.clear()
        made.cells.update(cells)
        return made
    if isinstance(value, Sequence):
        return sequence(value.kind, [rooted(item, root) for item in value.items], value.complete)
    if isinstance(value, Reference):
        return Reference(root, value.text)
    if isinstance(value, Known) and isinstance(value.value, str) and _INTERPOLATION.search(value.value):
        return Reference(root, value.value)
    return value


def as_config(value: Value) -> Value:
    """A value as OmegaConf's own mapping."""
    if isinstance(value, (Instance, Class)):
        value = _structured_value(value)
    if not isinstance(value, Mapping):
        return value
    made = clone(value)
    assert isinstance(made, Mapping)
    return rooted(as_namespace(made), made) if made.namespace else _rooted_copy(made)


def _rooted_copy(value: Mapping) -> Value:
    made = as_namespace(value)
    assert isinstance(made, Mapping)
    return rooted(made, made)


def _structured_value(value: Value) -> Value:
    if isinstance(value, Instance):
        cells = {key: _structured_value(item) for key, item in value.cells.items()}
        return Mapping(cells, namespace=True)
    return value


def resolve(run: Run, value: Reference) -> Value:
    """What an interpolation stands for."""
    whole = _INTERPOLATION.fullmatch(value.text)
    if whole is not None:
        return _resolve_one(run, value.root, whole.group(1))
    text = value.text
    for match in _INTERPOLATION.finditer(value.text):
        found = _resolve_one(run, value.root, match.group(1))
        if not isinstance(found, Known):
            return Unknown(value.text)
        text = text.replace(match.group(), str(found.value))
    return Known(text)


def _resolve_one(run: Run, root: Mapping, inner: str, depth: int = 0) -> Value:
    name, colon, rest = inner.partition(":")
    if colon:
        if name in ("oc.env", "env"):
            variable, comma, default = rest.partition(",")
            fallback: Value = Known(default.strip()) if comma else NOTHING
            return run.library.variable(run, variable.strip(), fallback)
        return Unknown(f"${{{inner}}}")
    found: Value = root
    for key in inner.lstrip(".").split("."):
        if isinstance(found, Mapping) and key in found.cells:
            found = found.cells[key]
            if isinstance(found, Reference):
                if depth > 8:
                    return Unknown(inner)
                match = _INTERPOLATION.fullmatch(found.text)
                found = _resolve_one(run, root, match.group(1), depth + 1) if match else Unknown(found.text)
        else:
            return Unknown(f"${{{inner}}}")
    return found


def _omega_load(run: Run, call: Call) -> Value:
    what = call.get(0, "file_")
    return as_config(load(run, what, SiteKind.YAML)) if what is not None else NOTHING


def _omega_create(run: Run, call: Call) -> Value:
    what = call.get(0, "obj")
    if isinstance(what, Class):
        what = run.instantiate(what, run.plain_call([]))
    return as_config(what) if what is not None else Mapping({}, namespace=True)


def _omega_merge(run: Run, call: Call) -> Value:
    merged = Mapping({}, namespace=True)
    for part in call.args:
        if isinstance(part, Class):
            part = run.instantiate(part, run.plain_call([]))
        value = as_config(part)
        update(run, merged, value, deep=True)
    merged.complete = merged.complete and not call.open
    return _rooted_copy(merged)


def _dotlist(words: list[str], run: Run) -> Value:
    made = Mapping({}, namespace=True)
    for word in words:
        key, equals, text = word.partition("=")
        if equals:
            override(run, made, key.lstrip("-+"), text, key)
    return made


def _from_cli(run: Run, call: Call) -> Value:
    return _dotlist(list(run.arguments), run)


def _from_dotlist(run: Run, call: Call) -> Value:
    given = call.args[0] if call.args else NOTHING
    words = [item.value for item in given.items if isinstance(item, Known)] if isinstance(given, Sequence) else []
    return _dotlist([str(word) for word in words], run)


def _to_container(run: Run, call: Call) -> Value:
    return call.args[0] if call.args else NOTHING


def _select(run: Run, call: Call) -> Value:
    root, key = call.get(0, "cfg"), call.string(1, "key")
    if isinstance(root, Mapping) and key:
        found = _resolve_one(run, root, key)
        if not isinstance(found, Unknown):
            return found
    return call.get(None, "default") or Unknown("OmegaConf.select(...)")


def _omega_update(run: Run, call: Call) -> Value:
    root, key, value = call.get(0, "cfg"), call.string(1, "key"), call.get(2, "value")
    if isinstance(root, Mapping) and key and value is not None:
        *above, last = key.split(".")
        for part in above:
            below = root.cells.get(part)
            if not isinstance(below, Mapping):
                return NOTHING
            root = below
        run.store(root.cells, last, value)
    return NOTHING


# Hydra


def compose(run: Run, folder: Value | None, name: Value | None, module_path: str, arguments: list[str]) -> Value:
    """The configuration that `@hydra.main` composes: defaults list, groups, overrides."""
    run.library.configured = True
    composer = _Composer(run, folder, name, module_path, arguments)
    return composer.compose()


class _Composer:
    def __init__(
        self, run: Run, folder: Value | None, name: Value | None, module_path: str, arguments: list[str]
    ) -> None:
        self._run = run
        given_folder = folder.value if isinstance(folder, Known) else None
        given_name = name.value if isinstance(name, Known) else None
        self._choices: dict[str, str] = {}
        self._overrides: list[tuple[str, str]] = []
        self._read_arguments(arguments)
        base = posixpath.dirname(module_path)
        folder_text = str(self._config_dir or given_folder or ".")
        if folder_text.startswith("pkg://"):
            folder_text = folder_text[6:].replace(".", "/")
            base = run.files.root
        self._folder = posixpath.normpath(posixpath.join(base, folder_text))
        self._name = str(self._config_name or given_name or "config")

    def _read_arguments(self, arguments: list[str]) -> None:
        self._config_name: str | None = None
        self._config_dir: str | None = None
        for i, word in enumerate(arguments):
            following = arguments[i + 1] if i + 1 < len(arguments) else None
            for flags, attribute in (
                (("--config-name", "-cn"), "_config_name"),
                (("--config-path", "-cp"), "_config_dir"),
            ):
                if word in flags:
                    setattr(self, attribute, following)
                elif word.startswith(f"{flags[0]}="):
                    setattr(self, attribute, word.split("=", 1)[1])
            key, equals, text = word.partition("=")
            if equals and not word.startswith("-"):
                self._overrides.append((key, text))

    def compose(self) -> Value:
        root = Mapping({}, namespace=True)
        self._merge_file(root, self._name, "", "", 0)
        for key, text in self._overrides:
            clean = key.lstrip("+~").partition("@")[0]
            if clean in self._choices or self._is_group(clean):
                continue
            override(self._run, root, clean, text, key)
        return _rooted_copy(root)

    def _is_group(self, group: str) -> bool:
        folder = f"{self._folder}/{group.replace('.', '/')}/"
        return any(path.startswith(folder) for path in self._paths())

    def _paths(self) -> tuple[str, ...]:
        return tuple(path.replace("\\", "/") for path in self._run.files.paths((".yaml", ".yml")))

    def _merge_file(self, root: Mapping, name: str, group: str, package: str, depth: int) -> None:
        """Merge a file of the search path with its own defaults."""
        if depth > 12:
            return
        name = name.removesuffix(".yaml").removesuffix(".yml")
        found = None
        for suffix in (".yaml", ".yml"):
            path = posixpath.normpath(posixpath.join(self._folder, group, name + suffix))
            data = self._run.files.read(self._run.modules.native_path(path))
            if data is not None:
                found = path, data
                break
        if found is None:
            stored = self._run.library.config_store.get(f"{group}/{name}" if group else name)
            content: Value = as_config(clone(stored)) if stored is not None else Mapping({}, namespace=True)
            if stored is None:
                where = f"{group}/{name}" if group else name
                self._run.library.problems.append(f"Hydra's {where}.yaml is not in {self._folder}")
        else:
            content = loaded(self._run, found[0], found[1], SiteKind.YAML)
            package = _package(found[1], package)
        if not isinstance(content, Mapping):
            return
        content = as_namespace(clone(content))
        assert isinstance(content, Mapping)
        defaults = content.cells.pop("defaults", None)
        own_merged = False
        for entry in defaults.items if isinstance(defaults, Sequence) else ():
            if isinstance(entry, Known) and entry.value == "_self_":
                self._merge_at(root, package, content)
                own_merged = True
            else:
                self._merge_default(root, entry, group, package, depth)
        if not own_merged:
            self._merge_at(root, package, content)

    def _merge_default(self, root: Mapping, entry: Value, group: str, package: str, depth: int) -> None:
        if isinstance(entry, Known) and isinstance(entry.value, str):
            name = entry.value
            name, _, placed = name.partition("@")
            below, _, last = name.rpartition("/")
            inner = posixpath.join(group, below) if not name.startswith("/") else below.lstrip("/")
            self._merge_file(
                root,
                last,
                inner,
                _placed(placed, package) if placed else self._package_of(inner, group, package),
                depth + 1,
            )
            return
        if not isinstance(entry, Mapping):
            return
        for raw, choice in entry.cells.items():
            key = str(raw).removeprefix("override ").removeprefix("optional ").strip()
            if key.startswith(("hydra/", "/hydra")) or str(raw).startswith("override "):
                if str(raw).startswith("override "):
                    self._choices.setdefault(key.lstrip("/").partition("@")[0], str(getattr(choice, "value", "")))
                continue
            key, _, placed = key.partition("@")
            inner = key.lstrip("/") if key.startswith("/") else posixpath.join(group, key)
            given = dict(self._overrides).get(inner) or dict(self._overrides).get(key) or self._choices.get(inner)
            chosen: Any = given if given is not None else choice.value if isinstance(choice, Known) else None
            if chosen is None or str(chosen) == "null":
                continue
            self._choices.setdefault(inner, str(chosen))
            where = _placed(placed, package) if placed else self._package_of(inner, group, package)
            names = (
                [item.value for item in choice.items if isinstance(item, Known)]
                if (isinstance(choice, Sequence) and given is None)
                else [chosen]
            )
            for one in names:
                self._merge_file(root, str(one), inner, where, depth + 1)

    @staticmethod
    def _package_of(inner: str, group: str, package: str) -> str:
        relative = inner[len(group) :].strip("/") if group and inner.startswith(group) else inner
        if inner == group:
            return package
        joined = f"{package}.{relative.replace('/', '.')}" if package and group else inner.replace("/", ".")
        return joined.strip(".")

    def _merge_at(self, root: Mapping, package: str, content: Mapping) -> None:
        target = root
        for key in package.split(".") if package else ():
            below = target.cells.get(key)
            if not isinstance(below, Mapping):
                below = Mapping({}, namespace=True)
                target.cells[key] = below
            target = below
        update(self._run, target, content, deep=True)


def _placed(placed: str, package: str) -> str:
    if placed.startswith("_global_"):
        return placed.removeprefix("_global_").lstrip(".")
    if placed.startswith("_here_"):
        return package
    return f"{package}.{placed}".strip(".") if package else placed


def _package(data: bytes, package: str) -> str:
    """A `# @package ...` line at the top of a file says where its content goes."""
    match = re.search(rb"^#\s*@package:?\s+(\S+)", data[:400], re.MULTILINE)
    if match is None:
        return package
    given = match.group(1).decode("utf-8", "replace")
    if given == "_global_":
        return ""
    if given.startswith("_global_."):
        return given.removeprefix("_global_.")
    return package if given == "_group_" else given


def _initialize(run: Run, call: Call) -> Value:
    run.library.config_folder = call.get(0, "config_path", "config_dir")
    return Unknown("hydra")


def _compose_call(run: Run, call: Call) -> Value:
    folder = run.library.config_folder
    overrides = call.get(None, "overrides")
    words = (
        [str(item.value) for item in overrides.items if isinstance(item, Known)]
        if (isinstance(overrides, Sequence))
        else []
    )
    return compose(run, folder, call.get(0, "config_name"), call.scope.module.path, words)


def instantiate(run: Run, config: Value, call: Call) -> Value:
    """`hydra.utils.instantiate`: calls what `_target_` names with the other entries."""
    if isinstance(config, Sequence):
        return sequence(config.kind, [_instantiated(run, item) for item in config.items])
    if not isinstance(config, Mapping):
        return Unknown("instantiate(...)")
    target = config.cells.get("_target_")
    target = run.resolved(target) if target is not None else None
    if not (isinstance(target, Known) and isinstance(target.value, str)):
        return config
    kwargs: dict[str, Value] = {}
    recursive = truth(config.cells.get("_recursive_", Known(True))) is not False
    for key, item in config.cells.items():
        if str(key).startswith("_") and str(key).endswith("_"):
            continue
        value = run.resolved(item)
        kwargs[str(key)] = _instantiated(run, value) if recursive else value
    kwargs.update(call.kwargs)
    function = named(run, target.value)
    if truth(config.cells.get("_partial_", Known(False))):
        return Partial(function, tuple(call.args), kwargs)
    inner = Call(args=list(call.args), kwargs=kwargs, node=call.node, scope=call.scope, open=not config.complete)
    return run.call(function, inner)


def _instantiated(run: Run, value: Value) -> Value:
    if isinstance(value, Mapping) and "_target_" in value.cells:
        return instantiate(run, value, run.plain_call([]))
    if isinstance(value, Sequence):
        return sequence(value.kind, [_instantiated(run, item) for item in value.items])
    return value


def named(run: Run, dotted: str) -> Value:
    """What a dotted name means: "package.module.Class"."""
    parts = dotted.split(".")
    for i in range(len(parts) - 1, 0, -1):
        module = run.import_module(".".join(parts[:i]))
        if isinstance(module, Module):
            value: Value = module
            for part in parts[i:]:
                value = get_attribute(run, value, part)
            return value
    return External(dotted)


def _instantiate_call(run: Run, call: Call) -> Value:
    return instantiate(run, call.args[0], call.without_first()) if call.args else Unknown("instantiate(...)")


def _get_class(run: Run, call: Call) -> Value:
    name = call.string(0, "path")
    return named(run, name) if name else Unknown("a class")


class ConfigStore(Native):
    """Hydra's `ConfigStore`."""

    __slots__ = ()

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name == "store":
            key, node = call.string(None, "name") or call.string(1), call.get(None, "node")
            group = call.string(None, "group")
            if key and node is not None:
                if isinstance(node, Class):
                    node = run.instantiate(node, run.plain_call([]))
                run.library.config_store[f"{group}/{key}" if group else key] = node
        return NOTHING


# yacs, easydict and other dictionaries with attributes


def _namespace(run: Run, name: str, call: Call) -> Value | None:
    made = Mapping({}, complete=not call.open, namespace=True)
    for arg in call.args:
        update(run, made, arg)
    for key, value in call.kwargs.items():
        made.cells[key] = value
    return as_namespace(made)


def mapping_method(run: Run, value: Mapping, name: str, call: Call) -> Value | None:
    """Methods of configuration objects that dictionaries have not."""
    if name == "merge_from_file" and call.args:
        content = load(run, call.args[0], SiteKind.YAML)
        if isinstance(content, Mapping):
            _merge_bases(run, value, content, call.args[0])
        return NOTHING
    if name in ("merge_from_list", "merge_from_args"):
        given = call.args[0] if call.args else NOTHING
        words = [item for item in given.items if isinstance(item, Known)] if isinstance(given, Sequence) else []
        texts = [str(word.value) for word in words]
        if any("=" in text for text in texts):
            pairs = [tuple(text.lstrip("-").split("=", 1)) for text in texts if "=" in text]
        else:
            pairs = list(zip(texts[::2], texts[1::2], strict=False))
        for pair in pairs:
            override(run, value, pair[0], pair[1], pair[0])
        return NOTHING
    if name == "merge_from_other_cfg" and call.args:
        update(run, value, call.args[0], deep=True)
        return NOTHING
    if name in ("resolve", "set_struct", "set_readonly", "is_frozen", "set_new_allowed", "register_deprecated_key"):
        return NOTHING
    return None


def _merge_bases(run: Run, target: Mapping, content: Mapping, path: Value) -> None:
    base = content.cells.get("_BASE_")
    if isinstance(base, Known) and isinstance(path, Known):
        below = posixpath.join(posixpath.dirname(str(path.value)), str(base.value))
        inherited = load(run, Known(below), SiteKind.YAML)
        if isinstance(inherited, Mapping):
            _merge_bases(run, target, inherited, Known(below))
    update(run, target, as_namespace(content), deep=True)


# mmengine and mmcv


def _from_file(run: Run, name: str, call: Call) -> Value | None:
    """`Config.fromfile(path)`: a Python file whose names are the entries, on top of its `_base_` files."""
    path = call.get(0, "filename")
    if not name.endswith("Config.fromfile") or path is None:
        return None
    if not isinstance(path, Known):
        return Unknown("Config.fromfile(...)")
    return _python_config(run, str(path.value), 0)


def _python_config(run: Run, path: str, depth: int) -> Value:
    found = run.read(path)
    if found is None or depth > 8:
        return Unknown(f"the content of {path}")
    if not found[0].endswith(".py"):
        return as_config(loaded(run, *found))
    module = run.load(found[0], posixpath.basename(found[0]).removesuffix(".py"), False)
    if module is None:
        return Unknown(f"the content of {path}")
    made = Mapping({}, namespace=True)
    base = module.cells.get("_base_")
    bases = base.items if isinstance(base, Sequence) else (base,) if base is not None else ()
    for one in bases:
        if isinstance(one, Known) and isinstance(one.value, str):
            below = _python_config(run, posixpath.join(posixpath.dirname(found[0]), one.value), depth + 1)
            update(run, made, below, deep=True)
    own = {
        key: value
        for key, value in module.cells.items()
        if not str(key).startswith("_") and not isinstance(value, (Module, Function, Class, External))
    }
    update(run, made, as_namespace(Mapping(own)), deep=True)
    return made


_YAML_LOADERS = ("load", "safe_load", "full_load", "unsafe_load")

CALLS: dict[str, Handler] = {
    **{f"yaml.{name}": _load(SiteKind.YAML) for name in _YAML_LOADERS},
    "yaml.load_all": _load_all,
    "yaml.safe_load_all": _load_all,
    "yaml.full_load_all": _load_all,
    **{f"ruamel.yaml.{name}": _load(SiteKind.YAML) for name in _YAML_LOADERS},
    **{f"{module}.load": _load(SiteKind.JSON) for module in ("json", "simplejson", "commentjson", "ujson", "json5")},
    **{f"{module}.loads": _load_text(SiteKind.JSON) for module in ("json", "simplejson", "ujson", "orjson")},
    **{f"{module}.load": _load(SiteKind.TOML) for module in ("tomllib", "tomli", "toml", "tomlkit", "pytoml", "rtoml")},
    **{f"{module}.loads": _load_text(SiteKind.TOML) for module in ("tomllib", "tomli", "toml", "tomlkit", "rtoml")},
    "tomlkit.parse": _load_text(SiteKind.TOML),
    "anyconfig.load": _load(None),
    "configparser.ConfigParser": lambda run, call: ConfigParser(),
    "configparser.RawConfigParser": lambda run, call: ConfigParser(),
    "configparser.SafeConfigParser": lambda run, call: ConfigParser(),
    "omegaconf.OmegaConf.load": _omega_load,
    "omegaconf.OmegaConf.create": _omega_create,
    "omegaconf.OmegaConf.structured": _omega_create,
    "omegaconf.OmegaConf.merge": _omega_merge,
    "omegaconf.OmegaConf.unsafe_merge": _omega_merge,
    "omegaconf.OmegaConf.from_cli": _from_cli,
    "omegaconf.OmegaConf.from_dotlist": _from_dotlist,
    "omegaconf.OmegaConf.to_container": _to_container,
    "omegaconf.OmegaConf.to_object": _to_container,
    "omegaconf.OmegaConf.select": _select,
    "omegaconf.OmegaConf.update": _omega_update,
    "hydra.utils.instantiate": _instantiate_call,
    "hydra.utils.call": _instantiate_call,
    "hydra.utils.get_class": _get_class,
    "hydra.utils.get_method": _get_class,
    "hydra.initialize": _initialize,
    "hydra.initialize_config_dir": _initialize,
    "hydra.compose": _compose_call,
    "hydra.core.config_store.ConfigStore.instance": lambda run, call: ConfigStore(),
    "hydra.core.config_store.ConfigStore": lambda run, call: ConfigStore(),
    "hydra.utils.to_absolute_path": lambda run, call: call.args[0] if call.args else NOTHING,
    "hydra.utils.get_original_cwd": lambda run, call: Known(run.files.root),
    "detectron2.config.LazyConfig.load": _load(None),
}  # fmt: skip

TAILS: dict[str, TailHandler] = {
    **dict.fromkeys(
        ("CfgNode", "EasyDict", "edict", "Munch", "munchify", "DotMap", "Box", "ConfigDict", "AttrDict", "DotDict",
         "FrozenConfigDict", "Bunch", "DefaultMunch", "NestedNamespace", "DictConfig"),
        _namespace,
    ),
    "fromfile": _from_file,
}  # fmt: skip
