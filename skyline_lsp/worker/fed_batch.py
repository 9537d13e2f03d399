"""How many samples a script's training batch holds: as its data loader knows, else as its model is given; and how
many batches its data loader yields in an iteration.

Private parts of torch used here: `_next_data` of the data loader's iterators, and `Module._call_impl`. Where they are
gone, less is known, and nothing fails. Hooks on modules won't do: `torch.compile` would compile another program.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.utils._pytree import tree_iter
from torch.utils.data import dataloader

_module_class: Any = torch.nn.Module
_CALL_CODE = getattr(getattr(_module_class, "_call_impl", None), "__code__", None)


class FedBatch:
    """Finds the batch size of a program and tells it, once, to `found`."""

    def __init__(self, found: Callable[[int], None]) -> None:
        self._found = found
        self._size: int | None = None
        self._concluded = False
        self._source: object = None
        self._yielded: Counter[object] = Counter()
        self._counts: Counter[int] = Counter()

    @property
    def loaded(self) -> int | None:
        """Batches of an iteration, as most iterations were; None where they don't come from a data loader.

        Some iterations differ: what an epoch leaves over when batches are accumulated, a pass over the training data
        to see how good the model is.
        """
        return self._counts.most_common(1)[0][0] if self._counts else None

    def watch_loaders(self) -> None:
        """Note from here on what data loaders yield. The last batch before an optimizer step is one of training."""
        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            iterator_class = getattr(dataloader, name, None)
            if hasattr(iterator_class, "_next_data"):
                self._watch_loader(iterator_class)

    def conclude(self) -> None:
        """An iteration has ended: tell what was seen, or, where no loader is at work, look at the next one's model."""
        self._concluded = True
        self._yielded.clear()
        if self._size is not None:
            self._found(self._size)
        elif _CALL_CODE is not None and sys.getprofile() is None:
            sys.setprofile(self._on_call)

    def iteration_ended(self) -> None:
        """Another iteration has ended: count its batches, and look at no more modules. A program may call none."""
        if sys.getprofile() == self._on_call:
            sys.setprofile(None)
        if count := self._yielded[self._source]:
            self._counts[count] += 1
        self._yielded.clear()

    def _watch_loader(self, iterator_class: Any) -> None:
        usual: Callable[[Any], Any] = iterator_class._next_data

        def next_data(iterator: Any) -> Any:
            data = usual(iterator)
            if not self._concluded:
                self._size = _loaded(iterator, data)
            # What the iterators of a loader have in common, epoch for epoch. Of several loaders the one that yielded
            # last before the optimizer stepped is the one to count.
            self._source = id(getattr(iterator, "_index_sampler", iterator))
            self._yielded[self._source] += 1
            return data

        iterator_class._next_data = next_data

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code is not _CALL_CODE or not torch.is_grad_enabled():
            return
        names = frame.f_locals
        size = _given(names.get("self"), (names.get("args"), names.get("kwargs")))
        if size is not None:
            sys.setprofile(None)
            self._found(size)


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    return (value for value in tree_iter(values) if isinstance(value, torch.Tensor) and value.dim() > 0)


def _loaded(iterator: Any, data: Any) -> int | None:
    """The batch size of a loader that collates by itself, else the first dimension of what it yields."""
    wanted = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
    if isinstance(wanted, int) and getattr(iterator, "_auto_collation", False):
        # What it yields may be smaller: the last batch of an epoch.
        return wanted
    first = next(_tensors(data), None)
    return int(first.shape[0]) if first is not None else None


def _given(module: Any, values: Any) -> int | None:
    """The batch dimension of a model's first input: the first, or the second of a sequence for layers that want it."""
    first = next(_tensors(values), None)
    if first is None or not isinstance(module, torch.nn.Module) or not module.training:
        return None
    sequence = first.dim() == 3 or (first.dim() == 2 and not first.is_floating_point())
    if sequence and any(getattr(part, "batch_first", True) is False for part in module.modules()):
        return int(first.shape[1])
    return int(first.shape[0])
