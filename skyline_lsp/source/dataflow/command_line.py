"""Command-line options: argparse and its relatives, absl's flags, and what the arguments of the run make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.objects import mro
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    ArgumentLiteral,
    Call,
    Class,
    External,
    Function,
    Instance,
    Known,
    Mapping,
    Native,
    Sequence,
    Source,
    Unknown,
    Value,
    carried,
    feeds_of,
    join,
    names_training,
    sequence,
    sources_of,
)
from skyline_lsp.source.site import SiteKind

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]


@dataclass(slots=True, eq=False)
class Option:
    """One option or positional argument."""

    flags: tuple[str, ...]
    """Empty for a positional one."""
    dest: str
    default: Value | None
    path: str
    line: int
    kind: SiteKind = SiteKind.ARGPARSE
    action: str = "store"
    type: Value | None = None
    nargs: str | int | None = None
    const: Value | None = None
    required: bool = False

    @property
    def name(self) -> str:
        """What the user calls it: the longest flag."""
        return max(self.flags, key=len) if self.flags else self.dest

    @property
    def takes_value(self) -> bool:
        """Whether an argument follows the flag."""
        return self.action in ("store", "append", "extend")


def parse(
    run: Run, options: list[Option], argv: list[Value], known_only: bool = True
) -> tuple[dict[str, Value], list[Value]]:
    """Values by destination, and the arguments that no option takes."""
    values: dict[str, Value] = {}
    rest: list[Value] = []
    by_flag = {flag: option for option in options for flag in option.flags}
    positional = [option for option in options if not option.flags]
    words = [word.value if isinstance(word, Known) and isinstance(word.value, str) else None for word in argv]
    at = 0
    only_positional = False
    while at < len(argv):
        word = words[at]
        if word is None:
            at += 1
            continue
        if word == "--":
            only_positional = True
            at += 1
            continue
        option, attached = (None, None) if only_positional else _match(word, by_flag)
        if option is not None:
            at = _take(run, option, attached, argv, words, at + 1, values, by_flag)
            continue
        if word.startswith("-") and not _is_number(word) and not only_positional:
            rest.append(argv[at])
            at += 1
            continue
        if positional:
            option = positional[0]
            count = _positional_count(option, words, at, by_flag)
            if option.nargs in ("*", "+", "...", "A...") or isinstance(option.nargs, int):
                taken = [_converted(run, option, argv[i]) for i in range(at, at + count)]
                values[option.dest] = sequence("list", taken)
            else:
                values[option.dest] = _converted(run, option, argv[at])
                count = 1
            positional.pop(0)
            at += max(count, 1)
            continue
        rest.append(argv[at])
        at += 1
    for option in options:
        if option.dest not in values:
            values[option.dest] = default_value(run, option)
    return values, rest


def default_value(run: Run, option: Option) -> Value:
    """What an option is where the command line does not name it."""
    if option.action in ("store_true", "store_false") and option.default is None:
        value: Value = Known(option.action == "store_false")
    elif option.default is not None:
        value = option.default
        if isinstance(value, Known) and isinstance(value.value, str) and option.type is not None:
            value = _typed(run, option.type, value)
    elif option.required or (not option.flags and option.nargs not in ("?", "*")):
        return Unknown(option.name)
    elif option.action == "count":
        value = NOTHING
    else:
        value = NOTHING
    if run.lenient and not any(True for _ in sources_of(value)) and not isinstance(value, Unknown):
        return join([value, Unknown(option.name)])
    return carried(value, option.dest)


def _match(word: str, by_flag: dict[str, Option]) -> tuple[Option | None, str | None]:
    if word in by_flag:
        return by_flag[word], None
    name, equals, text = word.partition("=")
    if equals and name in by_flag:
        return by_flag[name], text
    if word.startswith("--"):
        long = [flag for flag in by_flag if flag.startswith(name) and flag.startswith("--")]
        if len(long) == 1:
            return by_flag[long[0]], text if equals else None
    elif word.startswith("-") and len(word) > 2 and word[:2] in by_flag:
        return by_flag[word[:2]], word[2:]
    return None, None


def _take(
    run: Run,
    option: Option,
    attached: str | None,
    argv: list[Value],
    words: list[str | None],
    at: int,
    values: dict[str, Value],
    by_flag: dict[str, Option],
) -> int:
    """Read an option's values from `at` on; where the next argument is."""
    if not option.takes_value:
        constants = {"store_true": Known(True), "store_false": Known(False), "store_const": option.const or NOTHING}
        values[option.dest] = constants.get(option.action, Known(attached != "False"))
        if option.action == "boolean":
            flag = words[at - 1] or ""
            values[option.dest] = Known(not flag.startswith("--no"))
        return at
    if attached is not None:
        values[option.dest] = _converted(run, option, Known(attached))
        return at
    count = _count(option.nargs, words, at, by_flag)
    if count == 0 and option.nargs == "?":
        values[option.dest] = option.const or NOTHING
        return at
    taken = [_converted(run, option, argv[i]) for i in range(at, min(at + count, len(argv)))]
    if option.nargs in ("*", "+", "...") or isinstance(option.nargs, int):
        values[option.dest] = sequence("list", taken)
    elif option.action == "append":
        held = values.get(option.dest)
        values[option.dest] = sequence("list", [*(held.items if isinstance(held, Sequence) else ()), *taken])
    elif taken:
        values[option.dest] = taken[0]
    return at + count


def _count(nargs: str | int | None, words: list[str | None], at: int, by_flag: dict[str, Option]) -> int:
    if isinstance(nargs, int):
        return nargs
    if nargs == "...":
        return len(words) - at
    available = 0
    for word in words[at:]:
        if word is not None and word.startswith("-") and not _is_number(word):
            break
        available += 1
    if nargs in ("*", "+"):
        return available
    if nargs == "?":
        return min(1, available)
    # A value may start with a dash where the option can't do without.
    return 1


def _positional_count(option: Option, words: list[str | None], at: int, by_flag: dict[str, Option]) -> int:
    return _count(option.nargs, words, at, by_flag)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _converted(run: Run, option: Option, word: Value) -> Value:
    """An argument as its option's type makes it, with where it comes from."""
    value = _typed(run, option.type, word) if option.type is not None else word
    if not (isinstance(value, Known) and isinstance(word, Known)):
        return carried(value, option.dest)
    default = option.default
    if option.type is None and isinstance(default, Known) and type(default.value) in (int, float):
        value = _typed(run, External("builtins.int"), word)
        assert isinstance(value, Known)
    text = str(word.value)
    if isinstance(value.value, int) and not isinstance(value.value, bool):
        literal = ArgumentLiteral(
            text=text,
            value=value.value,
            option=option.name,
            overridden=default,
            path=option.path,
            line=option.line,
        )
        return Known(value.value, (Source(literal=literal, via=(option.dest,)),))
    if text.isdigit():
        literal = ArgumentLiteral(
            text=text, value=int(text), option=option.name, overridden=default, path=option.path, line=option.line
        )
        return Known(value.value, (Source(literal=literal, via=(option.dest,)),))
    return Known(value.value)


def _typed(run: Run, kind: Value, value: Value) -> Value:
    if isinstance(kind, External):
        name = kind.name.rsplit(".", 1)[-1]
        if name == "int":
            converted = operators.to_int(value, "an argument")
            return converted if isinstance(converted, Known) else value
        if name == "float" and isinstance(value, Known):
            try:
                return Known(float(value.value))
            except (TypeError, ValueError):
                return value
        if name == "bool" and isinstance(value, Known) and isinstance(value.value, str):
            return Known(value.value.lower() not in ("", "false", "0", "no"))
        if name in ("Path", "PurePath") and isinstance(value, Known) and isinstance(value.value, str):
            return Known(PurePosixPath(value.value))
        return value
    if isinstance(kind, Function):
        return run.call(kind, run.plain_call([value]))
    return value


class Parser(Native):
    """An `argparse.ArgumentParser`, or a group of one."""

    __slots__ = ("_child_dest", "_children", "_defaults", "_records", "options")

    def __init__(self) -> None:
        self.options: list[Option] = []
        self._defaults: dict[str, Value] = {}
        self._children: dict[str, Parser] = {}
        self._child_dest: str | None = None
        self._records: list[tuple[str, Class]] = []

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("add_argument", "add", "add_arg", "add_option"):
            self._add(run, call)
            return Unknown("an option")
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_option_group"):
            return self
        if name == "add_subparsers":
            self._child_dest = call.string(None, "dest")
            return Subparsers(self)
        if name in ("set_defaults", "set_default"):
            for key, value in call.kwargs.items():
                self._defaults[key] = carried(value, key)
            for arg in call.args:
                if isinstance(arg, Mapping):
                    self._defaults.update({str(key): value for key, value in arg.cells.items()})
            return NOTHING
        if name == "get_default":
            dest = call.string(0, "dest")
            found = next((option for option in self.options if option.dest == dest), None)
            return default_value(run, found) if found is not None else NOTHING
        if name == "add_arguments" and call.args and isinstance(call.args[0], Class):
            # simple_parsing
            self._records.append((call.string(1, "dest") or "", call.args[0]))
            return NOTHING
        if name in ("parse_args", "parse_intermixed_args", "parse_known_args", "parse_known_intermixed_args"):
            namespace, rest = self.parse(run, call)
            return sequence("tuple", [namespace, sequence("list", rest)]) if "known" in name else namespace
        if name in ("print_help", "print_usage", "format_help"):
            return NOTHING
        if name in ("error", "exit"):
            run.library.ended()
        return None

    def attribute(self, run: Run, name: str) -> Value | None:
        return Unknown(name) if name in ("description", "prog", "epilog", "_actions", "formatter_class") else None

    def inherit(self, other: Parser) -> None:
        """Take over a parent's options."""
        self.options.extend(other.options)
        self._defaults.update(other._defaults)

    def child(self, name: str) -> Parser:
        """A subcommand's parser."""
        made = Parser()
        self._children[name] = made
        return made

    def parse(self, run: Run, call: Call) -> tuple[Mapping, list[Value]]:
        """The namespace that the run's arguments give, and the arguments left over."""
        given = call.get(0, "args")
        argv: list[Value] = []
        if given is None or (isinstance(given, Known) and given.value is None):
            argv = argv_of(run)
        elif isinstance(given, Sequence):
            argv = list(given.items)
        into = call.get(1, "namespace")
        namespace = into if isinstance(into, Mapping) else Mapping({}, namespace=True)
        rest = self._parse_into(run, argv, namespace)
        for dest, cls in self._records:
            namespace.cells[dest] = record_from_arguments(run, cls, argv, SiteKind.DATACLASS_FIELD)
        if call.open:
            namespace.complete = False
        return namespace, rest

    def _parse_into(self, run: Run, argv: list[Value], namespace: Mapping) -> list[Value]:
        options = [self._with_default(option) for option in self.options]
        chosen: str | None = None
        if self._children:
            for i, word in enumerate(argv):
                if isinstance(word, Known) and word.value in self._children:
                    chosen = str(word.value)
                    before, after = argv[:i], argv[i + 1 :]
                    break
            else:
                chosen = preferred(run, list(self._children))
                before, after = argv, []
            argv = before
        values, rest = parse(run, options, argv)
        for dest, value in values.items():
            run.store(namespace.cells, dest, value)
        for dest, value in self._defaults.items():
            if dest not in values:
                run.store(namespace.cells, dest, value)
        if chosen is not None:
            if self._child_dest:
                run.store(namespace.cells, self._child_dest, Known(chosen))
            rest = [*rest, *self._children[chosen]._parse_into(run, after, namespace)]
        return rest

    def _with_default(self, option: Option) -> Option:
        if option.dest not in self._defaults:
            return option
        return Option(
            flags=option.flags,
            dest=option.dest,
            default=self._defaults[option.dest],
            path=option.path,
            line=option.line,
            kind=option.kind,
            action=option.action,
            type=option.type,
            nargs=option.nargs,
            const=option.const,
        )

    def _add(self, run: Run, call: Call) -> None:
        names = [arg.value for arg in call.args if isinstance(arg, Known) and isinstance(arg.value, str)]
        if not names:
            return
        flags = tuple(name for name in names if name.startswith("-"))
        dest = call.string(None, "dest")
        if dest is None:
            longs = [flag for flag in flags if flag.startswith("--")]
            dest = (longs or list(flags) or names)[0].lstrip("-").replace("-", "_")
        action = call.get(None, "action")
        action_name = action.value if isinstance(action, Known) and isinstance(action.value, str) else "store"
        if isinstance(action, External) and action.name.endswith("BooleanOptionalAction"):
            action_name = "boolean"
            flags = (*flags, *(f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")))
        nargs = call.get(None, "nargs")
        nargs_value = nargs.value if isinstance(nargs, Known) else None
        if isinstance(nargs, External) and nargs.name.endswith("REMAINDER"):
            nargs_value = "..."
        default = call.get(None, "default")
        if re.search(r"config|cfg|yaml|opts|base$", dest, re.IGNORECASE):
            run.library.configured = True
        option = Option(
            flags=flags if flags else (),
            dest=dest,
            default=default,
            path=call.scope.module.path,
            line=call.node.lineno if call.node is not None else 1,
            action=action_name,
            type=call.get(None, "type"),
            nargs=nargs_value if isinstance(nargs_value, (str, int)) else None,
            const=call.get(None, "const"),
            required=operators.truth(call.kwargs["required"]) is True if "required" in call.kwargs else False,
        )
        if default is not None:
            run.library.describe(default, SiteKind.ARGPARSE, option.name, f"default of {option.name}")
        self.options = [kept for kept in self.options if not set(kept.flags) & set(flags)] + [option]


class Subparsers(Native):
    """What `add_subparsers` gives."""

    __slots__ = ("_parser",)

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name != "add_parser":
            return None
        made = self._parser.child(call.string(0, "name") or "?")
        inherit_parents(made, call)
        return made


def inherit_parents(parser: Parser, call: Call) -> None:
    """`parents=[...]` of a parser."""
    parents = call.get(None, "parents")
    for parent in parents.items if isinstance(parents, Sequence) else ():
        native = parent.native if isinstance(parent, Instance) else parent
        if isinstance(native, Parser):
            parser.inherit(native)


def preferred(run: Run, names: list[str]) -> str | None:
    """The subcommand to follow where the arguments name none: one that speaks of training, else the first.

    `run.alternative` counts through the others.
    """
    if not names:
        return None
    ordered = sorted(names, key=lambda name: not names_training(name))
    run.alternatives = max(run.alternatives, len(ordered))
    return ordered[min(run.alternative, len(ordered) - 1)]


def argv_of(run: Run) -> list[Value]:
    """The arguments of the run."""
    return [Known(text) for text in run.arguments]


def _parser(run: Run, call: Call) -> Value:
    made = Parser()
    inherit_parents(made, call)
    return made


# Records (dataclasses and their like) that a library fills from the command line: tyro, HfArgumentParser, ...


def record_from_arguments(run: Run, cls: Class, argv: list[Value], kind: SiteKind) -> Value:
    """An instance of a class whose fields are options: `--batch-size 32`, `--data.batch_size=32`."""
    instance = run.instantiate(cls, run.plain_call([]))
    if isinstance(instance, Instance):
        fill_record(run, instance, argv, kind, "")
        for feed in feeds_of(instance):
            if feed.name in instance.cells:
                # Made before the arguments were known.
                feed.batch = instance.cells[feed.name]
    return instance


def fill_record(run: Run, instance: Instance, argv: list[Value], kind: SiteKind, prefix: str) -> None:
    """Set the fields that arguments name, and say of the others' literals what option they are the default of."""
    words = {}
    texts = [word.value for word in argv if isinstance(word, Known) and isinstance(word.value, str)]
    for i, text in enumerate(texts):
        if text.startswith("--"):
            name, equals, attached = text[2:].partition("=")
            words[name.replace("-", "_")] = attached if equals else texts[i + 1] if i + 1 < len(texts) else ""
    fields = [name for cls in mro(instance.cls) for name in cls.fields] or list(instance.cells)
    for name in dict.fromkeys(str(field_name) for field_name in fields):
        full = f"{prefix}{name}"
        held = instance.cells.get(name)
        if isinstance(held, Instance):
            fill_record(run, held, argv, kind, f"{full}.")
            continue
        option = f"--{full}" if kind is SiteKind.DATACLASS_FIELD else f"--{full.replace('_', '-')}"
        given = words.get(full, words.get(name) if not prefix else None)
        if given is None:
            if isinstance(held, Known) and held.sources:
                run.library.describe(held, kind, option, f"default of {option}")
            continue
        value: Value = Known(given)
        if given.strip().lstrip("-").isdigit():
            literal = ArgumentLiteral(
                text=given,
                value=int(given),
                option=option,
                overridden=held,
                path=instance.cls.module.path,
                line=instance.cls.node.lineno if hasattr(instance.cls.node, "lineno") else 1,
            )
            value = Known(int(given), (Source(literal=literal, via=(name,)),))
        elif given in ("True", "False", "true", "false"):
            value = Known(given.lower() == "true")
        run.store(instance.cells, name, value)


# absl


@dataclass(slots=True)
class Flags:
    """absl's flags of one program."""

    options: dict[str, Option] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def value(self, run: Run, name: str) -> Value:
        """A flag's value with the run's arguments."""
        if name in self.values:
            return self.values[name]
        option = self.options.get(name)
        if option is None:
            return Unknown(f"FLAGS.{name}")
        found, _ = parse(run, list(self.options.values()), argv_of(run))
        return found[name]


class Flag(Native):
    """What `flags.DEFINE_...` returns: a holder of the flag's value."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def attribute(self, run: Run, name: str) -> Value | None:
        if name in ("value", "default"):
            return run.library.flags.value(run, self._name)
        return None


def _define(kind: str) -> Callable[[Run, str, Call], Value | None]:
    def handler(run: Run, function: str, call: Call) -> Value | None:
        name = call.string(0, "name")
        if name is None:
            return Unknown("a flag")
        default = call.get(1, "default") or NOTHING
        option = Option(
            flags=(f"--{name}", f"-{name}"),
            dest=name,
            default=default,
            path=call.scope.module.path,
            line=call.node.lineno if call.node is not None else 1,
            kind=SiteKind.ABSL,
            type=External(f"builtins.{kind}"),
            action="boolean" if kind == "bool" else "store",
        )
        run.library.flags.options[name] = option
        run.library.describe(default, SiteKind.ABSL, f"--{name}", f"default of --{name}")
        return Flag(name)

    return handler


def _define_config(run: Run, function: str, call: Call) -> Value | None:
    """ml_collections' `config_flags.DEFINE_config_file`: a Python file whose `get_config()` gives the values."""
    name, path = call.string(0, "name") or "config", call.string(1, "default")
    for i, word in enumerate(run.arguments):
        if word.startswith(f"--{name}="):
            path = word.split("=", 1)[1]
        elif word == f"--{name}" and i + 1 < len(run.arguments):
            path = run.arguments[i + 1]
    found = run.read(path.partition(":")[0]) if path else None
    module = run.load(found[0], "config", False) if found is not None else None
    if module is not None and "get_config" in module.cells:
        value = run.call(module.cells["get_config"], run.plain_call([]))
        for word in run.arguments:
            key, equals, text = word.partition("=")
            if equals and key.startswith(f"--{name}.") and isinstance(value, Mapping):
                override(run, value, key[len(name) + 3 :], text, key)
        run.library.flags.values[name] = value
    return Flag(name)


def override(run: Run, target: Mapping, dotted: str, text: str, option: str) -> None:
    """Set an entry of nested mappings from the command line."""
    *above, last = dotted.split(".")
    for key in above:
        below = target.cells.get(key)
        if not isinstance(below, Mapping):
            below = Mapping({}, complete=target.complete, namespace=target.namespace)
            run.store(target.cells, key, below)
        target = below
    held = target.cells.get(last)
    value: Value = Known(text.strip("'\""))
    stripped = text.strip()
    if stripped.lstrip("-").isdigit():
        literal = ArgumentLiteral(
            text=stripped, value=int(stripped), option=option, overridden=held, path=run.entry_path, line=1
        )
        value = Known(int(stripped), (Source(literal=literal, via=(last,)),))
    elif stripped.lower() in ("true", "false"):
        value = Known(stripped.lower() == "true")
    elif stripped.lower() in ("null", "none"):
        value = NOTHING
    run.store(target.cells, last, value)


def _app_run(run: Run, call: Call) -> Value:
    main = call.get(0, "main")
    if main is None:
        main = call.scope.module.cells.get("main")
    if main is not None:
        run.call(main, run.plain_call([sequence("list", [Known(run.entry_path), *argv_of(run)])], call.scope))
    return NOTHING


CALLS: dict[str, Handler] = {
    **dict.fromkeys(
        ("argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser",
         "configargparse.ArgParser", "jsonargparse.ArgumentParser", "simple_parsing.ArgumentParser",
         "optparse.OptionParser", "rich_argparse.ArgumentParser"),
        _parser,
    ),
    "absl.app.run": _app_run,
    "tensorflow.app.run": _app_run,
}  # fmt: skip

_FLAG_KINDS = {
    "integer": "int",
    "string": "str",
    "float": "float",
    "bool": "bool",
    "boolean": "bool",
    "enum": "str",
    "list": "str",
}

TAILS: dict[str, Callable[[Run, str, Call], Value | None]] = {
    **{f"DEFINE_{name}": _define(kind) for name, kind in _FLAG_KINDS.items()},
    "DEFINE_config_file": _define_config,
}
