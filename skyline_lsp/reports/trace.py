"""One traced iteration as trace events, as Perfetto and chrome://tracing read them.

Follows the Trace Event Format (Google, "Trace Event Format", JSON object form): complete events ("X") in microseconds,
nested by time within one track; metadata events ("M") that name the tracks; counter events ("C") for memory.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skyline_lsp.protocol import CallNode, Pass, Profile, Segment
from skyline_lsp.reports.report import Report

_HEAD = '{"displayTimeUnit": "ms", "otherData": {"generator": "skyline-lsp", '
_PROCESS, _MEMORY_PROCESS = 1, 2
_TRACKS = {Pass.FORWARD: 1, Pass.BACKWARD: 2, Pass.RECOMPUTE: 2}
_NO_LINE = "no project line"

Event = dict[str, Any]


@dataclass(slots=True)
class Span:
    """A stretch of time during which a line, or what it called, was at work."""

    node: int
    """Index in `Profile.tree`; -1 for time of no project line."""
    kind: Pass
    start_ns: int
    end_ns: int
    self_ns: int = 0
    """Spent at the line itself."""


def spans(tree: Sequence[CallNode], segments: Iterable[Segment]) -> tuple[Span, ...]:
    """The calls of an iteration, callers before what they call.

    Segments that follow each other in one pass share the spans of the callers that they have in common. A pass that
    comes in between ends them: a span of the forward track holds no backward time.
    """
    chains: list[tuple[int, ...]] = []
    for at, call in enumerate(tree):
        chains.append((*chains[call.parent], at) if call.parent >= 0 else (at,))
    found: list[Span] = []
    open_spans: list[Span] = []
    end = 0
    for segment in sorted(segments, key=lambda one: one.start_ms):
        # In whole nanoseconds, so that what reads the trace finds no child to end after its caller by a rounding.
        start = max(end, round(segment.start_ms * 1e6))
        end = max(start, round((segment.start_ms + segment.duration_ms) * 1e6))
        if start == end:
            continue
        chain = chains[segment.node] if segment.node >= 0 else (-1,)
        kept = _common(open_spans, chain, segment.kind)
        del open_spans[kept:]
        for span in open_spans:
            span.end_ns = end
        for node in chain[kept:]:
            open_spans.append(Span(node=node, kind=segment.kind, start_ns=start, end_ns=end))
            found.append(open_spans[-1])
        open_spans[-1].self_ns += end - start
    return tuple(found)


def trace_events(report: Report) -> tuple[Event, ...]:
    """The events of the traced iteration, and of its memory where that was recorded."""
    profile = report.profile
    found = spans(profile.tree, profile.segments)
    return (
        *_names(profile),
        *(_complete_event(report, span) for span in found),
        *_counters(profile, max((span.end_ns for span in found), default=0)),
    )


def to_trace(report: Report) -> str:
    """The trace as the text of a JSON file, in ASCII."""
    profile = report.profile
    about = {
        "program": profile.workload.path,
        "device": profile.device.name or profile.device.kind,
        "batch_size": profile.batch_size,
        "plain_iteration_ms": profile.iteration.run_time_ms,
        "slowdown": profile.slowdown,
        "torch_version": profile.torch_version,
    }
    events = ",\n".join(json.dumps(event) for event in trace_events(report))
    return f'{_HEAD}{json.dumps(about)[1:]},\n"traceEvents": [\n{events}\n]}}\n'


def recognise_trace(head: bytes) -> bool:
    """Whether a file that begins so is a trace that this module wrote."""
    return head.startswith(_HEAD.encode("ascii"))


def _common(open_spans: Sequence[Span], chain: Sequence[int], kind: Pass) -> int:
    common = 0
    for span, node in zip(open_spans, chain, strict=False):
        if span.node != node or span.kind is not kind:
            break
        common += 1
    return common


def _names(profile: Profile) -> Iterator[Event]:
    device = profile.device.name or profile.device.kind
    yield _name(_PROCESS, 0, "process_name", f"{profile.workload.path} on {device}")
    yield _name(_PROCESS, _TRACKS[Pass.FORWARD], "thread_name", "forward")
    yield _name(_PROCESS, _TRACKS[Pass.BACKWARD], "thread_name", "backward")
    for track in (_TRACKS[Pass.FORWARD], _TRACKS[Pass.BACKWARD]):
        yield {
            "ph": "M",
            "pid": _PROCESS,
            "tid": track,
            "ts": 0,
            "name": "thread_sort_index",
            "args": {"sort_index": track},
        }
    if profile.timeline:
        yield _name(_MEMORY_PROCESS, 0, "process_name", "memory, recorded in an iteration of its own")


def _name(process: int, track: int, kind: str, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": track, "ts": 0, "name": kind, "args": {"name": name}}


def _complete_event(report: Report, span: Span) -> Event:
    event: Event = {
        "ph": "X",
        "pid": _PROCESS,
        "tid": _TRACKS[span.kind],
        "ts": span.start_ns / 1000,
        "dur": (span.end_ns - span.start_ns) / 1000,
        "cat": span.kind.value,
    }
    if span.node < 0:
        return event | {"name": _NO_LINE, "args": {"self_ms": span.self_ns / 1e6}}
    node = report.profile.tree[span.node]
    place = f"{node.path}:{node.line}"
    arguments = {
        "place": place,
        "path": node.path,
        "line": node.line,
        "function": node.function,
        "module": node.module,
        "source": report.source_line(node.path, node.line) or None,
        "label": node.label,
        "self_ms": span.self_ns / 1e6,
    }
    again = " (recomputed)" if span.kind is Pass.RECOMPUTE else ""
    return event | {
        "name": f"{place} {node.module or node.function}{again}",
        "args": {name: value for name, value in arguments.items() if value is not None},
    }


def _counters(profile: Profile, trace_ns: int) -> Iterator[Event]:
    """Memory was recorded in a slower iteration: its times are stretched evenly to those of the traced one."""
    last_ms = max((event.time_ms for event in profile.timeline), default=0.0)
    factor = trace_ns / 1e6 / last_ms if last_ms > 0 and trace_ns > 0 else 1.0
    for event in profile.timeline:
        yield {
            "ph": "C",
            "pid": _MEMORY_PROCESS,
            "tid": 0,
            "ts": round(event.time_ms * factor * 1e6) / 1000,
            "name": "live memory",
            "args": {"bytes": event.live_bytes},
        }
