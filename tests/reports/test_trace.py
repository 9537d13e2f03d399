"""Traces: callers span what they call, nothing is lost, and readers of the format accept it."""

import json
from typing import Any

from skyline_lsp.protocol import MemoryEvent, Pass, Profile, Segment
from skyline_lsp.reports import Report, to_trace
from tests.features.building import STEP, profile_of

FORWARD, BACKWARD, RECOMPUTE = Pass.FORWARD, Pass.BACKWARD, Pass.RECOMPUTE


def profile_with(*segments: tuple[int, Pass, float, float], **changes: Any) -> Profile:
    """The profile of `STEP`, its nodes 0 to 5 in the order of the drawing, traced as these segments."""
    traced = tuple(Segment(node=n, kind=kind, start_ms=start, duration_ms=ms) for n, kind, start, ms in segments)
    return profile_of(STEP, segments=traced, **changes)


def events_of(profile: Profile, **sources: str) -> list[dict[str, Any]]:
    """What a reader finds in the file."""
    trace = json.loads(to_trace(Report(profile=profile, sources=sources)))
    events: list[dict[str, Any]] = trace["traceEvents"]
    return events


def check_flame(profile: Profile, track: str, expected: str) -> None:
    """The complete events of a track, drawn as `start-end place` in microseconds, indented by what encloses them."""
    events = events_of(profile)
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    rows, enclosing = [], []
    for event in events:
        if event["ph"] != "X" or event["tid"] != tracks[track]:
            continue
        start, end = event["ts"], event["ts"] + event["dur"]
        while enclosing and enclosing[-1] <= start:
            enclosing.pop()
        assert not enclosing or end <= enclosing[-1], "an event that is neither inside nor after another"
        place = event["args"].get("place", event["name"])
        rows.append(f"{'  ' * len(enclosing)}{start:g}-{end:g} {place}")
        enclosing.append(end)
    assert rows == [row for row in expected.splitlines() if row]


def test_callers_span_what_they_call() -> None:
    """Lines that follow each other under one caller lie under one event of it; its own time stands in `self_ms`."""
    profile = profile_with((0, FORWARD, 0, 1), (2, FORWARD, 1, 2), (3, FORWARD, 3, 1), (4, FORWARD, 4, 2))
    check_flame(
        profile,
        "forward",
        """
0-6000 train.py:11
  1000-4000 net.py:6
    1000-3000 conv.py:20
    3000-4000 conv.py:21
  4000-6000 net.py:7
""",
    )
    caller = next(e for e in events_of(profile) if e["ph"] == "X")
    assert caller["args"]["self_ms"] == 1


def test_backward_has_a_track_of_its_own_and_interrupts_the_forward_one() -> None:
    """Backward time lies under the lines whose forward made it, and in no forward event."""
    profile = profile_with((0, FORWARD, 0, 1), (4, BACKWARD, 1, 2), (2, BACKWARD, 3, 1), (0, FORWARD, 4, 1))
    check_flame(profile, "forward", "0-1000 train.py:11\n4000-5000 train.py:11")
    check_flame(
        profile,
        "backward",
        """
1000-4000 train.py:11
  1000-3000 net.py:7
  3000-4000 net.py:6
    3000-4000 conv.py:20
""",
    )


def test_recomputed_forward_is_told_apart() -> None:
    """Under checkpointing a line runs again in the backward pass: there, and named so."""
    profile = profile_with((4, RECOMPUTE, 0, 1), (4, BACKWARD, 1, 1))
    check_flame(
        profile, "backward", "0-1000 train.py:11\n  0-1000 net.py:7\n1000-2000 train.py:11\n  1000-2000 net.py:7"
    )
    assert [e["cat"] for e in events_of(profile) if e["ph"] == "X"] == ["recompute"] * 2 + ["backward"] * 2


def test_time_of_no_project_line_is_shown() -> None:
    """It ends the lines before it, and has an event of its own."""
    profile = profile_with((0, FORWARD, 0, 1), (-1, FORWARD, 1, 1), (0, FORWARD, 2, 1))
    check_flame(profile, "forward", "0-1000 train.py:11\n1000-2000 no project line\n2000-3000 train.py:11")


def test_self_times_are_those_of_the_segments() -> None:
    """Whatever is merged: the own times of a pass's events sum to its segments, to the nanosecond."""
    times = [0.1 * (i + 1) / 7 for i in range(60)]
    starts = [sum(times[:i]) for i in range(60)]
    kinds = [BACKWARD if i % 7 > 3 else FORWARD for i in range(60)]
    profile = profile_with(*((i % 6 - (i % 13 == 0), kinds[i], starts[i], times[i]) for i in range(60)))
    for kind in (FORWARD, BACKWARD):
        own = sum(e["args"]["self_ms"] for e in events_of(profile) if e["ph"] == "X" and e["cat"] == kind.value)
        assert abs(own - sum(t for t, k in zip(times, kinds, strict=True) if k is kind)) < 60e-6
    check_nested(events_of(profile))


def check_nested(events: list[dict[str, Any]]) -> None:
    """On each track, two events lie one inside the other or apart, read in whole nanoseconds."""
    for track in (1, 2):
        enclosing: list[int] = []
        for event in events:
            if event["ph"] == "X" and event["tid"] == track:
                start = round(event["ts"] * 1000)
                end = start + round(event["dur"] * 1000)
                while enclosing and enclosing[-1] <= start:
                    enclosing.pop()
                assert not enclosing or end <= enclosing[-1]
                enclosing.append(end)


def test_events_say_where_they_are() -> None:
    """The name is the line, the arguments its path, number and text."""
    profile = profile_with((4, FORWARD, 0, 1))
    sources = {"net.py": "\n" * 6 + "    return self.head(x)\n"}
    report = Report(profile=profile, sources=sources)
    event = [e for e in json.loads(to_trace(report))["traceEvents"] if e["ph"] == "X"][1]
    assert event["name"] == "net.py:7 Net.forward"
    assert event["args"].items() >= {"path": "net.py", "line": 7, "source": "return self.head(x)"}.items()


def test_memory_is_a_counter_over_the_same_time() -> None:
    """Its iteration was another, slower one: its end is stretched to the end of the trace."""
    timeline = (MemoryEvent(time_ms=10, live_bytes=5), MemoryEvent(time_ms=20, live_bytes=9))
    events = events_of(profile_with((0, FORWARD, 0, 4), timeline=timeline))
    counters = [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert counters == [(2000, 5), (4000, 9)]
