"""What is told of a position."""

from dataclasses import replace
from typing import Any

import pytest

from skyline_lsp.features import Hover, Preview, State, hover
from skyline_lsp.features.units import format_ms, format_rate
from skyline_lsp.prediction import predict
from skyline_lsp.protocol import Failure, FailureKind, Phase, PhaseKind
from tests.features.building import GIB, PEAKS, PROVIDERS, STEP, model_of, prediction_of, profile_of, snapshot_of

NET = """\
class Net:
    pass

class Net:
    def forward(self, x):
        x = self.block(x)
        return self.head(x)
"""


def hover_of(line: int, column: int = 0, text: str = PROVIDERS, **given: Any) -> Hover:
    given.setdefault("profile", profile_of(STEP, slowdown=1.04))
    given.setdefault("state", State.READY)
    shown = hover(snapshot_of(text, **given), line, column)
    assert shown is not None
    return shown


def squeezed(shown: Hover) -> str:
    """The plain form without its columns."""
    return "\n".join(" ".join(line.split()) for line in shown.plain.splitlines())


def check_plain(shown: Hover, expected: str) -> None:
    assert shown.plain.strip() == expected.strip()


def test_a_line_s_cost() -> None:
    """A line tells its own and its inclusive cost, what it calls, and how that was measured."""
    check_plain(
        hover_of(6, text=NET, path="/project/net.py"),
        """
net.py:6 in Net.forward

cost                forward  backward    time  share    saved  at the peak
this line itself     1.2 ms    2.4 ms  3.6 ms  3.6 %   98 MiB       98 MiB
with what it calls    13 ms     16 ms   30 ms   30 %  428 MiB      348 MiB

Runs 16 times an iteration; 1.8 ms each. 2.0 ms of the backward time runs forward code again (checkpointing). \
What it saves for backward is 42 % of the iteration's peak memory.

calls       forward  backward    time  share    saved  runs
conv.py:20   9.0 ms     12 ms   21 ms   21 %  300 MiB   x32  Conv.forward
conv.py:21   3.0 ms    2.0 ms  5.0 ms    5 %   30 MiB   x32  Conv.forward

Measured on Test CPU: 20 iterations of batch size 16; lines from a traced one, which took 1.04 times as long, scaled \
to their median.
""",
    )


def test_a_line_s_work() -> None:
    """A line tells its FLOP and bytes, against what the device can do, and what bounds it; a preview tells nothing."""
    tree = "net.py:6 Net.forward 4 6 flop=6000000000 moved=16MiB operations=8"
    profile = profile_of(tree, peaks=PEAKS, slowdown=1.0)
    shown = squeezed(hover_of(6, text=NET, path="/project/net.py", profile=profile))
    assert "FLOP (float32) 6.0 GFLOP 600 GFLOP/s 60 %" in shown
    assert "bytes, at least 16 MiB 1.7 GB/s 17 %" in shown
    assert "operations 8 0.4 %" in shown
    assert (
        "Compute-bound, at 358 FLOP for each byte. The device's best would be 6 ms for its FLOP, 1.7 ms for its bytes; "
        "measured are 10 ms."
    ) in shown
    preview = Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180))
    assert "GFLOP" not in hover_of(6, text=NET, path="/project/net.py", profile=profile, preview=preview).plain


def test_a_line_whose_work_was_not_counted() -> None:
    """Without counts, or without the device's peaks, nothing is said of work."""
    for changes in ({}, {"peaks": PEAKS}):
        shown = hover_of(6, text=NET, path="/project/net.py", profile=profile_of(STEP, slowdown=1.04, **changes))
        assert "of the best" not in shown.plain


def test_markdown_has_the_same_and_links() -> None:
    """The Markdown form has the plain form's figures, with links to the callees."""
    shown = hover_of(6, text=NET, path="/project/net.py").markdown
    assert "**`net.py:6`** in `Net.forward`" in shown
    assert "| this line itself   |  1.2 ms |   2.4 ms | 3.6 ms | 3.6 % |  98 MiB |      98 MiB |" in shown
    assert "[`conv.py:20`](file:///project/conv.py#L20)" in shown


def test_fenced_form_is_the_plain_one() -> None:
    """A client that takes Markdown and doesn't render tables gets the aligned text."""
    shown = hover_of(12)
    assert shown.fenced == f"```text\n{shown.plain}\n```"


def test_a_line_that_calls_nothing_has_one_row() -> None:
    """Where inclusive and self are the same, they are said once."""
    assert "with what it calls" not in hover_of(12).plain


def test_many_callees_are_summed_up() -> None:
    """A line that calls many others names the costliest and sums up the rest, so that the rows add up."""
    rows = "\n".join(f"  net.py:{100 + i} f {10 - i / 10} 0" for i in range(12))
    shown = hover_of(11, profile=profile_of("train.py:11 iteration 0 0\n" + rows, run_time_ms=200.0))
    assert "net.py:107 9.3 ms 0 ms" in squeezed(shown)
    assert "net.py:108" not in shown.plain
    assert "4 more 36 ms 0 ms" in squeezed(shown)


def test_several_callers_are_told_apart() -> None:
    """A line that several lines call tells what each of them causes."""
    shown = hover_of(
        6,
        text=NET,
        path="/project/net.py",
        profile=profile_of("""
train.py:11 iteration 0 0
  net.py:6 Net.forward 1 2
train.py:12 iteration 0 0
  net.py:6 Net.forward 10 20
"""),
    )
    assert "called from  forward" in shown.plain
    assert shown.plain.index("train.py:12") < shown.plain.index("train.py:11")
    assert "Runs 2 times an iteration, over 2 call paths" in shown.plain


def test_label_is_told() -> None:
    """A remark of the profiler on a line, such as that it is compiled, is a sentence of the hover."""
    shown = hover_of(12, profile=profile_of("train.py:12 iteration 1 0 label=compiled_region"))
    assert "\nCompiled region.\n" in shown.plain


def test_inner_modules_are_told() -> None:
    """Where library code runs modules, the line's own cost is told by module, equal layers together."""
    shown = hover_of(
        11,
        profile=profile_of("""
train.py:11 iteration 1 0
  train.py:11 iteration 0 0 x0 module=bert_(Bert)
    train.py:11 iteration 3 4 x0 saved=2MiB module=bert.layer.0.dense_(Linear)
    train.py:11 iteration 3 4 x0 saved=2MiB module=bert.layer.1.dense_(Linear)
    train.py:11 iteration 1 1 x0 module=bert.pooler_(Pooler)
"""),
    )
    assert "of this line itself forward backward time share saved modules" in squeezed(shown)
    assert "bert.layer.*.dense (Linear) 6.0 ms 8.0 ms 14 ms 14 % 4 MiB x2" in squeezed(shown)
    assert "bert.pooler (Pooler) 1.0 ms 1.0 ms 2.0 ms 2 %" in squeezed(shown)
    assert "this line itself 8.0 ms 9.0 ms 17 ms 17 % 4 MiB" in squeezed(shown)
    assert "with what it calls" not in shown.plain


def test_a_line_that_moved_says_so() -> None:
    """The hover follows its line, and says that the source has changed and where the line was."""
    shown = hover_of(3, text="\n\n        loss.backward()\n", state=State.STALE, line_of={12: 3})
    assert "train.py:3 in iteration" in shown.plain
    assert "The source has changed since; this line was line 12 then." in shown.plain


def test_an_edited_line_has_none() -> None:
    """A line that was edited has no cost to tell."""
    assert hover(snapshot_of("x = 1\n", profile=profile_of(STEP), state=State.STALE, line_of={}), 1, 0) is None


def test_preview_is_marked() -> None:
    """Predicted figures are called so, and what can't be predicted by line is left out."""
    preview = Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=2 * GIB))
    shown = hover_of(11, preview=preview)
    assert "cost, predicted" in shown.plain
    assert "at the peak" not in shown.plain
    assert "with what it calls 33 ms 44 ms 78 ms 43 % 876 MiB" in squeezed(shown)
    assert "Scaled to batch size 32 as predicted." in shown.plain


def test_batch_size_with_a_model() -> None:
    """The batch size tells what others are measured or predicted to do, and what the predictions rest on."""
    model = model_of(8, 16, 32)
    shown = hover_of(6, 38, model=model)
    rows = {row.split()[0]: row for row in shown.plain.splitlines() if row[:1].isdigit()}
    assert rows["16"].split("  ")[-1] == "now, measured"
    assert rows["32"].split("  ")[-1] == "measured"
    predicted = predict(model, 64, 8 * GIB)
    assert predicted is not None
    assert f"{format_ms(predicted.run_time_ms.value)} (" in rows["64"]
    assert f"{format_rate(predicted.samples_per_second.value)} (" in rows["64"]
    assert list(rows) == sorted(rows, key=int)
    assert "Fitted to batch sizes 8, 16, 32" in shown.plain
    for problem in model.problems:
        assert problem in shown.plain


def test_batch_size_without_a_model() -> None:
    """Without predictions, the hover tells what is measured and how to get more."""
    shown = hover_of(6, 38)
    assert [row.split()[0] for row in shown.plain.splitlines() if row[:1].isdigit()] == ["16"]
    assert '"Predict other batch sizes"' in shown.plain


def test_batch_size_that_can_not_be_predicted() -> None:
    """Where the model can't tell, it says why in place of numbers."""
    model = model_of(16)
    shown = hover_of(6, 38, model=model)
    assert model.problems
    assert model.problems[0] in shown.plain
    assert [row.split()[0] for row in shown.plain.splitlines() if row[:1].isdigit()] == ["16"]


def test_batch_size_says_what_can_not_be_edited() -> None:
    """A site that can't be edited says why, and where to go."""
    shown = snapshot_of(PROVIDERS)
    (site,) = shown.sites
    fixed = replace(site, line=3, rank=1, editable=False, reason="it is computed from `world_size`")
    given = hover(snapshot_of(PROVIDERS, sites=(fixed, site)), 3, 0)
    assert given is not None
    assert "It is computed from `world_size`. Change it at train.py:6." in given.plain


def test_batch_size_of_evaluation_is_told_apart() -> None:
    """The batch size of evaluation is not predicted with the training step's numbers."""
    (site,) = snapshot_of(PROVIDERS).sites
    shown = hover_of(6, 38, sites=(replace(site, evaluation=True),), model=model_of(8, 16))
    assert "for evaluation only" in shown.plain
    assert "Fitted" not in shown.plain


def test_batch_size_that_is_calculated() -> None:
    """Where the literal is a part of a calculation, the calculation is told."""
    (site,) = snapshot_of(PROVIDERS).sites
    shown = hover_of(6, 38, sites=(replace(site, multiplier=4),))
    assert "The batch size is 16 x 4 = 64." in shown.plain


def test_the_literal_goes_before_the_line() -> None:
    """On a line that has both, the literal tells of the batch size first, and the rest of the line of its cost."""
    profile = profile_of("train.py:6 skyline_input_provider 5 0")
    literal = hover_of(6, 39, profile=profile).plain
    line = hover_of(6, 0, profile=profile).plain
    assert literal.startswith("batch size 16")
    assert line.startswith("train.py:6 in skyline_input_provider")
    assert "train.py:6 in" in literal
    assert "batch size 16" in line


def test_the_whole() -> None:
    """At the entry, the iteration is told in sentences and by what its time and its memory are."""
    profile = profile_of(
        STEP,
        phases=(
            Phase(kind=PhaseKind.FORWARD, run_time_ms=30),
            Phase(kind=PhaseKind.OPTIMIZER, run_time_ms=70),
        ),
        warnings=("Times vary by 12 %.",),
    )
    check_plain(
        hover_of(9, profile=profile),
        """
An iteration of batch size 16 takes 100 ms (+-2, median of 20) on Test CPU. That is 160 samples/s. Memory peaks at \
1 GiB of 8 GiB (12 %). No project line accounts for 56 ms (56 %) of the time.

phase       time  share
forward    30 ms   30 %
optimizer  70 ms   70 %

memory at the peak    bytes  share
weights             100 MiB  9.8 %
gradients           100 MiB  9.8 %
optimizer           200 MiB   20 %
activations         600 MiB   59 %
other                24 MiB  2.3 %
peak                  1 GiB  100 %

line itself  forward  backward     time  share  activations
conv.py:20    9.0 ms     12 ms    21 ms   21 %      300 MiB
net.py:7      5.0 ms    8.0 ms    13 ms   13 %       10 MiB
conv.py:21    3.0 ms    2.0 ms   5.0 ms    5 %       30 MiB
net.py:6      1.2 ms    2.4 ms   3.6 ms  3.6 %       98 MiB
train.py:11  0.40 ms   0.10 ms  0.50 ms  0.5 %
train.py:12     0 ms   0.50 ms  0.50 ms  0.5 %
on no line                        56 ms   56 %

- Times vary by 12 %.
""",
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"state": State.IDLE, "profile": None}, 'choose the code action "Profile this training step"'),
        ({"state": State.RUNNING, "profile": None, "progress": "warming up"}, "Profiling: warming up."),
        (
            {"state": State.FAILED, "profile": None, "failure": Failure(kind=FailureKind.CRASHED, message="It died.")},
            "Profiling failed: It died.",
        ),
        ({"state": State.STALE}, "The source has changed since this was measured."),
    ],
)
def test_the_whole_says_its_state(given: dict[str, Any], text: str) -> None:
    """At the entry, the hover says what is going on and what to do, in editors that show nothing else."""
    assert text in hover_of(9, **given).plain


def test_the_whole_says_why_no_batch_size_can_be_set() -> None:
    """Where no batch size can be edited, the entry says why."""
    reason = "it comes from a configuration that is downloaded"
    shown = hover_of(9, sites=(), no_site_reason=reason).plain
    assert "The batch size can't be changed from here: it comes from a configuration that is downloaded." in shown
    assert "can't be changed" not in hover_of(9, no_site_reason=reason).plain


def test_nothing_is_told_of_other_lines() -> None:
    """A line without cost or batch size has no hover, and neither has one outside the file."""
    shown = snapshot_of(PROVIDERS, profile=profile_of(STEP), state=State.READY)
    assert hover(shown, 1, 0) is None
    assert hover(shown, 10_000, 0) is None


def test_the_user_s_text_is_shown_as_it_is() -> None:
    """A failure's message can't become markup."""
    failure = Failure(kind=FailureKind.EXCEPTION, message="KeyError: '__x__' in <b>[1](http://a.example)</b>")
    shown = hover_of(9, profile=None, state=State.FAILED, failure=failure).markdown
    assert "\\_\\_x\\_\\_" in shown
    assert "\\<b>\\[1\\](http" in shown
