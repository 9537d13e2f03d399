"""What feeds a model: data loaders, samplers, batched data sets, and libraries' training configurations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow import operators
from skyline_lsp.source.dataflow.values import (
    NO_FEEDS,
    Call,
    Choice,
    External,
    Feed,
    Known,
    Native,
    Sequence,
    Unknown,
    Value,
    feeds_of,
    label_of,
    names_batch_size,
    names_evaluation,
    names_training,
    sequence,
    sources_of,
)
from skyline_lsp.source.syntax import called_name, in_loop

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run

Handler = Callable[["Run", Call], Value]
TailHandler = Callable[["Run", str, Call], "Value | None"]
MethodHandler = Callable[["Run", Value, Call], "Value | None"]

TRAINING_BATCH = (
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "per_gpu_train_batch_size",
    "per_gpu_eval_batch_size",
)
"""Batch sizes of transformers' training arguments."""

LIBRARY_DEFAULTS = {"per_device_train_batch_size": 8, "train_batch_size": 8}
"""Batch sizes that a library takes where the program says nothing."""

WHOLE_DATA = 9
"""Strength of a feed that is a tensor made with a size: all the data there is, and no batch size."""

NEVER_FEEDS = {
    "print", "info", "debug", "warning", "error", "log", "write", "format", "append", "add_scalar", "add_argument",
    "add_text", "AverageMeter", "update", "Path", "join", "makedirs", "save", "dump", "dumps", "step", "len",
    "log_dict", "add_option", "DEFINE_integer", "set_defaults", "log_hyperparams", "add_hparams", "log_param",
    "log_params", "init",
    "assert_", "map", "option", "argument", "Option", "Argument", "pformat", "ceil", "sqrt", "exit", "sum", "logging",
    "LambdaLR", "OneCycleLR", "CosineAnnealingLR", "StepLR", "get_linear_schedule_with_warmup", "Adam", "AdamW", "SGD",
    "BatchNorm1d", "BatchNorm2d", "tqdm", "trange", "ValueError", "RuntimeError", "rename", "Markdown", "echo",
}  # fmt: skip
"""Calls that take a batch size without feeding a model."""


def says_evaluation(name: str) -> bool | None:
    """Whether a name says that it is for evaluation; None where it says nothing."""
    return True if names_evaluation(name) else False if names_training(name) else None


def _data_loader(run: Run, name: str, call: Call) -> Value | None:
    """`torch.utils.data.DataLoader` and those that take the same arguments."""
    tail = name.rsplit(".", 1)[-1]
    batch_sampler = call.get(None, "batch_sampler")
    batch = call.get(1, "batch_size", "bs", "batchsize")
    feeds = _batched_feeds(call)
    if batch_sampler is not None and not (isinstance(batch_sampler, Known) and batch_sampler.value is None):
        return Unknown(f"{tail}(...)", feeds)
    if batch is None and call.open:
        batch = Unknown("what it is given")
    if isinstance(batch, (Known, Choice)) and not sources_of(batch) and operators.truth(batch) is False:
        batch = None
    if batch is None:
        batch = Known(1)
    if isinstance(batch, Known) and batch.value is None and feeds:
        # Batched already, by what it reads from.
        return Unknown(f"{tail}(...)", feeds)
    feed = run.library.new_feed(run, tail, batch, 0, 0, call.scope, node=call.node)
    if call.node is not None:
        feed.data = _data_text(run, call)
    shuffle = call.get(2, "shuffle")
    feed.shuffled = operators.truth(shuffle) if shuffle is not None else None
    feed.evaluation = _says(call)
    return Unknown(f"{tail}(...)", feeds | {feed})


def _batched_feeds(call: Call) -> frozenset[Feed]:
    """Feeds among the arguments that cut batches themselves; a data set made of a tensor is not one."""
    found = NO_FEEDS.union(*(feeds_of(value) for value in (*call.args, *call.kwargs.values())))
    return frozenset(feed for feed in found if feed.strength == 0)


def _data_text(run: Run, call: Call) -> str:
    assert call.node is not None
    for keyword in call.node.keywords:
        if keyword.arg in ("dataset", "data"):
            return run.text(keyword.value, call.scope)
    if call.node.args and not isinstance(call.node.args[0], ast.Starred):
        return run.text(call.node.args[0], call.scope)
    return ""


def _says(call: Call) -> bool | None:
    """Whether a loader's own arguments say that it is for evaluation."""
    for key in ("train", "training", "is_training", "is_train"):
        known = operators.truth(call.kwargs[key]) if key in call.kwargs else None
        if known is not None:
            return not known
    split = call.string(None, "split", "mode", "phase", "subset", "stage")
    return says_evaluation(split) if split is not None else None


def _loader_like(run: Run, name: str, call: Call) -> Value | None:
    """Other classes called ...Loader: only with a batch size by its name."""
    for key, value in call.kwargs.items():
        if names_batch_size(key) and key != "batch_sampler":
            feed = run.library.new_feed(run, name.rsplit(".", 1)[-1], value, 0, 0, call.scope, node=call.node, key=key)
            feed.evaluation = _says(call)
            if call.node is not None:
                feed.data = _data_text(run, call)
            return Unknown(f"{feed.call}(...)", _batched_feeds(call) | {feed})
    return None


def _batch_sampler(run: Run, name: str, call: Call) -> Value | None:
    batch = call.get(1, "batch_size")
    if batch is None:
        return None
    feed = run.library.new_feed(run, name.rsplit(".", 1)[-1], batch, 0, 0, call.scope, node=call.node)
    if call.node is not None:
        feed.data = _data_text(run, call)
    return Unknown(f"{feed.call}(...)", frozenset({feed}))


def _splits(run: Run, receiver: Value, call: Call) -> Value | None:
    """torchtext's `BucketIterator.splits`, which gives a loader for each data set."""
    if "Iterator" not in label_of(receiver):
        return None
    data = call.get(0, "datasets")
    count = len(data.items) if isinstance(data, Sequence) else 3
    sizes = call.get(None, "batch_sizes")
    shared = call.get(None, "batch_size")
    made: list[Value] = []
    texts: list[str] = []
    if call.node is not None and call.node.args and isinstance(call.node.args[0], (ast.Tuple, ast.List)):
        texts = [run.text(item, call.scope) for item in call.node.args[0].elts]
    for i in range(count):
        batch = sizes.items[i] if isinstance(sizes, Sequence) and i < len(sizes.items) else shared
        tail = label_of(receiver).rsplit(".", 1)[-1]
        feed = run.library.new_feed(run, tail, batch or Unknown("batch_size"), 0, 0, call.scope, node=call.node)
        feed.data = texts[i] if i < len(texts) else ""
        if i:
            feed.evaluation = True
        made.append(Unknown(f"{tail}(...)", frozenset({feed})))
    return sequence("tuple", made)


def _batched(run: Run, receiver: Value, call: Call) -> Value | None:
    """`dataset.batch(n)` and `.batched(n)`."""
    batch = call.get(0, "batch_size", "batchsize", "n")
    if batch is None or not sources_of(batch):
        return None
    feed = run.library.new_feed(run, f"{label_of(receiver)}.batch", batch, 0, 0, call.scope, node=call.node)
    feed.data = label_of(receiver)
    return Unknown(f"{feed.call}(...)", feeds_of(receiver) | {feed})


def _sampled(run: Run, receiver: Value, call: Call) -> Value | None:
    """`buffer.sample(n)`, `generator.choice(data, n)`: as many samples as the argument says."""
    batch = call.get(0, "batch_size", "num_samples", "n", "size")
    if isinstance(receiver, External) or batch is None or not sources_of(batch) or not isinstance(batch, Known):
        return None
    feed = run.library.new_feed(run, f"{label_of(receiver)}.sample", batch, 1, 0, call.scope, node=call.node)
    return Unknown(f"{feed.call}(...)", feeds_of(receiver) | {feed})


def _choice(run: Run, receiver: Value, call: Call) -> Value | None:
    count = call.get(1, "size", "k")
    if isinstance(count, Sequence) and count.items:
        count = count.items[0]
    if count is None or not sources_of(count):
        return None
    feed = run.library.new_feed(run, f"{label_of(receiver)}.choice", count, 2, 0, call.scope, node=call.node)
    return Unknown(f"{feed.call}(...)", frozenset({feed}))


def _randint(run: Run, call: Call) -> Value:
    """`torch.randint(n, (batch_size,))`: the usual way to draw a batch's positions."""
    size: Value | None = call.get(None, "size") or next((arg for arg in call.args if isinstance(arg, Sequence)), None)
    feeds = frozenset[Feed]().union(*(feeds_of(value) for value in (*call.args, Known(None))))
    if isinstance(size, Sequence) and size.items and sources_of(size.items[0]):
        speaks = any(operators.speaks_of_batch(source) for source in sources_of(size.items[0]))
        strength = 1 if len(size.items) == 1 and speaks else 3 if speaks else 5 if _in_loop(call) else WHOLE_DATA
        feeds = feeds | {
            run.library.new_feed(run, "torch.randint", size.items[0], strength, 0, call.scope, node=call.node)
        }
    return Unknown("torch.randint(...)", feeds)


def _in_loop(call: Call) -> bool:
    """Whether a call stands in a loop of its function: what it makes is made anew for each step."""
    return call.node is not None and in_loop(call.scope.module.syntax, call.node)


def _made_tensor(run: Run, name: str, call: Call) -> Value | None:
    """`torch.randn(batch_size, ...)`: made-up data, or a full batch."""
    if not name.startswith("torch."):
        return None
    shape = call.get(0, "size")
    size, second = shape, call.get(1)
    if isinstance(shape, Sequence) and shape.items:
        size, second = shape.items[0], shape.items[1] if len(shape.items) > 1 else None
    if size is None or not sources_of(size):
        return None
    speaks = any(operators.speaks_of_batch(source) for source in sources_of(size))
    square = second is not None and {source.literal.key for source in sources_of(second)} & {
        source.literal.key for source in sources_of(size)
    }
    # Tutorials call the size of their one batch N.
    named = not square and any(name in ("N", "B") for source in sources_of(size) for name in source.via)
    strength = 3 if speaks else 4 if named else 5 if _in_loop(call) else WHOLE_DATA
    feed = run.library.new_feed(run, name, size, strength, 0, call.scope, node=call.node)
    return Unknown(f"{name}(...)", frozenset({feed}))


def _sized_view(run: Run, receiver: Value, call: Call) -> Value | None:
    """`data.view(batch_size, -1)`, `.reshape`, `.split(batch_size)`, `torch.split(data, batch_size)`."""
    if isinstance(receiver, External):
        if receiver.name != "torch" or len(call.args) < 2:
            return None
        receiver, call = call.args[0], call.without_first()
    size = call.get(0, "split_size", "split_size_or_sections", "shape", "size")
    if isinstance(size, Sequence) and size.items:
        size = size.items[0]
    if size is None or isinstance(receiver, (Known, Native)):
        return None
    name = called_name(call.node) if call.node is not None else "view"
    speaks = any(operators.speaks_of_batch(source) for source in sources_of(size))
    if not speaks and (name != "split" or not sources_of(size)):
        return None
    strength = 2 if speaks else 4
    feed = run.library.new_feed(run, f"{label_of(receiver)}.{name}", size, strength, 0, call.scope, node=call.node)
    return Unknown(f"{feed.call}(...)", feeds_of(receiver) | {feed})


def _suggested(run: Run, receiver: Value, call: Call) -> Value | None:
    """Optuna's `trial.suggest_int(...)`: a search sets it."""
    name = call.string(0, "name") or "a value"
    if names_batch_size(name):
        run.library.problems.append(
            f"{name} is set by the search ({label_of(receiver)}.suggest_...), which tries several values"
        )
    return Unknown(f"{label_of(receiver)}.suggest_...({name!r})")


def _concat(run: Run, name: str, call: Call) -> Value | None:
    return Unknown(f"{name}(...)", frozenset().union(*(feeds_of(value) for value in call.args)) | NO_FEEDS)


CALLS: dict[str, Handler] = {"torch.randint": _randint}

TAILS: dict[str, TailHandler] = {
    **dict.fromkeys(
        ("DataLoader", "InfiniteDataLoader", "MultiEpochsDataLoader", "DataLoaderX", "ThreadDataLoader",
         "StatefulDataLoader", "FastDataLoader", "BackgroundDataLoader", "GeometricDataLoader", "DenseDataLoader"),
        _data_loader,
    ),
    **dict.fromkeys(
        ("NeighborLoader", "NeighborSampler", "LinkNeighborLoader", "ClusterLoader", "GraphSAINTSampler", "HGTLoader",
         "GraphDataLoader", "NodeDataLoader", "EdgeDataLoader", "WebLoader", "FluidDataLoader", "Loader",
         "BucketIterator", "Iterator", "BPTTIterator", "DataListLoader", "ImbalancedSampler", "ShaDowKHopSampler",
         "DALIClassificationIterator", "RandomNodeLoader", "DynamicBatchSampler"),
        _loader_like,
    ),
    **dict.fromkeys(("BatchSampler", "DistributedBatchSampler", "GroupedBatchSampler", "RASampler"), _batch_sampler),
    **dict.fromkeys(
        ("randn", "rand", "zeros", "ones", "empty", "full", "FloatTensor", "LongTensor", "Tensor", "normal"),
        _made_tensor,
    ),
    "cat": _concat,
    "stack": _concat,
}  # fmt: skip

METHODS: dict[str, MethodHandler] = {
    "splits": _splits,
    "batch": _batched,
    "batched": _batched,
    "sample": _sampled,
    "sample_batch": _sampled,
    "get_batch": _sampled,
    "next_batch": _sampled,
    "choice": _choice,
    "integers": _choice,
    "view": _sized_view,
    "reshape": _sized_view,
    "split": _sized_view,
    "suggest_int": _suggested,
    "suggest_categorical": _suggested,
    "suggest_discrete_uniform": _suggested,
    "suggest_float": _suggested,
}
