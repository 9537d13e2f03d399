"""What names from outside the project do, where it matters for a batch size.

Calls are looked up by their full name, then by their last part (libraries re-export each other's loaders); what is in
no table gives something unknown that still remembers which loaders its arguments came from.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow import command_line, commands, configuration, frameworks, loaders, standard_library
from skyline_lsp.source.dataflow.branches import Ended
from skyline_lsp.source.dataflow.containers import (
    file_method,
    mapping_method,
    scalar_method,
    sequence_method,
)
from skyline_lsp.source.dataflow.objects import external_bases
from skyline_lsp.source.dataflow.operators import speaks_of_batch
from skyline_lsp.source.dataflow.values import (
    NO_FEEDS,
    NOTHING,
    ArgumentLiteral,
    Call,
    Class,
    External,
    Feed,
    FileContent,
    Function,
    Instance,
    Known,
    Mapping,
    Method,
    Native,
    Partial,
    Reference,
    Scope,
    Sequence,
    Source,
    Super,
    Unknown,
    Value,
    feeds_of,
    label_of,
    names_batch_size,
    sequence,
    sources_of,
)
from skyline_lsp.source.site import SiteKind

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

_THIRD_PARTY = {
    "torch", "numpy", "torchvision", "torchaudio", "transformers", "lightning", "pytorch_lightning", "accelerate",
    "omegaconf", "hydra", "yaml", "pandas", "scipy", "sklearn", "matplotlib", "tqdm", "einops", "timm", "PIL", "cv2",
    "deepspeed", "peft", "trl", "tensorboard", "tensorboardX", "gymnasium", "gym", "jax", "flax", "tensorflow", "click",
    "typer", "fire", "absl", "tyro", "toml", "tomli", "yacs", "easydict", "ignite", "fastai", "monai", "optuna", "ray",
    "wandb", "mlflow", "rich", "loguru", "sacred", "simple_parsing", "pydantic", "attr", "attrs", "jsonargparse",
    "torchmetrics", "torchtext", "torch_geometric", "dgl", "spacy", "nltk", "tokenizers", "sentencepiece",
    "safetensors", "huggingface_hub", "apex", "horovod", "webdataset", "h5py", "psutil", "requests", "skorch",
}  # fmt: skip

_RECORD_DECORATORS = ("dataclass", "attr.s", "attrs", "define", "frozen", "attr.dataclass", "mutable", "configclass")
_RECORD_BASES = (
    "NamedTuple", "BaseModel", "BaseSettings", "TypedDict", "Tap", "TypedArgumentParser", "Struct", "TrainingArguments",
    "BaseModelSettings", "SQLModel", "FlexibleModel", "JsonDataClass", "Serializable", "Config",
)  # fmt: skip

_BACKWARD = {"backward", "manual_backward"}


class Library:
    """The modelled part of the world outside the project, and its state."""

    def __init__(self) -> None:
        self.roles: dict[tuple[str, int, int], tuple[SiteKind, str, str]] = {}
        """What a literal is to its library: kind, name, description ("default of --batch-size")."""
        self.problems: list[str] = []
        """Why a batch size that was met can't be edited, each for the user."""
        self.configured = False
        """Whether the program reads configuration files, or may be told to by its arguments."""
        self.flags = command_line.Flags()
        self.tracked = Mapping({}, complete=False, namespace=True)
        """Weights & Biases' configuration."""
        self.config_store: dict[str, Value] = {}
        """Hydra's structured configurations, by group and name."""
        self.config_folder: Value | None = None
        """Where `hydra.initialize` says that configurations lie."""
        self.calls = {
            **standard_library.CALLS,
            **command_line.CALLS,
            **commands.CALLS,
            **configuration.CALLS,
            **loaders.CALLS,
            **frameworks.CALLS,
        }
        self.tails = {**command_line.TAILS, **configuration.TAILS, **loaders.TAILS, **frameworks.TAILS}
        self.methods = {**frameworks.METHODS, **loaders.METHODS}

    # Names.

    def knows(self, name: str) -> bool:
        """Whether an import means a library, whatever the project's folders are called."""
        return name.split(".")[0] in _THIRD_PARTY

    def is_builtin(self, name: str) -> bool:
        """Whether a name is built in."""
        return name in standard_library.BUILTINS or name in standard_library.OTHER_BUILTINS

    def attribute(self, run: Run, value: External, name: str) -> Value:
        """An attribute of a library's name."""
        full = f"{value.name}.{name}"
        if full == "sys.argv":
            argv = [run.entry_path, *run.arguments]
            return sequence("list", [_argument(run, text, i) for i, text in enumerate(argv)])
        if full == "sys.path":
            return standard_library.SearchPath()
        if full in ("sys.platform", "os.name", "sys.version_info"):
            return Unknown(full)
        if full in ("os.sep", "os.path.sep"):
            return Known("/")
        if full.startswith("wandb.config"):
            return self.tracked if full == "wandb.config" else External(full)
        if value.name.endswith("flags.FLAGS"):
            return self.flags.value(run, name)
        return External(full)

    def set_attribute(self, run: Run, value: Value, name: str, new: Value) -> None:
        """An attribute of a library's object is set; some set the batch size."""
        if isinstance(value, External) and value.name.endswith("flags.FLAGS"):
            self.flags.values[name] = new
            return
        if names_batch_size(name) and sources_of(new):
            self.new_feed(run, f"{label_of(value)}.{name}", new, 3, 0, _scope_of(run), evaluation=None)

    def item(self, run: Run, value: External, key: Value, text: str) -> Value:
        """An element of a library's object."""
        if value.name == "os.environ" and isinstance(key, Known):
            given = run.environment.get(str(key.value))
            return self.variable(run, str(key.value), NOTHING) if given is not None else Unknown(text)
        return External(f"{value.name}[{key.value}]") if isinstance(key, Known) else Unknown(text)

    def variable(self, run: Run, name: str, default: Value) -> Value:
        """An environment variable: from the run configuration, else its default."""
        given = run.environment.get(name)
        if given is not None:
            if given.strip().isdigit():
                literal = ArgumentLiteral(
                    text=given.strip(), value=int(given), option=name, overridden=default, path=run.entry_path, line=1
                )
                return Known(given, (Source(literal=literal),))
            return Known(given)
        self.describe(default, SiteKind.ENVIRONMENT_DEFAULT, name, f"default of the environment variable {name}")
        return default

    def describe(self, value: Value, kind: SiteKind, name: str, description: str) -> None:
        """Say what a literal that is passed to a library directly is to it."""
        if isinstance(value, Known) and len(value.sources) == 1:
            literal = value.sources[0].literal
            if not isinstance(literal, ArgumentLiteral) and len(set(value.sources[0].via)) <= 1:
                self.roles.setdefault(literal.key, (kind, name, description))

    def ended(self) -> None:
        """The program exits or raises here."""
        raise Ended

    # Calls.

    def call(self, run: Run, function: Value, call: Call) -> Value:
        """A call of something that is not the project's."""
        try:
            return self._call(run, function, call)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A call that the library itself would refuse, or that its model does not expect: nothing is known of it.
            return Unknown(f"{label_of(function)}(...)", feeds_of(function))

    def _call(self, run: Run, function: Value, call: Call) -> Value:
        if isinstance(function, External):
            return self._call_external(run, function, call)
        if isinstance(function, Method):
            return self._call_method(run, function, call)
        label = label_of(function)
        owner, _, name = label.rpartition(".")
        handler = self.methods.get(name) if owner else None
        if handler is not None:
            result = handler(run, Unknown(owner, feeds_of(function)), call)
            if result is not None:
                return result
        return self.unknown_call(run, label, call, feeds_of(function))

    def _call_external(self, run: Run, function: External, call: Call) -> Value:
        handler = self.calls.get(function.name)
        if handler is not None:
            return handler(run, call)
        tail = function.name.rsplit(".", 1)[-1]
        by_tail = self.tails.get(tail)
        if by_tail is not None:
            result = by_tail(run, function.name, call)
            if result is not None:
                return result
        owner, _, name = function.name.rpartition(".")
        method = self.methods.get(name)
        if method is not None and owner:
            result = method(run, External(owner), call)
            if result is not None:
                return result
        return self.unknown_call(run, function.name, call, NO_FEEDS)

    def _call_method(self, run: Run, function: Method, call: Call) -> Value:
        receiver, name = function.receiver, function.name
        result: Value | None = None
        if isinstance(receiver, Known):
            result = scalar_method(run, receiver, name, call)
        elif isinstance(receiver, Mapping):
            result = mapping_method(run, receiver, name, call)
            if result is None:
                result = configuration.mapping_method(run, receiver, name, call)
        elif isinstance(receiver, Sequence):
            result = sequence_method(run, receiver, name, call)
        elif isinstance(receiver, FileContent):
            result = file_method(run, receiver, name, call)
        elif isinstance(receiver, Native):
            result = receiver.method(run, name, call)
        elif isinstance(receiver, Super):
            return self._call_super(run, receiver, name, call)
        elif isinstance(receiver, Function):
            return self.unknown_call(run, f"{receiver.name}.{name}", call, NO_FEEDS)
        if result is not None:
            return result
        handler = self.methods.get(name)
        if handler is not None:
            result = handler(run, receiver, call)
            if result is not None:
                return result
        return self.unknown_call(run, f"{label_of(receiver)}.{name}", call, feeds_of(receiver))

    def _call_super(self, run: Run, receiver: Super, name: str, call: Call) -> Value:
        instance = receiver.receiver
        if not isinstance(instance, Instance):
            return self.unknown_call(run, f"super().{name}", call, NO_FEEDS)
        if name == "__init__":
            self.make_native(run, instance, call)
            return NOTHING
        if name == "__setattr__":
            return standard_library.CALLS["builtins.object.__setattr__"](
                run, Call(args=[instance, *call.args], kwargs={}, node=None, scope=call.scope)
            )
        if instance.native is not None:
            return self._call_method(run, Method(instance.native, name), call)
        handler = self.methods.get(name)
        if handler is not None:
            result = handler(run, instance, call)
            if result is not None:
                return result
        return self.unknown_call(run, f"super().{name}", call, feeds_of(instance))

    def call_object(self, run: Run, instance: Instance, call: Call) -> Value:
        """A call of a project object whose class does not say what a call does: a module runs its forward."""
        return self.unknown_call(run, label_of(instance), call, feeds_of(instance))

    def unknown_call(self, run: Run, name: str, call: Call, feeds: frozenset[Feed]) -> Value:
        """A call that nothing is known about but its arguments."""
        for value in (*call.args, *call.kwargs.values()):
            found = feeds_of(value)
            if found:
                feeds = feeds | found
        tail = name.rsplit(".", 1)[-1]
        if tail in _BACKWARD:
            run.backward(feeds)
            return NOTHING
        if tail.startswith("add_") and call.args and isinstance(call.args[0], command_line.Parser):
            # `parser = Trainer.add_argparse_args(parser)`
            return call.args[0]
        made = self._feeds_of_arguments(run, name, call)
        feeds = feeds | made
        for value in (*call.args, *call.kwargs.values()):
            if isinstance(value, (Function, Partial)):
                returned = run.call_back(value, feeds)
                feeds = feeds | feeds_of(returned)
            elif isinstance(value, Instance) and tail not in ("print", "to", "append"):
                frameworks.run_hooks(run, value, tail)
        return Unknown(f"{name}(...)", feeds)

    def _feeds_of_arguments(self, run: Run, name: str, call: Call) -> frozenset[Feed]:
        """Feeds that a library makes of a batch size that it is given."""
        tail = name.rsplit(".", 1)[-1]
        if tail in loaders.NEVER_FEEDS or name.startswith("builtins."):
            return NO_FEEDS
        found: set[Feed] = set()
        for key, value in call.kwargs.items():
            if names_batch_size(key) and sources_of(value) and _may_be_size(value):
                strength = 1 if isinstance(value, Known) else 2
                found.add(self.new_feed(run, name, value, strength, 0, call.scope, node=call.node, key=key))
        for value in (*call.args, *call.kwargs.values()):
            for part in value.items[:4] if isinstance(value, Sequence) else (value,):
                if any(speaks_of_batch(source) for source in sources_of(part)):
                    if not _may_be_size(part):
                        continue
                    found.add(self.new_feed(run, name, part, 4, 0, call.scope, node=call.node))
        return frozenset(found)

    # Feeds.

    def new_feed(
        self,
        run: Run,
        name: str,
        batch: Value,
        strength: int,
        line: int,
        scope: Scope,
        node: ast.Call | None = None,
        key: str = "",
        evaluation: bool | None = None,
    ) -> Feed:
        """Remember that data is cut into batches here."""
        function = scope.function.name if scope.function is not None else ""
        if evaluation is None and key:
            evaluation = loaders.says_evaluation(key)
        feed = Feed(
            call=name.removeprefix("builtins."),
            path=scope.module.path,
            line=node.lineno if node is not None else line,
            batch=batch,
            strength=strength,
            function=function,
            evaluation=evaluation,
            order=len(run.feeds),
        )
        if node is not None and node.args:
            feed.data = run.text(node.args[0], scope)
        run.feeds.append(feed)
        return feed

    # Classes.

    def decorate(self, run: Run, decorator: Value, value: Value) -> Value:
        """A project function or class under a library's decorator."""
        if isinstance(decorator, External):
            tail = decorator.name.rsplit(".", 1)[-1]
            if isinstance(value, Class) and tail in {name.rsplit(".", 1)[-1] for name in _RECORD_DECORATORS}:
                value.record = True
                return value
            if decorator.name in ("builtins.property", "functools.cached_property") or tail == "cached_property":
                return standard_library.CALLS["builtins.property"](run, run.plain_call([value]))
            if decorator.name in ("builtins.staticmethod", "builtins.classmethod"):
                return standard_library.CALLS[decorator.name](run, run.plain_call([value]))
            if tail == "contextmanager":
                return value
            return commands.decorate(run, decorator.name, None, value) or value
        if isinstance(decorator, Method):
            if decorator.name in ("setter", "deleter", "getter"):
                return decorator.receiver
            return commands.decorate_method(run, decorator, None, value) or value
        if isinstance(decorator, commands.Decorator):
            return decorator.decorate(run, value)
        if isinstance(decorator, Native):
            result = decorator.call(run, run.plain_call([value]))
            return value if isinstance(result, Unknown) else result
        if isinstance(decorator, Unknown) and isinstance(value, Class):
            told = any(name in decorator.label for name in ("dataclass", "define(", "attr.s(", "frozen("))
            value.record = value.record or told
        return value

    def makes_records(self, cls: Class) -> bool:
        """Whether a base makes the class's fields the parameters of its constructor."""
        for base in cls.bases:
            if isinstance(base, Class) and base.record:
                return True
            if isinstance(base, External) and base.name.rsplit(".", 1)[-1].endswith(_RECORD_BASES):
                return True
        return False

    def make_native(self, run: Run, instance: Instance, call: Call | None) -> None:
        """Make what a project object is as an object of its base class from outside."""
        if instance.native is not None and call is None:
            return
        for base in external_bases(instance.cls):
            tail = base.name.rsplit(".", 1)[-1]
            if base.name == "builtins.dict" or tail in ("OrderedDict", "UserDict", "EasyDict", "edict", "CfgNode"):
                made = self.calls["builtins.dict"](run, call or run.plain_call([]))
                if isinstance(made, Mapping):
                    made.namespace = tail in ("EasyDict", "edict", "CfgNode")
                    if isinstance(instance.native, Mapping):
                        instance.native.cells.update(made.cells)
                    else:
                        instance.native = made
                return
            if call is None or tail in ("Module", "Dataset", "object", "ABC", "Generic", "LightningModule"):
                continue
            made_value = self._call_external(run, base, call)
            if isinstance(made_value, Native) or feeds_of(made_value):
                instance.native = made_value
                return

    def after_construction(self, run: Run, instance: Instance, call: Call) -> None:
        """A project object was made."""
        frameworks.after_construction(run, instance, call)

    def resolve(self, run: Run, value: Reference) -> Value:
        """An OmegaConf interpolation's value."""
        return configuration.resolve(run, value)


def _may_be_size(value: Value) -> bool:
    return not isinstance(value, Known) or (isinstance(value.value, (int, float)) and value.value > 0)


def _argument(run: Run, text: str, position: int) -> Value:
    """An element of `sys.argv`; the number in "32" or "--batch_size=32" is the command line's."""
    option, _, given = text.rpartition("=")
    if position and given.isascii() and given.isdigit():
        literal = ArgumentLiteral(
            text=given, value=int(given), option=option or text, overridden=None, path=run.entry_path, line=1
        )
        return Known(text, (Source(literal=literal),))
    return Known(text)


def _scope_of(run: Run) -> Scope:
    return run.plain_call([]).scope
