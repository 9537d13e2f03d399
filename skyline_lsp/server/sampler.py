"""What a run at another batch size has shown: a sample, the end of memory, or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass

from skyline_lsp.protocol import Failure, FailureKind, Sample
from skyline_lsp.source import Site

Place = Callable[[str, int], str]
"""(path, line) -> how a user is told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a run at a batch size has shown."""

    sample: Sample | None = None
    """None where the run gave none that counts."""
    out_of_memory: bool = False
    site_works: bool | None = None
    """Whether the value of the site decides the batch that the model is fed; None where that was not tried."""
    remark: str | None = None
    """Why there is no sample, a sentence; None where there is one or memory ran out."""


def shown(
    batch_size: int, sample: Sample | None, failure: Failure | None, *, set_at: Site | None, place: Place
) -> Shown:
    """Judge a run at `batch_size`, which was set at `set_at`; None where a provider was called with it."""
    if sample is not None and set_at is not None and sample.batch_size != batch_size:
        return Shown(
            site_works=False,
            remark=(
                f"With {set_at.name} set to {batch_size} the model was still fed {sample.batch_size}: the batch size "
                f"is not decided at {place(set_at.path, set_at.line)}."
            ),
        )
    if sample is not None:
        return Shown(sample=sample, site_works=True if set_at is not None else None)
    if failure is None:
        return Shown(remark=f"Batch size {batch_size} could not be measured.")
    if failure.kind is FailureKind.OUT_OF_MEMORY:
        return Shown(out_of_memory=True)
    where = f" ({place(failure.frames[-1].path, failure.frames[-1].line)})" if failure.frames else ""
    return Shown(remark=f"The program does not run at batch size {batch_size}{where}: {failure.message}")
