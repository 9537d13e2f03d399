"""Commands that lenses, actions and hints carry: their names and their arguments, as the server registers them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None

PROFILE = "skyline.profile"
"""{path, batchSize?}: profile the training step that belongs to the file."""
CANCEL = "skyline.cancel"
"""{path}: end the run under way."""
CLEAR = "skyline.clear"
"""{path}: forget the results."""
PREDICT = "skyline.predict"
"""{path, batchSize}: what another batch size would do; measures more batch sizes where none are known."""
SET_BATCH_SIZE = "skyline.setBatchSize"
"""{path, batchSize?, site: {path, line}, choices?}: edit the source; without batchSize, ask which of `choices`."""
CHOOSE_WORKLOAD = "skyline.chooseWorkload"
"""{}: ask what to profile."""
STATUS = "skyline.status"
"""{path}: the state as JSON."""
SHOW = "skyline.show"
"""{path, line}: put the editor's cursor there."""
RETUNE = "skyline.retune"
"""{path, goal: "throughput", "memory", "maxThroughput" or "fit", value?}: write the batch size that a wish asks for."""
PREVIEW = "skyline.preview"
"""{path, batchSize}: show everything as it would be at another batch size."""
ESTIMATE = "skyline.estimate"
"""{path, device?, batchSize?}: whether it fits a device that isn't here, and how fast it is there; without device, ask
which."""
OPEN_PANEL = "skyline.openPanel"
"""{path}: open the interactive page."""
CLEAR_PREVIEW = "skyline.clearPreview"
"""{path}: show measured numbers again."""
MEASURE_ADVICE = "skyline.measureAdvice"
"""{path, code, autocast}: run the program as it is and as advised, and show what both take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something the user can start with a click."""

    title: str
    name: str
    """One of this module's constants."""
    arguments: tuple[JSON, ...] = ()
    """At most one JSON object. Files are absolute paths under "path"; the server adds a "uri" beside each."""
    tooltip: str | None = None


def command(title: str, name: str, tooltip: str | None = None, **arguments: Any) -> Command:
    """A command with one JSON object of arguments, those that are None left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    return Command(title=title, name=name, arguments=(given,) if given else (), tooltip=tooltip)
