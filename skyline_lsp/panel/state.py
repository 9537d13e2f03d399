"""What the page shows at one moment, and what it may ask of the program that owns it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skyline_lsp.features import State
from skyline_lsp.prediction import Model, Prediction
from skyline_lsp.protocol import Profile

_LONGEST_TEXT = 160
"""Characters of a line that are shown: labels have no room for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSite:
    """A place where the batch size is written. Paths are relative to the root, as in a profile."""

    path: str
    line: int
    """1-based."""
    name: str
    """What the user calls it: "BATCH_SIZE", "--batch-size"."""
    value: int
    """The batch size that it gives."""
    editable: bool
    reason: str
    """Why this is the site, or why it can't be edited, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelFailure:
    """Why the last run gave nothing."""

    message: str
    path: str | None = None
    """Where it happened: relative to the root; None where not known."""
    line: int | None = None
    """1-based."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """The figures of one past profile."""

    measured_at: str
    """ISO 8601, UTC."""
    batch_size: int | None
    run_time_ms: float
    spread_ms: float
    samples_per_second: float
    peak_bytes: int
    device_name: str
    predicted: Prediction | None = None
    """What had been predicted for it before it ran; None where nothing had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something that would make the step cheaper, and what was measured of it."""

    code: str
    """Its diagnostic code, such as "graph-break"."""
    message: str
    path: str | None = None
    """Relative to the root."""
    line: int | None = None
    """1-based."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelState:
    """Everything the page shows. A new one is made for every change.

    Keep `profile`, `texts` and `model` the same objects while they are the same: what is made from them is large, and
    made anew when one of them is another object.
    """

    project: str
    """The project's name, for the heading."""
    workload: str | None = None
    """Entry file, relative to the root; None while there is nothing to profile."""
    state: State = State.IDLE
    progress: str | None = None
    """What a run is busy with."""
    fraction: float | None = None
    """How far it is, 0 to 1; None where not known."""
    failure: PanelFailure | None = None
    profile: Profile | None = None
    outdated: bool = False
    """Whether the source has changed since `profile` was measured."""
    texts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Path as in the profile -> line -> its text when it was profiled, for labels (`line_texts` makes it)."""
    model: Model | None = None
    batch_size: int | None = None
    """As the source says it now; None where it doesn't."""
    sites: tuple[PanelSite, ...] = ()
    """In rank order; the first editable one is what `PanelHost.apply` edits."""
    no_site_reason: str | None = None
    """Why the batch size can't be written, where it can't."""
    history: tuple[HistoryEntry, ...] = ()
    """Oldest first."""
    advice: tuple[Advice, ...] = ()


def line_texts(profile: Profile, lines_of: Callable[[str], Sequence[str] | None]) -> Mapping[str, Mapping[int, str]]:
    """Texts of the profile's lines, for `PanelState.texts`.

    `lines_of` gives a file's lines as they were profiled, by its path in the profile; None where they are not known.
    """
    texts: dict[str, dict[int, str]] = {}
    sources: dict[str, Sequence[str]] = {}
    for node in profile.tree:
        if node.path not in sources:
            sources[node.path] = lines_of(node.path) or ()
        if 1 <= node.line <= len(sources[node.path]):
            text = sources[node.path][node.line - 1].strip()[:_LONGEST_TEXT]
            texts.setdefault(node.path, {})[node.line] = text
    return texts


class PanelHost(Protocol):
    """The owner of the page's data. Called in the event loop that runs the page's server.

    Paths are those of the state: relative to the root, with forward slashes. Lines are those of the profile, 1-based;
    the host knows where they have moved.
    """

    def state(self) -> PanelState:
        """What to show now. Cheap: it is called after every `notify` and for every page that connects."""

    async def predict(self, batch_size: int) -> Prediction | None:
        """What a batch size would do. Without a model it is measured for; None where it can't be told."""

    async def apply(self, batch_size: int) -> str | None:
        """Write the batch size into the source through the editor: None when done, else why not, for the user."""

    async def reveal(self, path: str, line: int) -> None:
        """Show the line in the editor, leaving the keyboard's focus where it is if the editor can."""

    async def profile(self) -> None:
        """Start a run of the workload; it need not wait for its end."""

    async def cancel(self) -> None:
        """End the run under way."""
