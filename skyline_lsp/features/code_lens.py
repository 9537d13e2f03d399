"""Lenses: the iteration's figures above what is profiled, the batch size and its alternatives above its literal."""

from dataclasses import dataclass

from skyline_lsp.features import command as commands
from skyline_lsp.features.batch_sizes import Choice, choices, effect, size_to_measure
from skyline_lsp.features.command import JSON, Command, command
from skyline_lsp.features.cost import mark
from skyline_lsp.features.elsewhere import device_sentence, elsewhere, lens_title, short_name, shown_batch_size
from skyline_lsp.features.snapshot import Snapshot, State
from skyline_lsp.features.summary import headline_parts
from skyline_lsp.source import Site

_MOST_CHOICES = 3
"""Lenses of other batch sizes: a line has no room for more; hover and actions have them all."""
_MOST_DEVICES = 3
_LONGEST_MESSAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """A clickable remark above a line."""

    line: int
    command: Command


def code_lenses(snapshot: Snapshot) -> tuple[Lens, ...]:
    """Lenses of the file, by line, and on a line from left to right."""
    if not snapshot.options.lenses_enabled:
        return ()
    lenses: list[Lens] = []
    entry_lines = snapshot.entry_lines()
    if entry_lines:
        lenses += [Lens(line=entry_lines[0], command=item) for item in _whole(snapshot)]
    site = snapshot.site
    if site is not None and site.path == snapshot.path and 1 <= site.line <= snapshot.line_count:
        lenses += [Lens(line=site.line, command=item) for item in _batch_size(snapshot, site)]
    elif site is not None and entry_lines:
        title = f"batch size {site.batch_size} ({snapshot.relative(site.path)}:{site.line})"
        show = command(title, commands.SHOW, "Go to where the batch size is written", path=site.path, line=site.line)
        lenses.append(Lens(line=entry_lines[0], command=show))
    return tuple(sorted(lenses, key=lambda lens: lens.line))


def _whole(snapshot: Snapshot) -> list[Command]:
    path = snapshot.path
    profile = snapshot.profile
    figures = ""
    if profile is not None:
        figures = mark(snapshot) + " | ".join(headline_parts(profile, snapshot.preview))
    if snapshot.state is State.RUNNING:
        title = f"Profiling: {snapshot.progress or 'starting'} (cancel)"
        return [command(f"{title} | {figures}" if figures else title, commands.CANCEL, "End this run", path=path)]
    if snapshot.state is State.FAILED:
        return _failed(snapshot)
    if profile is None:
        tooltip = "Run one training step of this program and show what each line costs"
        return [command("Profile this training step", commands.PROFILE, tooltip, path=path)]
    if snapshot.preview is not None:
        return [command(f"{figures} | clear preview", commands.CLEAR_PREVIEW, "Show measured numbers again", path=path)]
    tooltip = "The source has changed since; profile it again" if snapshot.outdated else "Profile it again"
    return [command(f"{figures} | profile again", commands.PROFILE, tooltip, path=path)]


def _failed(snapshot: Snapshot) -> list[Command]:
    failure = snapshot.failure
    again = command("profile again", commands.PROFILE, path=snapshot.path)
    if failure is None:
        return [command("Profiling failed | profile again", commands.PROFILE, path=snapshot.path)]
    title = f"Profiling failed: {_first_sentence(failure.message)} (show)"
    if failure.frames:
        frame = failure.frames[-1]
        return [
            command(title, commands.SHOW, failure.message, path=frame.path, line=snapshot.line_of_frame(frame)),
            again,
        ]
    return [command(title, commands.STATUS, failure.message, path=snapshot.path), again]


def _batch_size(snapshot: Snapshot, site: Site) -> list[Command]:
    where: dict[str, JSON] = {"path": site.path, "line": site.line}
    if snapshot.preview is not None:
        title = f"batch size {site.batch_size}, shown as {snapshot.preview.batch_size} | apply"
        tooltip = f"Write batch size {snapshot.preview.batch_size} into the source"
        apply = command(
            title,
            commands.SET_BATCH_SIZE,
            tooltip,
            path=snapshot.path,
            batchSize=snapshot.preview.batch_size,
            site=where,
        )
        clear = command("clear preview", commands.CLEAR_PREVIEW, path=snapshot.path)
        return [apply, clear, *_devices(snapshot, site)]
    found = choices(snapshot, site)
    offered: list[JSON] = [
        {"batchSize": choice.batch_size, "title": _choice_title(snapshot, choice)} for choice in found
    ]
    lenses = [
        command(
            f"batch size {site.batch_size} | set...",
            commands.SET_BATCH_SIZE,
            "Choose another batch size and write it into the source",
            path=snapshot.path,
            site=where,
            choices=offered,
        )
    ]
    predicted = [choice for choice in found if choice.prediction is not None and choice.prediction.fits is not False]
    for choice in sorted(_most_useful(predicted), key=lambda choice: choice.batch_size):
        lenses.append(
            command(
                _choice_title(snapshot, choice),
                commands.SET_BATCH_SIZE,
                f"Write batch size {choice.batch_size} into the source",
                path=snapshot.path,
                batchSize=choice.batch_size,
                site=where,
            )
        )
    if snapshot.profile is not None and snapshot.state is not State.RUNNING:
        size = size_to_measure(snapshot, site)
        if size is not None:
            tooltip = "Measure a few batch sizes, and predict throughput and memory of the others from them"
            lenses.append(command("predict other sizes", commands.PREDICT, tooltip, path=snapshot.path, batchSize=size))
    return [*lenses, *_devices(snapshot, site)]


def _devices(snapshot: Snapshot, site: Site) -> list[Command]:
    """What is known of the shown batch size on devices that aren't here; a click finds it out."""
    if site != snapshot.site:
        return []
    batch_size = shown_batch_size(snapshot)
    known = {there.device.name: there for there in elsewhere(snapshot, batch_size)}
    lenses = []
    for device in snapshot.devices[:_MOST_DEVICES]:
        there = known.get(device.name)
        if there is None and snapshot.state is State.RUNNING:
            continue
        name = short_name(device)
        lenses.append(
            command(
                lens_title(there) if there is not None else f"fits {name}?",
                commands.ESTIMATE,
                device_sentence(there) if there is not None else f"Find out whether it fits {name}, without allocating",
                path=snapshot.path,
                device=device.name,
                batchSize=batch_size,
                show=True,
            )
        )
    return lenses


def _most_useful(found: list[Choice]) -> list[Choice]:
    return sorted(found, key=lambda choice: choice.usefulness)[:_MOST_CHOICES]


def _choice_title(snapshot: Snapshot, choice: Choice) -> str:
    told = effect(snapshot, choice)
    return f"{choice.batch_size}: {told}" if told else str(choice.batch_size)


def _first_sentence(message: str) -> str:
    text = " ".join(message.split())
    end = text.find(". ")
    text = text[:end] if end > 0 else text.removesuffix(".")
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."
