"""What was seen while an iteration ran, beside its costs: what advice is drawn from. Plain, frozen data.

Paths are relative to the project's root, with forward slashes; lines count from 1; numbers are per iteration.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A matrix product or a convolution, those of one line with the same shapes taken together."""

    node: int
    """Index in `Profile.tree`."""
    operation: str
    """torch's name of it, such as "addmm", "convolution", "convolution_backward"."""
    shapes: tuple[tuple[int, ...], ...]
    """Of its tensor arguments, in their order."""
    result: tuple[int, ...]
    """Shape of its first result; empty for one without a shape."""
    dtype: str
    """Data type of its first argument, such as "float32"."""
    channels_last: bool
    """Whether its first argument lies in memory with the channels last."""
    count: int
    flop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderUse:
    """A data loader that the iteration takes a batch from."""

    path: str
    line: int
    """The line that takes the batch."""
    workers: int
    """Processes that load; 0 where the program loads by itself."""
    pinned: bool
    """Whether batches come in memory that an accelerator can copy from by itself."""
    run_time_ms: float
    """How long the program waited for a batch."""
    processors: int
    """How many the program may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerUse:
    """An optimizer that the iteration steps."""

    path: str
    line: int
    """The line that steps."""
    name: str
    """Its class, such as "AdamW"; with its module where it is none of torch's."""
    steps: int
    """Of an iteration."""
    parameters: int
    """How many tensors it updates."""
    parameter_bytes: int
    state_bytes: int
    """Of the tensors that it keeps, one-element ones left out."""
    fused: bool
    foreach: bool
    can_fuse: bool
    """Whether this torch has a fused form of it for these parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafGradient:
    """A tensor, neither a parameter of a module nor any optimizer's, that a backward pass gave a gradient."""

    path: str
    line: int
    """The line that used it."""
    shape: tuple[int, ...]
    gradient_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTrial:
    """One of the iteration's convolutions, forward and backward, tried by itself in both memory layouts."""

    input_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    dtype: str
    count: int
    """How many times the iteration has it."""
    contiguous_ms: float
    """Once, with the channels first: median of the rounds."""
    channels_last_ms: float
    """Once, with the channels last: median of the rounds."""
    rounds: int
    """In each, both were tried one after the other."""
    rounds_won: int
    """By the channels last."""
