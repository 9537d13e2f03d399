"""What is alive in memory during one iteration: each storage once, with its class and the line that made it.

Storages are found through their tensors: those that exist when recording starts, by walking the garbage collector's
objects; those made later, in a dispatch mode. A weak reference tells when one dies. Workspaces inside an operation
are not storages and are not seen.

Private parts of torch used here, checked by `self_test`: `UntypedStorage._cdata` and weak references to storages.
"""

import gc
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from skyline_lsp.worker.call_tree import ROOT


class StorageClass(Enum):
    """What a storage holds, in the order in which a storage that is several things is counted."""

    WEIGHT = 0
    GRADIENT = 1
    OPTIMIZER = 2
    ACTIVATION = 3
    OTHER = 4


class Where(Protocol):
    """Tells what is running: the line tracer."""

    @property
    def node(self) -> int:
        """Tree node."""

    @property
    def loading_data(self) -> bool:
        """Whether a data loader is at work."""

    @property
    def recomputing(self) -> bool:
        """Whether forward code runs again, for activation checkpointing."""


@dataclass(slots=True)
class Storage:
    """One storage: where it came from and what it turned out to be."""

    nbytes: int
    node: int
    """Tree node at which it was made; the root for one that was there before."""
    kind: StorageClass = StorageClass.OTHER
    before: bool = False
    """Whether it existed when recording started."""
    is_input: bool = False
    """Whether it was there before, or a data loader made it."""
    saved_at: int | None = None
    """Tree node that first saved it for backward."""

    def mark(self, kind: StorageClass) -> None:
        """Note that it is `kind`; the class that stands first wins."""
        if kind.value < self.kind.value:
            self.kind = kind


@dataclass(slots=True)
class Recording:
    """The life of every storage over one iteration."""

    device: str
    storages: list[Storage] = field(default_factory=list)
    events: list[tuple[int, int]] = field(default_factory=list)
    """(index into `storages`, +1 made or -1 gone), in order; those that were there before stand first."""
    times_ns: list[int] = field(default_factory=list)
    """Since the start, for each event."""
    operations: list[int] = field(default_factory=list)
    """Live bytes after each operation; all that a data loader does at a time counts as one."""
    hooked: bool = True
    """Whether saved tensors could be watched throughout."""

    def peak(self) -> tuple[int, set[int]]:
        """Highest live bytes, and the storages alive then."""
        live = highest = 0
        at = -1
        for position, (index, change) in enumerate(self.events):
            live += change * self.storages[index].nbytes
            if live > highest:
                highest, at = live, position
        alive: set[int] = set()
        for index, change in self.events[: at + 1]:
            if change > 0:
                alive.add(index)
            else:
                alive.discard(index)
        return highest, alive

    def live_bytes(self) -> Iterator[tuple[int, int]]:
        """(time in ns, live bytes) after each event, what was there before counted as one."""
        live = 0
        for (index, change), now in zip(self.events, self.times_ns, strict=True):
            live += change * self.storages[index].nbytes
            if not (change > 0 and self.storages[index].before):
                yield now, live


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Records one iteration between `start` and `stop`, for the storages of one device type."""

    def __init__(
        self,
        where: Where,
        parameters: Iterable[torch.nn.Parameter],
        buffers: Iterable[torch.Tensor],
        optimizers: Iterable[torch.optim.Optimizer],
        device: str,
        fake: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._where = where
        self._parameters = list(parameters)
        self._buffers = list(buffers)
        self._optimizers = list(optimizers)
        self._recording = Recording(device=device)
        # A fake tensor names a device that its storage is not on.
        self._storage_device = "meta" if fake else device
        self._living: dict[int, tuple[int, Any]] = {}
        self._live = 0
        self._started = 0
        self._loading_peak: int | None = None
        self._stack = ExitStack()

    def start(self) -> None:
        """Take stock of what is alive, then watch."""
        self._started = time.perf_counter_ns()
        for tensor in _living_tensors():
            self._add(tensor, before=True)
        self._classify_known()
        self._stack.enter_context(_gradient_hooks(self._parameters, self._saw_gradient))
        self._stack.enter_context(self._saved_tensors())
        self._stack.enter_context(self)

    def stop(self) -> Recording:
        """Stop watching; gives the recording."""
        self._stack.close()
        self._classify_known()
        self._living.clear()
        return self._recording

    def _classify_known(self) -> None:
        for tensor in [*self._parameters, *self._buffers]:
            self._mark(tensor, StorageClass.WEIGHT)
        for parameter in self._parameters:
            if parameter.grad is not None:
                self._mark(parameter.grad, StorageClass.GRADIENT)
        for optimizer in self._optimizers:
            for value in tree_iter(dict(optimizer.state)):
                if isinstance(value, torch.Tensor):
                    self._mark(value, StorageClass.OPTIMIZER)

    def _storage_of(self, tensor: torch.Tensor) -> Any:
        """The tensor's storage, where it has one on the device that is watched."""
        if tensor.device.type != self._recording.device or tensor.layout is not torch.strided:
            return None
        try:
            storage = tensor.untyped_storage()
            return storage if storage.device.type == self._storage_device else None
        except (NotImplementedError, RuntimeError):
            # Tensor subclasses and functional wrappers may have no storage of their own.
            return None

    def _parts(self, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
        """The strided tensors that hold the data of `tensor`: itself, or the parts of a sparse one."""
        if tensor.layout is torch.strided:
            yield tensor
        elif tensor.layout is torch.sparse_coo:
            yield tensor._indices()
            yield tensor._values()

    def _add(self, tensor: torch.Tensor, before: bool = False) -> None:
        for part in self._parts(tensor):
            storage = self._storage_of(part)
            if storage is None:
                continue
            key = storage._cdata
            nbytes = storage.nbytes()
            if key in self._living:
                index = self._living[key][0]
                if self._recording.storages[index].nbytes == nbytes:
                    continue
                # Resized in place: the old extent is gone, the new one is this line's.
                self._gone(key, index)
            index = len(self._recording.storages)
            self._recording.storages.append(
                Storage(
                    nbytes=nbytes,
                    node=ROOT if before else self._where.node,
                    before=before,
                    is_input=before or self._where.loading_data,
                )
            )
            self._event(index, 1)

            def died(_: Any, key: int = key, index: int = index) -> None:
                self._gone(key, index)

            self._living[key] = (index, weakref.ref(storage, died))

    def _gone(self, key: int, index: int) -> None:
        if key in self._living and self._living[key][0] == index:
            del self._living[key]
            self._event(index, -1)

    def _event(self, index: int, change: int) -> None:
        self._live += change * self._recording.storages[index].nbytes
        self._recording.events.append((index, change))
        self._recording.times_ns.append(time.perf_counter_ns() - self._started)

    def _known(self, tensor: torch.Tensor) -> Iterator[Storage]:
        for part in self._parts(tensor):
            storage = self._storage_of(part)
            if storage is not None and storage._cdata in self._living:
                yield self._recording.storages[self._living[storage._cdata][0]]

    def _mark(self, tensor: torch.Tensor, kind: StorageClass) -> None:
        for storage in self._known(tensor):
            storage.mark(kind)

    def _saw_gradient(self, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            self._add(parameter.grad)
            self._mark(parameter.grad, StorageClass.GRADIENT)

    @contextmanager
    def _saved_tensors(self) -> Iterator[None]:
        """Watch what autograd saves. torch.func allows no such hooks: they are taken off while it works."""

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            for storage in self._known(tensor):
                if storage.is_input:
                    continue
                storage.mark(StorageClass.ACTIVATION)
                # What a recomputation saves is gone again within the node that asked for it.
                if storage.saved_at is None and not self._where.recomputing:
                    storage.saved_at = self._where.node
            # A packed output would keep its own graph alive; its detached twin shares the storage only.
            return tensor.detach()

        graph: Any = torch.autograd.graph
        disable = graph.disable_saved_tensors_hooks
        hooks = graph.saved_tensors_hooks(pack, _unpack)
        taken_off = 0

        @contextmanager
        def disabled(message: str) -> Iterator[None]:
            nonlocal taken_off
            self._recording.hooked = False
            if not taken_off:
                hooks.__exit__()
            taken_off += 1
            try:
                with disable(message):
                    yield
            finally:
                taken_off -= 1
                if not taken_off:
                    hooks.__enter__()

        hooks.__enter__()
        graph.disable_saved_tensors_hooks = disabled
        try:
            yield
        finally:
            graph.disable_saved_tensors_hooks = disable
            hooks.__exit__()

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._add(result)
        else:
            for value in tree_iter(result):
                if isinstance(value, torch.Tensor):
                    self._add(value)
        if self._where.loading_data:
            # A loader takes samples one by one: as one operation, so that the number of them does not tell the size.
            self._loading_peak = max(self._loading_peak or 0, self._live)
        else:
            if self._loading_peak is not None:
                self._recording.operations.append(self._loading_peak)
                self._loading_peak = None
            self._recording.operations.append(self._live)
        return result


def _unpack(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@contextmanager
def _gradient_hooks(parameters: Iterable[torch.nn.Parameter], saw: Callable[[torch.Tensor], None]) -> Iterator[None]:
    leaves: list[Any] = [parameter for parameter in parameters if parameter.requires_grad and parameter.is_leaf]
    handles = [leaf.register_post_accumulate_grad_hook(saw) for leaf in leaves]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _living_tensors() -> Iterator[torch.Tensor]:
    """Every tensor that Python holds. `type`, not `isinstance`: proxies run code of their own when asked."""
    for candidate in gc.get_objects():
        if issubclass(type(candidate), torch.Tensor):
            yield candidate
            gradient = candidate.grad if candidate.is_leaf else None
            if gradient is not None:
                yield gradient
