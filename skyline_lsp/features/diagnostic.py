"""Diagnostics: why a run failed, at the user's line, and a summary when a profile is there.

Not every editor refreshes hints, but every editor shows diagnostics when they are pushed.
"""

import enum
from dataclasses import dataclass

from skyline_lsp.features.snapshot import Snapshot, State, absolute_path
from skyline_lsp.features.summary import headline_parts, hottest_lines
from skyline_lsp.features.units import format_percent
from skyline_lsp.protocol import Failure, FailureKind, Profile
from skyline_lsp.source import EntryPoint, Providers

SUMMARY = "profile"
"""Code of the diagnostic that sums up a profile."""
REMARK = "profile_remark"
"""Code of a remark on how far to trust a profile's numbers."""


class Severity(str, enum.Enum):
    """As the language server protocol has them."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another place that belongs to a diagnostic."""

    path: str
    """Absolute."""
    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A message at a line."""

    path: str
    """Absolute; not always the snapshot's file."""
    line: int
    """1-based."""
    column: int | None
    """0-based, in code points; None where the line's text is not at hand: take the whole line."""
    end_column: int | None
    severity: Severity
    code: str
    """Of a failure, its kind."""
    message: str
    related: tuple[Related, ...] = ()


def diagnostics(snapshot: Snapshot) -> tuple[Diagnostic, ...]:
    """Every diagnostic of the workload, in all its files; the same from whichever of them the snapshot is."""
    found: list[Diagnostic] = []
    if snapshot.failure is not None and snapshot.state is State.FAILED:
        found += _failure(snapshot, snapshot.failure)
    elif snapshot.entry is not None:
        found += _missing_providers(snapshot, snapshot.entry)
    if snapshot.profile is not None and snapshot.state in (State.READY, State.STALE):
        found += _summary(snapshot, snapshot.profile)
        found += _remarks(snapshot)
    return tuple(found)


def _failure(snapshot: Snapshot, failure: Failure) -> list[Diagnostic]:
    """One error where it happened, and in the profiled file, where that is another one, a pointer to it."""
    message = failure.message.strip() or "Profiling failed."
    related = tuple(
        Related(path=frame.path, line=snapshot.line_of_frame(frame), message=f"called from {frame.function}")
        for frame in reversed(failure.frames[:-1])
    )
    if not failure.frames:
        path, line = _fallback(snapshot)
        return [_at(snapshot, path, line, Severity.ERROR, failure.kind.value, message)]
    last = failure.frames[-1]
    found = [
        _at(
            snapshot,
            last.path,
            snapshot.line_of_frame(last),
            Severity.ERROR,
            failure.kind.value,
            message,
            related=related,
        )
    ]
    entry = snapshot.entry
    if entry is not None and entry.path != last.path:
        frame = next((frame for frame in reversed(failure.frames) if frame.path == entry.path), None)
        line = snapshot.line_of_frame(frame) if frame is not None else entry.line
        where = Related(path=last.path, line=snapshot.line_of_frame(last), message=f"it failed in {last.function}")
        text = f"Profiling failed below this line, in {snapshot.relative(last.path)}:{last.line}: {message}"
        code = failure.kind.value
        found.append(_at(snapshot, entry.path, line, Severity.INFORMATION, code, text, related=(where,)))
    return found


def _missing_providers(snapshot: Snapshot, entry: EntryPoint) -> list[Diagnostic]:
    if entry.providers is None:
        return []
    missing = missing_providers(entry.providers)
    if not missing:
        return []
    names = " and ".join(f"`{name}`" for name in missing)
    message = (
        f"This file can't be profiled yet: define {names} in it, or import {'it' if len(missing) == 1 else 'them'}."
    )
    kind = FailureKind.MISSING_PROVIDER.value
    return [_at(snapshot, entry.path, entry.line, Severity.WARNING, kind, message)]


def missing_providers(providers: Providers) -> tuple[str, ...]:
    """Signatures of the provider functions that a file does not have."""
    return tuple(
        f"{providers.prefix}_{role}_provider({parameters})"
        for role, reference, parameters in (
            ("model", providers.model, ""),
            ("input", providers.input, "batch_size=32"),
            ("iteration", providers.iteration, "model"),
        )
        if reference is None
    )


def _summary(snapshot: Snapshot, profile: Profile) -> list[Diagnostic]:
    entry = snapshot.entry
    path = entry.path if entry is not None else absolute_path(profile.workload.path, snapshot.root)
    line = entry.line if entry is not None else 1
    found = []
    if snapshot.options.summary_diagnostic:
        message = ", ".join(headline_parts(profile, snapshot.preview)) + _hottest(snapshot, profile)
        if snapshot.preview is not None:
            message = f"Predicted for batch size {snapshot.preview.batch_size}: {message}"
        elif snapshot.outdated:
            message = f"Before the last changes: {message}"
        found.append(_at(snapshot, path, line, Severity.INFORMATION, SUMMARY, message))
    found += [_at(snapshot, path, line, Severity.HINT, REMARK, warning) for warning in profile.warnings]
    return found


def _remarks(snapshot: Snapshot) -> list[Diagnostic]:
    """What was seen at lines of the project, and advice; in this file, lines that were edited since have none."""
    assert snapshot.index is not None
    remarks = [(one.path, one.line, one.kind.value, one.message) for one in snapshot.index.remarks]
    advice = [(one.path, one.line, one.code.value, one.message) for one in snapshot.advice()]
    found = []
    for path, profiled_line, code, message in (*remarks, *advice):
        line = snapshot.line_now(path, profiled_line)
        if line is not None and code not in snapshot.options.advice_disabled:
            where = absolute_path(path, snapshot.root)
            found.append(_at(snapshot, where, line, Severity.INFORMATION, code, message))
    return found


def _hottest(snapshot: Snapshot, profile: Profile, most: int = 3) -> str:
    assert snapshot.index is not None
    whole = profile.iteration.run_time_ms
    lines = hottest_lines(snapshot.index, most, least_percent=1.0)
    if not lines:
        return ""
    shares = (
        f"{cost.path}:{cost.line} {format_percent(100 * (cost.self_forward_ms + cost.self_backward_ms) / whole)}"
        for cost in lines
    )
    return f"; hottest lines: {', '.join(shares)}"


def _fallback(snapshot: Snapshot) -> tuple[str, int]:
    if snapshot.entry is not None:
        return snapshot.entry.path, snapshot.entry.line
    return snapshot.path, 1


def _at(
    snapshot: Snapshot,
    path: str,
    line: int,
    severity: Severity,
    code: str,
    message: str,
    related: tuple[Related, ...] = (),
) -> Diagnostic:
    column = end_column = None
    if path == snapshot.path and 1 <= line <= snapshot.line_count:
        text = snapshot.source.lines[line - 1]
        end_column = len(text.rstrip())
        column = min(len(text) - len(text.lstrip()), end_column)
    return Diagnostic(
        path=path,
        line=line,
        column=column,
        end_column=end_column,
        severity=severity,
        code=code,
        message=message,
        related=related,
    )
