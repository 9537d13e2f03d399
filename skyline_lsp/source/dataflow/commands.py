"""Functions that libraries turn into commands: click, typer, fire, tyro, Hydra, sacred, jsonargparse."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow import configuration
from skyline_lsp.source.dataflow.command_line import (
    Option,
    argv_of,
    fill_record,
    parse,
    preferred,
    record_from_arguments,
)
from skyline_lsp.source.dataflow.loaders import TRAINING_BATCH
from skyline_lsp.source.dataflow.objects import class_attribute, external_bases, get_attribute, mro
from skyline_lsp.source.dataflow.operators import truth
from skyline_lsp.source.dataflow.values import (
    NOTHING,
    Call,
    Class,
    External,
    Function,
    Instance,
    Known,
    Mapping,
    Method,
    Native,
    Partial,
    Scope,
    Sequence,
    Unknown,
    Value,
    carried,
    label_of,
    sequence,
    sources_of,
)
from skyline_lsp.source.site import SiteKind

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]


class Decorator(Native):
    """A library's decorator with its arguments."""

    __slots__ = ("_call", "_name", "_owner")

    def __init__(self, name: str, call: Call, owner: Native | None = None) -> None:
        self._name = name
        self._call = call
        self._owner = owner

    def decorate(self, run: Run, value: Value) -> Value:
        """What the decorated definition becomes."""
        if self._owner is not None:
            owner = self._owner
            if isinstance(owner, Group):
                return owner.add(run, self._call, value)
            if isinstance(owner, Experiment):
                return owner.add(run, self._name, value)
        return decorate(run, self._name, self._call, value) or value

    def call(self, run: Run, call: Call) -> Value:
        return self.decorate(run, call.args[0]) if call.args else NOTHING


def decorate(run: Run, name: str, call: Call | None, value: Value) -> Value | None:
    """A definition under a library's decorator; None where it stays as it is."""
    tail = name.rsplit(".", 1)[-1]
    if name.startswith(("click.", "rich_click.")):
        return _clicked(run, tail, call, value)
    if name in ("hydra.main", "hydra.main.main"):
        return HydraMain(value, call)
    if tail in ("command", "group") and isinstance(value, Command):
        return value
    if name.endswith(("autocast", "with_options")):
        return value
    if tail in ("dataclass", "define", "frozen", "attrs", "s") and isinstance(value, Class):
        value.record = True
        return value
    if tail == "find_executable_batch_size" and isinstance(value, (Function, Partial)):
        return _executable(run, call, value)
    if tail in ("wrap", "argwrap", "pyrallis_wrap") or name.endswith(("pyrallis.wrap", "draccus.wrap", "parser.wrap")):
        return RecordMain(value)
    return None


def decorate_method(run: Run, decorator: Method, call: Call | None, value: Value) -> Value | None:
    """A definition under a method of an object: `@app.command`, `@ex.automain`."""
    owner = decorator.receiver
    if isinstance(owner, Experiment):
        return owner.add(run, decorator.name, value)
    if isinstance(owner, Group) and decorator.name in ("command", "group", "callback"):
        return owner.add(run, call, value)
    return None


def _executable(run: Run, call: Call | None, value: Value) -> Value:
    """accelerate's `find_executable_batch_size(starting_batch_size=128)`: halves it until it fits."""
    start = call.get(None, "starting_batch_size") if call is not None else None
    run.library.problems.append("find_executable_batch_size lowers the batch size until it fits")
    return Partial(value, (start or Known(128),), {})


# click


class Command(Native):
    """A click command."""

    __slots__ = ("function", "parameters", "passes")

    def __init__(self, function: Value) -> None:
        self.function = function
        self.parameters: list[Option] = []
        self.passes = 0

    def call(self, run: Run, call: Call) -> Value:
        argv = call.get(0, "args")
        return self.invoke(run, list(argv.items) if isinstance(argv, Sequence) else argv_of(run))

    def invoke(self, run: Run, argv: list[Value]) -> Value:
        """Call the function with the options that the arguments give."""
        values, _ = parse(run, self.parameters, argv)
        made = run.plain_call([Unknown("context")] * self.passes)
        made.kwargs.update(values)
        return run.call(self.function, made)

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name == "main":
            return self.call(run, call)
        if name == "callback":
            return run.call(self.function, call)
        return None


class Group(Native):
    """A click group or a typer application."""

    __slots__ = ("_callback", "_commands", "_typer")

    def __init__(self, callback: Value | None, typer: bool) -> None:
        self._callback = callback
        self._commands: dict[str, Value] = {}
        self._typer = typer

    def add(self, run: Run, call: Call | None, value: Value) -> Value:
        """Register a command."""
        name = (call.string(0, "name") if call is not None else None) or label_of(
            value.function if isinstance(value, Command) else value
        )
        made: Value = value
        if self._typer:
            self._commands[name.replace("_", "-")] = value
            return value
        if not isinstance(value, (Command, Group)):
            made = Command(value)
        self._commands[name.replace("_", "-")] = made
        return made

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("command", "group", "callback"):
            if name == "callback":
                return Decorator("typer.callback", call)
            if call.args and isinstance(call.args[0], (Function, Command)):
                return self.add(run, None, call.args[0])
            return Decorator(name, call, self)
        if name in ("add_command", "add_typer"):
            value = call.args[0] if call.args else NOTHING
            given = call.string(1, "name")
            self._commands[given or label_of(value.function if isinstance(value, Command) else value) or name] = value
            return NOTHING
        if name == "main":
            return self.call(run, call)
        return None

    def call(self, run: Run, call: Call) -> Value:
        return self.invoke(run, argv_of(run))

    def invoke(self, run: Run, argv: list[Value]) -> Value:
        """Run the command that the arguments name."""
        if self._callback is not None and isinstance(self._callback, Command):
            self._callback.invoke(run, [])
        chosen: str | None = None
        rest = argv
        for i, word in enumerate(argv):
            if isinstance(word, Known) and word.value in self._commands:
                chosen, rest = str(word.value), argv[i + 1 :]
                break
        if chosen is None:
            chosen = preferred(run, list(self._commands))
        command = self._commands.get(chosen or "")
        if isinstance(command, (Command, Group)):
            return command.invoke(run, rest)
        return call_with_arguments(run, command, rest, SiteKind.TYPER) if command is not None else NOTHING


def _clicked(run: Run, tail: str, call: Call | None, value: Value) -> Value | None:
    if tail == "group":
        return Group(value, typer=False)
    if tail in ("command",):
        return value if isinstance(value, Command) else Command(value)
    if isinstance(value, Group):
        return value
    command = value if isinstance(value, Command) else Command(value)
    if tail in ("option", "argument") and call is not None:
        option = _click_option(run, tail, call)
        if option is not None:
            command.parameters.insert(0, option)
        return command
    if tail in ("pass_context", "pass_obj"):
        command.passes += 1
        return command
    return value


def _click_option(run: Run, tail: str, call: Call) -> Option | None:
    names = [arg.value for arg in call.args if isinstance(arg, Known) and isinstance(arg.value, str)]
    if not names:
        return None
    flags = tuple(part for name in names if name.startswith("-") for part in name.split("/"))
    plain = [name for name in names if not name.startswith("-")]
    longs = [flag for flag in flags if flag.startswith("--")]
    dest = (plain or longs or list(flags))[0].lstrip("-").replace("-", "_").lower()
    default = call.get(None, "default")
    is_flag = truth(call.kwargs["is_flag"]) is True if "is_flag" in call.kwargs else False
    is_flag = is_flag or (isinstance(default, Known) and isinstance(default.value, bool) and "type" not in call.kwargs)
    option = Option(
        flags=flags if tail == "option" else (),
        dest=dest,
        default=default,
        path=call.scope.module.path,
        line=call.node.lineno if call.node is not None else 1,
        kind=SiteKind.CLICK,
        action="store_true" if is_flag else "store",
        type=call.get(None, "type"),
        required=truth(call.kwargs["required"]) is True if "required" in call.kwargs else False,
        nargs="*" if tail == "argument" and "nargs" in call.kwargs else "?" if default is not None else None,
    )
    if tail == "option":
        option.nargs = None
    if default is not None:
        run.library.describe(default, SiteKind.CLICK, option.name, f"default of {option.name}")
    return option


def _click_decorator(name: str) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        if call.args and isinstance(call.args[0], (Function, Command)):
            return decorate(run, name, None, call.args[0]) or call.args[0]
        return Decorator(name, call)

    return handler


# Functions whose parameters are options: typer, fire, tyro, jsonargparse


def call_with_arguments(run: Run, function: Value, argv: list[Value], kind: SiteKind) -> Value:
    """Call a function whose parameters a library makes options of."""
    if isinstance(function, Class):
        init = class_attribute(function, "__init__")
        target = init[0] if init is not None else None
        if not isinstance(target, Function):
            return record_from_arguments(run, function, argv, kind)
        made = _arguments_for(run, target, argv, kind, skip=1)
        return run.call(function, made)
    if isinstance(function, Partial):
        return call_with_arguments(run, function.function, argv, kind)
    if not isinstance(function, Function):
        return run.call(function, run.plain_call([]))
    return run.call(function, _arguments_for(run, function, argv, kind, skip=1 if function.receiver is not None else 0))


def _arguments_for(run: Run, function: Function, argv: list[Value], kind: SiteKind, skip: int) -> Call:
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args][skip:]
    options: list[Option] = []
    records: dict[str, Class] = {}
    for parameter in (*positional, *arguments.kwonlyargs):
        default = function.defaults.get(parameter.arg)
        annotation = _annotation(parameter)
        flag = f"--{parameter.arg}" if kind is SiteKind.FUNCTION_DEFAULT else f"--{parameter.arg.replace('_', '-')}"
        flags = {flag, f"--{parameter.arg}", *_annotated_flags(parameter.annotation)}
        if default is None and kind is SiteKind.TYRO:
            cls = _record_class(run, parameter.annotation, function)
            if cls is not None:
                records[parameter.arg] = cls
                continue
        is_bool = annotation == "bool" or (isinstance(default, Known) and isinstance(default.value, bool))
        required_argument = default is None and kind is not SiteKind.FUNCTION_DEFAULT
        options.append(
            Option(
                flags=() if required_argument else tuple(sorted(flags)),
                dest=parameter.arg,
                default=default,
                path=function.scope.module.path,
                line=parameter.lineno,
                kind=kind,
                action="boolean" if is_bool else "store",
                type=External(f"builtins.{annotation}") if annotation in ("int", "float", "str") else None,
                required=default is None,
            )
        )
        if default is not None:
            run.library.describe(default, kind, flag, f"default of {flag}")
    values, _ = parse(run, options, argv)
    made = run.plain_call([])
    for name, value in values.items():
        if name in function.defaults or not isinstance(value, Unknown):
            made.kwargs[name] = value
    for name, cls in records.items():
        made.kwargs[name] = record_from_arguments(run, cls, argv, kind)
    return made


def _annotation(parameter: ast.arg) -> str:
    node = parameter.annotation
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and node.slice.elts:
        node = node.slice.elts[0]
    if isinstance(node, ast.Subscript):
        node = node.slice
    return node.id if isinstance(node, ast.Name) else ""


def _annotated_flags(node: ast.expr | None) -> set[str]:
    """Flags in `Annotated[int, typer.Option("--batch-size", "-b")]`."""
    if not isinstance(node, ast.Subscript):
        return set()
    return {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith("-")
    }


def _record_class(run: Run, node: ast.expr | None, function: Function) -> Class | None:
    if node is None:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    value = run.eval(node, function.scope)
    return value if isinstance(value, Class) else None


def _typer_app(run: Run, call: Call) -> Value:
    return Group(None, typer=True)


def _typer_run(run: Run, call: Call) -> Value:
    return call_with_arguments(run, call.args[0], argv_of(run), SiteKind.TYPER) if call.args else NOTHING


def _typer_option(run: Run, call: Call) -> Value:
    default = call.get(0, "default")
    if default is None or (
        isinstance(default, Known) and (default.value is Ellipsis or isinstance(default.value, str))
    ):
        if isinstance(default, Known) and isinstance(default.value, str) and not default.value.startswith("-"):
            return default
        return Unknown("an option")
    flags = [arg.value for arg in call.args[1:] if isinstance(arg, Known) and isinstance(arg.value, str)]
    name = max(flags, key=len) if flags else "an option"
    if isinstance(default, Known) and default.sources and flags:
        run.library.describe(default, SiteKind.TYPER, name, f"default of {name}")
    return default


def _fire(run: Run, call: Call) -> Value:
    component = call.get(0, "component")
    argv = argv_of(run)
    if component is None:
        component = Mapping(dict(call.scope.module.cells))
    if isinstance(component, (Mapping, Instance)):
        cells = component.cells
        methods = cells
        if isinstance(component, Instance):
            methods = {name: value for name, value in component.cls.cells.items() if not str(name).startswith("_")}
        functions = [str(name) for name, value in methods.items() if isinstance(value, (Function, Class))]
        named = next((w.value for w in argv if isinstance(w, Known) and w.value in functions), None)
        chosen = named or preferred(run, functions)
        if chosen is None:
            return NOTHING
        target = methods[chosen] if isinstance(component, Mapping) else get_attribute(run, component, str(chosen))
        return call_with_arguments(run, target, argv, SiteKind.FUNCTION_DEFAULT)
    if isinstance(component, Class) and not component.record:
        instance = call_with_arguments(run, component, argv, SiteKind.FUNCTION_DEFAULT)
        again = Call(args=[instance], kwargs={}, node=call.node, scope=call.scope)
        return _fire(run, again) if isinstance(instance, Instance) else instance
    return call_with_arguments(run, component, argv, SiteKind.FUNCTION_DEFAULT)


def _tyro(run: Run, call: Call) -> Value:
    target = call.get(0, "f")
    default = call.get(None, "default")
    argv = argv_of(run)
    if isinstance(default, Instance):
        fill_record(run, default, argv, SiteKind.TYRO, "")
        return default
    if isinstance(target, Class):
        return record_from_arguments(run, target, argv, SiteKind.TYRO)
    return call_with_arguments(run, target, argv, SiteKind.TYRO) if target is not None else Unknown("tyro.cli(...)")


def _record_cli(run: Run, call: Call) -> Value:
    """simple_parsing.parse, pyrallis.parse, draccus.parse, chz, ...: a record filled from the command line."""
    target = call.get(0, "config_class", "cls")
    if isinstance(target, Class):
        return record_from_arguments(run, target, argv_of(run), SiteKind.DATACLASS_FIELD)
    return Unknown("a configuration")


def component_cli(run: Run, call: Call) -> Value:
    """jsonargparse's CLI and auto_cli."""
    component = call.get(0, "components")
    if isinstance(component, Sequence) and component.items:
        component = component.items[0]
    if component is None:
        functions = [value for value in call.scope.module.cells.values() if isinstance(value, Function)]
        component = functions[-1] if functions else None
    return call_with_arguments(run, component, argv_of(run), SiteKind.FUNCTION_DEFAULT) if component else NOTHING


class HfParser(Native):
    """transformers' `HfArgumentParser`."""

    __slots__ = ("_classes",)

    def __init__(self, classes: list[Value]) -> None:
        self._classes = classes

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if not name.startswith("parse"):
            return None
        argv = argv_of(run)
        made: list[Value] = []
        content: Mapping | None = None
        if name in ("parse_json_file", "parse_yaml_file", "parse_dict"):
            given = call.args[0] if call.args else NOTHING
            loaded = given if isinstance(given, Mapping) else configuration.load(run, given)
            content = loaded if isinstance(loaded, Mapping) else None
        for cls in self._classes:
            if isinstance(cls, Class):
                if content is not None:
                    inner = run.plain_call([])
                    inner.kwargs = {
                        str(key): value for key, value in content.cells.items() if str(key) in _all_fields(cls)
                    }
                    made.append(run.instantiate(cls, inner))
                else:
                    made.append(record_from_arguments(run, cls, argv, SiteKind.DATACLASS_FIELD))
            else:
                made.append(self._library_record(run, cls, argv, content, call))
        return sequence("tuple", made)

    def _library_record(self, run: Run, cls: Value, argv: list[Value], content: Mapping | None, call: Call) -> Value:
        """A library's own class, such as TrainingArguments: only what the arguments name is known."""
        inner = Call(args=[], kwargs={}, node=call.node, scope=call.scope)
        if content is not None:
            inner.kwargs = {str(key): value for key, value in content.cells.items()}
        else:
            options = [
                Option(flags=(f"--{name}",), dest=name, default=None, path=run.entry_path, line=1,
                       type=External("builtins.int"))
                for name in TRAINING_BATCH
            ]  # fmt: skip
            values, _ = parse(run, options, argv)
            inner.kwargs = {key: value for key, value in values.items() if sources_of(value)}
        return run.call(cls, inner)


def _all_fields(cls: Class) -> set[str]:
    fields = {name for found in mro(cls) for name in found.fields}
    if external_bases(cls):
        fields |= set(TRAINING_BATCH)
    return fields


def _hf_parser(run: Run, call: Call) -> Value:
    given = call.get(0, "dataclass_types")
    classes = list(given.items) if isinstance(given, Sequence) else [given] if given is not None else []
    return HfParser(classes)


# Hydra, pyrallis, sacred


class HydraMain(Native):
    """A function under `@hydra.main`: it is given the composed configuration."""

    __slots__ = ("_call", "_function")

    def __init__(self, function: Value, call: Call | None) -> None:
        self._function = function
        self._call = call

    def call(self, run: Run, call: Call) -> Value:
        if call.args:
            return run.call(self._function, call)
        inner = self._function
        module = inner.scope.module.path if isinstance(inner, Function) else run.entry_path
        folder = self._call.get(0, "config_path") if self._call is not None else None
        name = self._call.get(1, "config_name") if self._call is not None else None
        config = configuration.compose(run, folder, name, module, list(run.arguments))
        return run.call(inner, run.plain_call([config]))


class RecordMain(Native):
    """A function under a decorator that fills its first parameter, a record, from the command line."""

    __slots__ = ("_function",)

    def __init__(self, function: Value) -> None:
        self._function = function

    def call(self, run: Run, call: Call) -> Value:
        function = self._function
        if call.args or not isinstance(function, Function) or not function.node.args.args:
            return run.call(function, call)
        cls = _record_class(run, function.node.args.args[0].annotation, function)
        if cls is None:
            return run.call(function, call)
        return run.call(
            function, run.plain_call([record_from_arguments(run, cls, argv_of(run), SiteKind.DATACLASS_FIELD)])
        )


def _hydra_main(run: Run, call: Call) -> Value:
    if call.args and isinstance(call.args[0], (Function, Partial)):
        return HydraMain(call.args[0], None)
    return Decorator("hydra.main", call)


def _generic_decorator(name: str) -> Handler:
    def handler(run: Run, call: Call) -> Value:
        if call.args and isinstance(call.args[0], (Function, Partial)) and call.node is None:
            return decorate(run, name, None, call.args[0]) or call.args[0]
        return Decorator(name, call)

    return handler


class Experiment(Native):
    """A sacred experiment: local variables of its configuration functions are parameters of the others."""

    __slots__ = ("_config", "_main")

    def __init__(self) -> None:
        self._config: dict[str, Value] = {}
        self._main: Value | None = None

    def add(self, run: Run, name: str, value: Value) -> Value:
        """A function under one of the experiment's decorators."""
        if name == "config" and isinstance(value, Function) and not isinstance(value.node, ast.Lambda):
            scope = Scope(cells={}, module=value.scope.module, parent=value.scope, function=value)
            scope.cells.update(self._config)
            run.entered.add(id(value.node))
            run.block(value.node.body, scope)
            self._config.update({str(key): item for key, item in scope.cells.items()})
            return value
        captured = Partial(value, (), {}) if name in ("capture", "automain", "main", "command") else value
        if isinstance(captured, Partial) and isinstance(value, Function):
            parameters = {parameter.arg for parameter in (*value.node.args.args, *value.node.args.kwonlyargs)}
            captured.kwargs.update({key: item for key, item in self._config.items() if key in parameters})
        if name == "automain":
            run.call(captured, run.plain_call([]))
        elif name == "main":
            self._main = captured
        return captured

    def method(self, run: Run, name: str, call: Call) -> Value | None:
        if name in ("config", "main", "automain", "capture", "command", "named_config"):
            if call.args and isinstance(call.args[0], Function):
                return self.add(run, name, call.args[0])
            return Decorator(name, call, self)
        if name == "add_config":
            for arg in call.args:
                loaded = arg if isinstance(arg, Mapping) else configuration.load(run, arg)
                if isinstance(loaded, Mapping):
                    self._config.update({str(key): carried(item, str(key)) for key, item in loaded.cells.items()})
            self._config.update(call.kwargs)
            return NOTHING
        if name in ("run", "run_commandline") and self._main is not None:
            return run.call(self._main, run.plain_call([]))
        return None


def _experiment(run: Run, call: Call) -> Value:
    return Experiment()


CALLS: dict[str, Handler] = {
    **{
        f"{module}.{name}": _click_decorator(f"click.{name}")
        for module in ("click", "rich_click")
        for name in ("command", "group", "option", "argument", "pass_context", "pass_obj", "version_option")
    },
    "typer.Typer": _typer_app,
    "typer.run": _typer_run,
    "typer.Option": _typer_option,
    "typer.Argument": _typer_option,
    "fire.Fire": _fire,
    "tyro.cli": _tyro,
    "tyro.extras.cli": _tyro,
    "simple_parsing.parse": _record_cli,
    "pyrallis.parse": _record_cli,
    "draccus.parse": _record_cli,
    "chz.entrypoint": _record_cli,
    "pyrallis.wrap": _generic_decorator("pyrallis.wrap"),
    "draccus.wrap": _generic_decorator("draccus.wrap"),
    "jsonargparse.CLI": component_cli,
    "jsonargparse.auto_cli": component_cli,
    "defopt.run": _typer_run,
    "plac.call": _typer_run,
    "transformers.HfArgumentParser": _hf_parser,
    "trl.TrlParser": _hf_parser,
    "hydra.main": _hydra_main,
    "sacred.Experiment": _experiment,
    "accelerate.utils.find_executable_batch_size": _generic_decorator("find_executable_batch_size"),
    "accelerate.find_executable_batch_size": _generic_decorator("find_executable_batch_size"),
    "accelerate.memory_utils.find_executable_batch_size": _generic_decorator("find_executable_batch_size"),
}
