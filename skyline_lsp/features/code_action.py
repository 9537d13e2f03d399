"""Actions at the batch size and at what is profiled. They work in every editor, so everything is reachable here."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from skyline_lsp.features import command as commands
from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.features.advice.fixes import edit_of, ignoring
from skyline_lsp.features.batch_sizes import Choice, choices, edit_to, effect, size_to_measure
from skyline_lsp.features.command import Command, command
from skyline_lsp.features.diagnostic import Diagnostic, Severity, diagnostics
from skyline_lsp.features.elsewhere import elsewhere, short_name, shown_batch_size
from skyline_lsp.features.snapshot import Snapshot, State
from skyline_lsp.protocol import FailureKind, RemarkKind
from skyline_lsp.source import Edit, Site


class ActionKind(str, Enum):
    """As the language server protocol names them."""

    QUICK_FIX = "quickfix"
    REWRITE = "refactor.rewrite"
    SOURCE = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something the user can do at a line: an edit or a command."""

    title: str
    kind: ActionKind
    edit: Edit | None = None
    command: Command | None = None
    preferred: bool = False
    """Whether it is the fix that an editor's "fix it" key takes."""
    fixes: Diagnostic | None = None
    """The diagnostic that it mends."""


def code_actions(snapshot: Snapshot, first_line: int, last_line: int) -> tuple[Action, ...]:
    """What can be done on the lines from `first_line` to `last_line`, the most specific first."""
    lines = range(first_line, last_line + 1)
    at_entry = any(line in lines for line in snapshot.entry_lines())
    here = [site for site in snapshot.sites if site.path == snapshot.path and site.line in lines]
    actions: list[Action] = []
    for diagnostic in diagnostics(snapshot):
        if diagnostic.path == snapshot.path and diagnostic.line in lines:
            actions += _fixes(snapshot, diagnostic) or _advised(snapshot, diagnostic)
    site = _site_to_edit(snapshot, here, at_entry)
    if site is not None:
        actions += _edits(snapshot, site)
    if here or at_entry:
        actions += _predictions(snapshot, site)
        actions += _devices(snapshot)
    if here or at_entry or _belongs(snapshot):
        if snapshot.site is not None and snapshot.site not in here:
            actions.append(_go_to(snapshot, snapshot.site))
        actions += _runs(snapshot, fixing=bool(actions) and actions[0].kind is ActionKind.QUICK_FIX)
    if at_entry:
        choose = command("Choose what to profile", commands.CHOOSE_WORKLOAD)
        actions.append(Action(title=choose.title, kind=ActionKind.SOURCE, command=choose))
    return tuple(actions)


def _site_to_edit(snapshot: Snapshot, here: Sequence[Site], at_entry: bool) -> Site | None:
    """The line's own site, so that the user can change one that isn't ranked first; else the workload's."""
    own = next((site for site in here if site.editable and not site.evaluation), None)
    if own is not None:
        return own
    reachable = at_entry or any(not site.evaluation for site in here)
    return snapshot.site if reachable else None


def _edits(snapshot: Snapshot, site: Site) -> list[Action]:
    actions = []
    if snapshot.preview is not None:
        edit = edit_to(site, snapshot.preview.batch_size)
        if edit is not None:
            title = f"Set batch size to {snapshot.preview.batch_size}, as previewed"
            actions.append(Action(title=title, kind=ActionKind.REWRITE, edit=edit, preferred=True))
    for choice in choices(snapshot, site):
        edit = edit_to(site, choice.batch_size)
        previewed = snapshot.preview is not None and snapshot.preview.batch_size == choice.batch_size
        # A size that is predicted not to fit is no use to anyone; the hover says so.
        if edit is None or previewed or (choice.prediction is not None and choice.prediction.fits is False):
            continue
        actions.append(Action(title=_set_title(snapshot, site, choice), kind=ActionKind.REWRITE, edit=edit))
    return actions


def _set_title(snapshot: Snapshot, site: Site, choice: Choice) -> str:
    told = effect(snapshot, choice) if site == snapshot.site else ""
    return f"Set batch size to {choice.batch_size}" + (f": {told}" if told else "")


def _predictions(snapshot: Snapshot, site: Site | None) -> list[Action]:
    actions = []
    if snapshot.preview is not None:
        clear = command("Clear the preview", commands.CLEAR_PREVIEW, path=snapshot.path)
        actions.append(Action(title=clear.title, kind=ActionKind.SOURCE, command=clear))
    elif site is not None and site == snapshot.site:
        best = min(
            (choice for choice in choices(snapshot, site) if choice.prediction is not None),
            key=lambda choice: choice.usefulness,
            default=None,
        )
        if best is not None:
            title = f"Preview batch size {best.batch_size}"
            preview = command(title, commands.PREVIEW, path=snapshot.path, batchSize=best.batch_size)
            actions.append(Action(title=title, kind=ActionKind.SOURCE, command=preview))
    size = size_to_measure(snapshot, site) if site is not None else None
    if size is not None and snapshot.state is not State.RUNNING:
        predict = command("Predict other batch sizes", commands.PREDICT, path=snapshot.path, batchSize=size)
        actions.append(Action(title=predict.title, kind=ActionKind.SOURCE, command=predict))
    return actions


def _devices(snapshot: Snapshot) -> list[Action]:
    """Asking whether the shown batch size fits devices that aren't here."""
    batch_size = shown_batch_size(snapshot)
    if batch_size is None or snapshot.state is State.RUNNING:
        return []
    known = {there.device.name for there in elsewhere(snapshot, batch_size)}
    asked: list[tuple[str, str | None]] = [
        (f"Find out whether batch size {batch_size} fits {short_name(device)}", device.name)
        for device in snapshot.devices
        if device.name not in known
    ]
    asked.append((f"Find out whether batch size {batch_size} fits another device", None))
    commanded = [
        command(title, commands.ESTIMATE, path=snapshot.path, device=name, batchSize=batch_size, show=True)
        for title, name in asked
    ]
    return [Action(title=item.title, kind=ActionKind.SOURCE, command=item) for item in commanded]


def _go_to(snapshot: Snapshot, site: Site) -> Action:
    title = f"Go to the batch size ({snapshot.relative(site.path)}:{site.line})"
    show = command(title, commands.SHOW, path=site.path, line=site.line)
    return Action(title=title, kind=ActionKind.SOURCE, command=show)


def _runs(snapshot: Snapshot, fixing: bool) -> list[Action]:
    """Commands about the run; where a fix is offered, "profile again" is among its actions."""
    found: list[Command] = []
    if snapshot.state is State.RUNNING:
        found.append(command("Cancel profiling", commands.CANCEL, path=snapshot.path))
    elif not fixing:
        again = snapshot.profile is not None or snapshot.failure is not None
        title = "Profile this training step again" if again else "Profile this training step"
        found.append(command(title, commands.PROFILE, path=snapshot.path))
    if snapshot.profile is not None:
        found.append(command("Open the interactive page", commands.OPEN_PANEL, path=snapshot.path))
        found.append(command("Clear the profile", commands.CLEAR, path=snapshot.path))
    return [Action(title=item.title, kind=ActionKind.SOURCE, command=item) for item in found]


def _belongs(snapshot: Snapshot) -> bool:
    """Whether the file is part of what is profiled, as far as is known."""
    entry = snapshot.entry
    if entry is not None and entry.path == snapshot.path:
        return True
    return snapshot.profile is not None and snapshot.relative_path in snapshot.profile.files


def _advised(snapshot: Snapshot, diagnostic: Diagnostic) -> list[Action]:
    """Following a piece of advice where that is an edit, and switching it off."""
    index = snapshot.index
    if index is None or diagnostic.severity is not Severity.INFORMATION:
        return []
    codes = {kind.value for kind in RemarkKind} | {code.value for code in AdviceCode}
    if diagnostic.code not in codes:
        return []
    actions = []
    for advice in snapshot.advice():
        if advice.path != snapshot.relative_path or advice.code.value != diagnostic.code:
            continue
        if snapshot.line_now(advice.path, advice.line) != diagnostic.line or advice.message != diagnostic.message:
            continue
        change = advice.change
        edit = edit_of(change, snapshot.path, snapshot.source, snapshot.line_of) if change is not None else None
        if change is not None and edit is not None:
            actions.append(Action(title=change.title, kind=ActionKind.QUICK_FIX, edit=edit, fixes=diagnostic))
        if advice.autocast is not None and snapshot.state is not State.RUNNING:
            title = f"Measure what {advice.autocast} gains"
            measure = command(
                title, commands.MEASURE_ADVICE, path=snapshot.path, code=advice.code.value, autocast=advice.autocast
            )
            actions.append(Action(title=title, kind=ActionKind.QUICK_FIX, command=measure, fixes=diagnostic))
    off = ignoring(diagnostic.code, diagnostic.line, snapshot.path, snapshot.source)
    if off is not None:
        title = f"Switch off {diagnostic.code} on this line"
        actions.append(Action(title=title, kind=ActionKind.QUICK_FIX, edit=off, fixes=diagnostic))
    return actions


def _fixes(snapshot: Snapshot, diagnostic: Diagnostic) -> list[Action]:
    failure = snapshot.failure
    if failure is None or diagnostic.severity is not Severity.ERROR:
        return []
    actions: list[Action] = []
    if failure.kind is FailureKind.OUT_OF_MEMORY and snapshot.site is not None:
        smaller = [
            choice for choice in choices(snapshot, snapshot.site) if choice.batch_size < snapshot.site.batch_size
        ]
        for choice in reversed(smaller):
            edit = edit_to(snapshot.site, choice.batch_size)
            if edit is not None and (choice.prediction is None or choice.prediction.fits is not False):
                actions.append(
                    Action(
                        title=_set_title(snapshot, snapshot.site, choice),
                        kind=ActionKind.QUICK_FIX,
                        edit=edit,
                        preferred=not actions,
                        fixes=diagnostic,
                    )
                )
    again = command("Profile again", commands.PROFILE, path=snapshot.path)
    actions.append(Action(title=again.title, kind=ActionKind.QUICK_FIX, command=again, fixes=diagnostic))
    return actions
