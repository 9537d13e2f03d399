"""What stands at the end of lines."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.features import Index, Options, Preview, State, inlay_hints
from skyline_lsp.protocol import LineCost
from skyline_lsp.source import decode
from tests.features.building import MIB, prediction_of, profile_of, snapshot_of

TREE = """
train.py:2 step 0.4 0.1
  train.py:6 forward 1.2 2.4 saved=98MiB x16
  train.py:7 forward 0.05 0.02
  train.py:8 forward 30 41 saved=10MiB
"""


def check_hints(marked: str, drawing: str = TREE, **given: Any) -> None:
    """The hints are those written after `##` at the end of the lines of `marked`."""
    lines = [line.partition("##") for line in marked.strip("\n").splitlines()]
    expected = {number: text.strip() for number, (_, _, text) in enumerate(lines, 1) if text}
    source = "\n".join(code.rstrip() for code, _, _ in lines)
    given.setdefault("profile", profile_of(drawing))
    given.setdefault("state", State.READY)
    shown = snapshot_of(source, **given)
    hints = inlay_hints(shown, 1, len(lines))
    assert {hint.line: hint.text for hint in hints} == expected
    assert [hint.line for hint in hints] == sorted(expected)


def test_costs_stand_at_their_lines() -> None:
    """A line tells its inclusive times, its share of the iteration, its activations and how often it runs."""
    check_hints("""
def step(model, x):
    loss = model(x)             ## fwd 32 ms  bwd 44 ms  75 %  108 MiB

class Net:
    def forward(self, x):
        x = self.conv(x)        ## fwd 1.2 ms  bwd 2.4 ms  3.6 %  98 MiB  x16
        x = x.view(-1)
        return self.head(x)     ## fwd 30 ms  bwd 41 ms  71 %  10 MiB
""")


def test_parts_that_are_nothing_are_left_out() -> None:
    """A part below a tenth of the threshold is left out, and a line that only saves memory tells that alone."""
    check_hints(
        """
a = f(x)    ## fwd 5.0 ms  5 %
b = g(x)    ## 500 MiB
c = h(x)    ## bwd 3.0 ms  3 %
""",
        """
train.py:1 <module> 5 0.01 saved=10KiB
train.py:2 <module> 0.01 0 saved=500MiB
train.py:3 <module> 0.0 3.0
""",
    )


def test_lines_below_the_threshold_have_none() -> None:
    """The threshold is the user's: a line shows when its share of time or of memory reaches it."""
    options = Options(threshold_percent=5)
    check_hints(
        """
a = f(x)    ## fwd 5.0 ms  5 %
b = g(x)    ## fwd 4.0 ms  4 %  60 MiB
c = h(x)
""",
        """
train.py:1 <module> 5 0
train.py:2 <module> 4 0 saved=60MiB
train.py:3 <module> 4 0 saved=40MiB
""",
        options=options,
    )


def test_memory_can_be_left_out() -> None:
    """Without memory, a line must earn its hint by time."""
    check_hints(
        """
a = f(x)    ## fwd 5.0 ms  5 %
b = g(x)
""",
        """
train.py:1 <module> 5 0 saved=60MiB
train.py:2 <module> 0.1 0 saved=500MiB
""",
        options=Options(show_memory=False),
    )


def test_long_files_keep_the_costliest() -> None:
    """Where there would be too many hints, the costliest lines keep theirs, and the lines that call them."""
    check_hints(
        """
loop()      ## fwd 60 ms  60 %
a = f(x)    ## fwd 30 ms  30 %
b = g(x)
c = h(x)    ## fwd 20 ms  20 %
""",
        """
train.py:1 <module> 0 0
  train.py:2 step 30 0
  train.py:3 step 10 0
  train.py:4 step 20 0
""",
        options=Options(most_hints=3),
    )


def test_a_range_has_the_hints_of_the_whole_file() -> None:
    """An editor that asks for a part of the file gets the same hints as for the whole."""
    shown = snapshot_of(
        "a\nb\nc\n",
        profile=profile_of("train.py:1 <module> 10 0\ntrain.py:2 <module> 20 0\ntrain.py:3 <module> 30 0"),
        options=Options(most_hints=2),
    )
    assert [hint.line for hint in inlay_hints(shown, 1, 4)] == [2, 3]
    assert [hint.line for hint in inlay_hints(shown, 1, 2)] == [2]


def test_hints_follow_their_lines() -> None:
    """After an edit, hints stand where their lines are now and are marked; the edited line has none."""
    check_hints(
        """
# a new line above
a = f(x)            ## ~fwd 5.0 ms  5 %
b = changed(x)
c = h(x)            ## ~fwd 7.0 ms  7 %
""",
        """
train.py:1 <module> 5 0
train.py:2 <module> 6 0
train.py:3 <module> 7 0
""",
        line_of={1: 2, 3: 4},
        state=State.STALE,
    )


def test_hints_of_an_old_profile_stay_marked_during_a_run() -> None:
    """While a changed source is measured again, what is shown is still the old one's."""
    check_hints(
        "a = f(x)    ## ~fwd 5.0 ms  5 %",
        "train.py:1 <module> 5 0",
        state=State.RUNNING,
        outdated=True,
    )


def test_lines_beyond_the_file_have_none() -> None:
    """A profile of a longer file shows nothing outside the file as it is now."""
    check_hints("a = f(x)    ## fwd 5.0 ms  5 %", "train.py:1 <module> 5 0\ntrain.py:2 <module> 6 0")


def test_other_files_have_none() -> None:
    """A file shows its own lines only, whatever the names of the others end with."""
    check_hints("a = f(x)", "lib/train.py:1 <module> 5 0")


def test_preview_scales() -> None:
    """Under a preview, activations scale with the batch, times as the iteration's time does, and both are marked."""
    check_hints(
        "a = f(x)    ## pred fwd 9.0 ms  bwd 18 ms  15 %  200 MiB",
        "train.py:1 <module> 5 10 saved=100MiB",
        preview=Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=1600 * MIB)),
    )


def test_hints_can_be_switched_off() -> None:
    """The user's setting goes before everything."""
    check_hints("a = f(x)", "train.py:1 <module> 5 0", options=Options(hints_enabled=False))


def test_no_profile_no_hints() -> None:
    """A file that was not profiled shows nothing."""
    check_hints("a = f(x)", profile=None, state=State.IDLE)


def test_tooltip_tells_the_rest() -> None:
    """The tooltip has what the hint leaves out: the line's own part, the share of the peak, how often it runs."""
    shown = snapshot_of(
        "step()\nx = f(x)\n",
        profile=profile_of("train.py:1 <module> 1 0\n  train.py:2 step 5 2 saved=98MiB x4 label=fused_region"),
        state=State.STALE,
    )
    container, line = inlay_hints(shown, 1, 3)
    assert "forward 6.0 ms, backward 2.0 ms: 8 % of the iteration" in container.tooltip
    assert "the line itself: 1.0 ms (1 %)" in container.tooltip
    assert "saved for backward: 98 MiB (9.6 % of the peak)" in line.tooltip
    assert "runs 4 times an iteration" in line.tooltip
    assert "fused region" in line.tooltip
    assert "before the last changes" in line.tooltip


COSTS = st.builds(
    LineCost,
    path=st.sampled_from(["train.py", "lib/train.py"]),
    line=st.integers(min_value=1, max_value=60),
    self_forward_ms=st.floats(min_value=0, max_value=50),
    self_backward_ms=st.floats(min_value=0, max_value=50),
    forward_ms=st.floats(min_value=0, max_value=100),
    backward_ms=st.floats(min_value=0, max_value=100),
    self_activation_bytes=st.integers(min_value=0, max_value=2**30),
    activation_bytes=st.integers(min_value=0, max_value=2**30),
    invocations=st.integers(min_value=0, max_value=1000),
)


@given(
    costs=st.lists(COSTS, max_size=30, unique_by=lambda cost: (cost.path, cost.line)),
    line_count=st.integers(min_value=1, max_value=40),
    shift=st.integers(min_value=-5, max_value=5),
    options=st.builds(
        Options,
        threshold_percent=st.floats(min_value=0, max_value=100),
        show_memory=st.booleans(),
        most_hints=st.integers(min_value=0, max_value=10),
    ),
    run_time_ms=st.sampled_from([0.0, 0.01, 100.0]),
    previewed=st.booleans(),
)
def test_invariants(
    costs: list[LineCost], line_count: int, shift: int, options: Options, run_time_ms: float, previewed: bool
) -> None:
    """Hints are ASCII, not empty, one a line, in order, inside the file, and no more than the user wants."""
    profile = profile_of("", lines=tuple(costs), run_time_ms=run_time_ms or 1.0)
    shown = snapshot_of(
        "x\n" * (line_count - 1) + "x",
        profile=profile,
        line_of={line: line + shift for line in range(1, 61)},
        options=options,
        preview=Preview(batch_size=64, prediction=prediction_of(64, run_time_ms=run_time_ms)) if previewed else None,
    )
    hints = inlay_hints(shown, 1, line_count)
    lines = [hint.line for hint in hints]
    assert lines == sorted(set(lines))
    assert len(hints) <= options.most_hints
    known = {cost.line + shift for cost in costs if cost.path == "train.py"}
    for hint in hints:
        assert 1 <= hint.line <= line_count
        assert hint.line in known
        assert hint.text.isascii()
        assert hint.text.isprintable()
        assert hint.text.removeprefix("pred ")
        assert hint.tooltip


def test_index_is_shared() -> None:
    """Snapshots of one profile share what was computed of it."""
    profile = profile_of(TREE)
    index = Index(profile)
    first = snapshot_of("a\n", profile=profile, index=index)
    second = snapshot_of("a\n", profile=profile, index=index, path="/project/other.py", entry=None, sites=())
    assert first.index is second.index is index


def test_another_profile_s_index_is_not_used() -> None:
    """An index that belongs to an earlier profile can't put old numbers on new lines."""
    old = Index(profile_of("train.py:1 <module> 50 0"))
    shown = snapshot_of("a\n", profile=profile_of("train.py:1 <module> 5 0"), index=old)
    assert [hint.text for hint in inlay_hints(shown, 1, 1)] == ["fwd 5.0 ms  5 %"]


def test_form_feed_is_no_line() -> None:
    """Lines count as Python counts them, so a form feed does not shift a hint."""
    shown = snapshot_of("a\n", source=decode(b"a\x0c\nb\n"), profile=profile_of("train.py:2 <module> 5 0"))
    assert [hint.line for hint in inlay_hints(shown, 1, 9)] == [2]
