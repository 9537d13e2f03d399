"""Libraries that own the training loop: Lightning, transformers, accelerate, DeepSpeed, mmengine and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow import configuration
from skyline_lsp.source.dataflow.command_line import argv_of, fill_record
from skyline_lsp.source.dataflow.commands import call_with_arguments, component_cli
from skyline_lsp.source.dataflow.containers import update
from skyline_lsp.source.dataflow.loaders import LIBRARY_DEFAULTS, TRAINING_BATCH, says_evaluation
from skyline_lsp.source.dataflow.objects import class_attribute, external_bases, get_attribute
from skyline_lsp.source.dataflow.values import (
    NO_FEEDS,
    NOTHING,
    Call,
    Class,
    External,
    Feed,
    Function,
    Instance,
    Known,
    Mapping,
    Native,
    Sequence,
    Unknown,
    Value,
    feeds_of,
    label_of,
    names_evaluation,
    names_training,
    sequence,
    sources_of,
)
from skyline_lsp.source.site import SiteKind

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]
TailHandler = Callable[["Run", str, Call], "Value | None"]
MethodHandler = Callable[["Run", Value, Call], "Value | None"]

_HOOKS = ("prepare_data", "setup", "configure_optimizers")
_TRAINING_HOOKS = ("train_dataloader", "get_train_dataloader", "training_step", "train_step")
_EVALUATION_HOOKS = (
    "val_dataloader", "test_dataloader", "predict_dataloader", "get_eval_dataloader", "get_test_dataloader",
)  # fmt: skip


def run_hooks(run: Run, instance: Instance, reason: str) -> None:
    """Follow the methods of a project object that a framework calls."""
    hooks = [name for name in (*_TRAINING_HOOKS, *_EVALUATION_HOOKS) if class_attribute(instance.cls, name)]
    loaders = [name for name in hooks if name.endswith("dataloader")]
    if not loaders and not any(name in instance.cells for name in _TRAINING_HOOKS):
        return
    for name in (*_HOOKS, *_TRAINING_HOOKS, *_EVALUATION_HOOKS):
        member = instance.cells.get(name) or get_attribute(run, instance, name)
        if not isinstance(member, Function) or run.is_running(member):
            continue
        before = len(run.feeds)
        result = run.call_root(member)
        feeds = feeds_of(result) | frozenset(run.feeds[before:])
        if name in ("train_dataloader", "get_train_dataloader"):
            for feed in feeds:
                feed.trained = True
                feed.name = feed.name or name
        elif name in _EVALUATION_HOOKS:
            for feed in feeds:
                feed.evaluation = True
                feed.name = feed.name or name


def after_construction(run: Run, instance: Instance, call: Call) -> None:
    """A record that extends a library's training configuration feeds its trainer."""
    for base in external_bases(instance.cls):
        tail = base.name.rsplit(".", 1)[-1]
        if tail in _TRAINING_CONFIGURATIONS and instance.cls.record:
            given = {name: instance.cells[name] for name in TRAINING_BATCH if name in instance.cells}
            inner = Call(args=[], kwargs=given, node=call.node, scope=call.scope)
            if call.node is None:
                inner.scope = type(call.scope)(cells={}, module=instance.cls.module)
            instance.native = _training_arguments(run, tail, inner)
            return


def _training_arguments(run: Run, name: str, call: Call) -> Value | None:
    """transformers' `TrainingArguments` and those built on it."""
    tail = name.rsplit(".", 1)[-1]
    feeds: set[Feed] = set()
    training = False
    for key, value in call.kwargs.items():
        if key in TRAINING_BATCH or key in ("batch_size", "train_batch_size", "eval_batch_size"):
            if isinstance(value, Known) and value.value is None:
                continue
            evaluation = says_evaluation(key)
            batch = value.items[0] if isinstance(value, Sequence) and value.items else value
            feed = run.library.new_feed(run, tail, batch, 0, 0, call.scope, node=call.node, key=key)
            feed.evaluation = bool(evaluation)
            feed.name = key
            training = training or not evaluation
            feeds.add(feed)
            if sources_of(batch):
                run.library.describe(batch, SiteKind.TRAINING_ARGUMENTS, key, f"{key} of {tail}")
    if not training and not call.open:
        default = LIBRARY_DEFAULTS["per_device_train_batch_size"]
        feed = run.library.new_feed(run, tail, Known(default), 0, 0, call.scope, node=call.node)
        feed.name = "per_device_train_batch_size"
        feed.evaluation = False
        feeds.add(feed)
        run.library.problems.append(
            f"{tail} is not given per_device_train_batch_size, so the library's own {default} counts; "
            f"add per_device_train_batch_size={default} to it"
        )
    made = Mapping(dict(call.kwargs), complete=False, namespace=True, feeds=frozenset(feeds))
    for key in ("train_batch_size", "eval_batch_size"):
        source = call.kwargs.get(f"per_device_{key}")
        if source is not None:
            made.cells.setdefault(key, source)
    return made


def _fit(run: Run, receiver: Value, call: Call) -> Value | None:
    """`trainer.fit(...)`, `.train()`, `.run(loader)`, `.learn()`, ...: what is given, or held, is trained on."""
    label = label_of(receiver)
    if names_evaluation(label.rsplit(".", 1)[-1]):
        for value in call.args:
            for feed in feeds_of(value):
                feed.iterated = True
        return None
    given = [(str(i), value) for i, value in enumerate(call.args)] + list(call.kwargs.items())
    trained = False
    for key, value in given:
        feeds = feeds_of(value)
        if not feeds:
            continue
        evaluation = names_evaluation(key) or (trained and not names_training(key))
        for feed in feeds:
            if evaluation:
                feed.evaluation = True if feed.evaluation is None else feed.evaluation
            else:
                feed.trained = feed.trained or feed.evaluation is not True
        trained = trained or not evaluation
    if not trained:
        for feed in feeds_of(receiver) if not isinstance(receiver, External) else NO_FEEDS:
            feed.trained = feed.trained or feed.evaluation is not True
    for value in (*call.args, *call.kwargs.values()):
        if isinstance(value, Instance):
            run_hooks(run, value, "fit")
    return None


def _prepare(run: Run, receiver: Value, call: Call) -> Value | None:
    """accelerate's `prepare` and Fabric's `setup`: what goes in comes out."""
    if len(call.args) == 1:
        return call.args[0]
    return sequence("tuple", call.args) if call.args else None


def _save_hyperparameters(run: Run, receiver: Value, call: Call) -> Value | None:
    """Lightning's `self.save_hyperparameters()`: the constructor's arguments become `self.hparams`."""
    if not isinstance(receiver, Instance):
        return None
    made = Mapping({}, namespace=True)
    given = [arg for arg in call.args if not (isinstance(arg, Known) and isinstance(arg.value, str))]
    if given:
        for arg in given:
            update(run, made, Mapping(arg.cells) if isinstance(arg, Instance) else arg)
    else:
        function = call.scope.function
        if function is not None:
            arguments = function.node.args
            names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
            for name in names:
                if name in call.scope.cells:
                    made.cells[name] = call.scope.cells[name]
            if arguments.kwarg is not None:
                update(run, made, call.scope.cells.get(arguments.kwarg.arg, NOTHING))
    held = receiver.cells.get("hparams")
    if isinstance(held, Mapping):
        update(run, held, made)
    else:
        run.store(receiver.cells, "hparams", made)
    return NOTHING


def _tap(run: Run, receiver: Value, call: Call) -> Value | None:
    """`Args().parse_args()` of a typed argument parser."""
    if not isinstance(receiver, Instance):
        return None
    fill_record(run, receiver, argv_of(run), SiteKind.DATACLASS_FIELD, "")
    return receiver


class LightningCLI(Native):
    """Lightning's command line: it makes the data module and the model itself, and fits."""

    __slots__ = ("_datamodule", "_model")

    def __init__(self, model: Value, datamodule: Value) -> None:
        self._model = model
        self._datamodule = datamodule

    def attribute(self, run: Run, name: str) -> Value | None:
        return {"model": self._model, "datamodule": self._datamodule}.get(name)


def _lightning_cli(run: Run, name: str, call: Call) -> Value | None:
    made: list[Value] = []
    config = _cli_config(run)
    for position, keys in ((0, ("model_class",)), (1, ("datamodule_class",))):
        cls = call.get(position, *keys)
        if not isinstance(cls, Class):
            made.append(Unknown(keys[0]))
            continue
        section = "model" if position == 0 else "data"
        given = config.cells.get(section) if config is not None else None
        words: list[Value] = []
        for word in run.arguments:
            key, equals, text = word.partition("=")
            if equals and key.startswith(f"--{section}."):
                words.append(Known(f"--{key[len(section) + 3 :]}={text}"))
        if isinstance(given, Mapping) and not words:
            inner = run.plain_call([])
            arguments = given.cells.get("init_args", given)
            if isinstance(arguments, Mapping):
                inner.kwargs = {str(key): value for key, value in arguments.cells.items()}
            instance = run.call(cls, inner)
        else:
            instance = call_with_arguments(run, cls, words, SiteKind.FUNCTION_DEFAULT)
        made.append(instance)
    for instance in made:
        if isinstance(instance, Instance):
            run_hooks(run, instance, "fit")
    return LightningCLI(made[0], made[1])


def _cli_config(run: Run) -> Mapping | None:
    arguments = run.arguments
    for i, word in enumerate(arguments):
        path = None
        if word in ("--config", "-c") and i + 1 < len(arguments):
            path = arguments[i + 1]
        elif word.startswith("--config="):
            path = word.split("=", 1)[1]
        if path:
            content = configuration.load(run, Known(path), SiteKind.YAML)
            if isinstance(content, Mapping):
                below = content.cells.get("fit")
                return below if isinstance(below, Mapping) else content
    return None


def _track(run: Run, name: str, call: Call) -> Value | None:
    """`wandb.init(config=...)`: `wandb.config` and `run.config` hold the entries."""
    if not name.startswith("wandb."):
        return None
    given = call.get(None, "config")
    if isinstance(given, (Mapping, Instance)):
        update(run, run.library.tracked, Mapping(given.cells) if isinstance(given, Instance) else given)
    return TrackedRun()


class TrackedRun(Native):
    """A run of Weights & Biases."""

    __slots__ = ()

    def attribute(self, run: Run, name: str) -> Value | None:
        return run.library.tracked if name == "config" else None


def _deepspeed(run: Run, name: str, call: Call) -> Value | None:
    """`deepspeed.initialize(...)`: its configuration holds the batch size, and it may make the loader."""
    if not name.startswith("deepspeed"):
        return None
    config = call.get(None, "config", "config_params")
    args = call.get(0, "args")
    if config is None and isinstance(args, Mapping):
        config = args.cells.get("deepspeed_config")
    content = config if isinstance(config, Mapping) else configuration.load(run, config) if config is not None else None
    data = call.get(None, "training_data")
    feeds: frozenset[Feed] = frozenset()
    if isinstance(content, Mapping):
        for key in ("train_micro_batch_size_per_gpu", "train_batch_size"):
            batch = content.cells.get(key)
            if batch is not None and sources_of(batch):
                strength = 0 if data is not None else 4
                feed = run.library.new_feed(run, "deepspeed.initialize", batch, strength, 0, call.scope, node=call.node)
                feed.evaluation = False
                feeds = frozenset({feed})
                break
    engine = Unknown("an engine")
    return sequence("tuple", [engine, Unknown("an optimizer"), Unknown("a loader", feeds), Unknown("a scheduler")])


def _runner(run: Run, name: str, call: Call) -> Value | None:
    """mmengine's `Runner` and mmcv's loaders: the configuration says what feeds."""
    config = call.get(0, "cfg") if name.endswith("from_cfg") else Mapping(dict(call.kwargs))
    if not isinstance(config, Mapping):
        return None
    feeds: set[Feed] = set()
    for key in ("train_dataloader", "val_dataloader", "test_dataloader"):
        loader = config.cells.get(key)
        batch = loader.cells.get("batch_size") if isinstance(loader, Mapping) else None
        if batch is not None:
            feed = run.library.new_feed(run, f"the runner's {key}", batch, 0, 0, call.scope, node=call.node)
            feed.name, feed.evaluation = key, key != "train_dataloader"
            feeds.add(feed)
    data = config.cells.get("data")
    batch = data.cells.get("samples_per_gpu") if isinstance(data, Mapping) else None
    if batch is not None:
        feeds.add(run.library.new_feed(run, "the runner's data", batch, 0, 0, call.scope, node=call.node))
    return Unknown(f"{name.rsplit('.', 1)[-1]}(...)", frozenset(feeds)) if feeds else None


def _build_loader(run: Run, name: str, call: Call) -> Value | None:
    """mmcv's `build_dataloader(dataset, samples_per_gpu, ...)`."""
    batch = call.get(1, "samples_per_gpu", "imgs_per_gpu")
    if batch is None or not sources_of(batch):
        return None
    feed = run.library.new_feed(run, "build_dataloader", batch, 0, 0, call.scope, node=call.node)
    return Unknown("build_dataloader(...)", frozenset({feed}))


_TRAINING_CONFIGURATIONS = (
    "TrainingArguments", "Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments", "SFTConfig", "DPOConfig",
    "RewardConfig", "ORPOConfig", "KTOConfig", "CPOConfig", "GRPOConfig", "GKDConfig", "RLOOConfig", "PRMConfig",
    "IterativeSFTConfig", "BCOConfig", "CrossEncoderTrainingArguments", "ORTTrainingArguments",
    "GaudiTrainingArguments",
)  # fmt: skip

TAILS: dict[str, TailHandler] = {
    **dict.fromkeys(_TRAINING_CONFIGURATIONS, _training_arguments),
    "LightningCLI": _lightning_cli,
    "init": _track,
    "initialize": _deepspeed,
    "from_cfg": _runner,
    "Runner": _runner,
    "build_dataloader": _build_loader,
}

CALLS: dict[str, Handler] = {
    "lightning.pytorch.cli.auto_cli": component_cli,
}

METHODS: dict[str, MethodHandler] = {
    **dict.fromkeys(
        ("fit", "train", "run", "learn", "fit_one_cycle", "fine_tune", "fit_generator", "train_model", "finetune",
         "train_epoch"),
        _fit,
    ),
    "prepare": _prepare,
    "setup_dataloaders": _prepare,
    "prepare_data_loader": _prepare,
    "save_hyperparameters": _save_hyperparameters,
    "parse_args": _tap,
}  # fmt: skip
