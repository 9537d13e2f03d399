"""How advice is shown, followed and switched off."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.features import Index, Options, State, diagnostics
from skyline_lsp.features.advice import advise, is_switched_off
from skyline_lsp.protocol import (
    Remark,
    RemarkKind,
)
from skyline_lsp.source import apply
from tests.features.advice.cases import ADAM, actions_of, advice_of, stepping
from tests.features.building import profile_of, snapshot_of


def test_advice_is_shown_as_information_at_its_line() -> None:
    """Each piece of advice is a diagnostic with its own code; the setting leaves codes out, of remarks too."""
    remark = Remark(kind=RemarkKind.GRAPH_BREAK, path="train.py", line=1, message="a graph break")
    profile = replace(stepping(), remarks=(remark,))

    def shown(**given: Any) -> list[tuple[int, str]]:
        shot = snapshot_of(ADAM, profile=profile, index=Index(profile, {"train.py": ADAM}), state=State.READY, **given)
        return [(row.line, row.code) for row in diagnostics(shot) if row.code != "profile"]

    assert shown() == [(1, "graph-break"), (2, "fused-optimizer")]
    assert shown(options=Options(advice_disabled=frozenset({"fused-optimizer"}))) == [(1, "graph-break")]
    assert shown(options=Options(advice_disabled=frozenset({"graph-break"}))) == [(2, "fused-optimizer")]
    assert shown(line_of={1: 4, 3: 6}) == [(4, "graph-break")], "an edited line has no advice"


@pytest.mark.parametrize(
    ("comment", "off"),
    [
        ("# skyline: ignore", True),
        ("#skyline:ignore", True),
        ("# made by hand  # skyline: ignore[fused-optimizer]", True),
        ("# skyline: ignore[zero-grad, fused-optimizer]", True),
        ("# skyline: ignore[zero-grad]", False),
        ("# skyline: ignored", False),
        ("# skyline: later", False),
    ],
)
def test_switched_off_by_a_comment(comment: str, off: bool) -> None:
    """A comment on the line switches all of its advice off, or that of the codes it names."""
    text = ADAM.replace("lr=1e-3)", f"lr=1e-3)  {comment}")
    assert (not advice_of(stepping(), text)) == off


def test_switched_off_on_a_statement_of_several_lines() -> None:
    """The comment may stand on any line of the statement; a text that looks like one is none."""
    text = "a = [\n    1,  # skyline: ignore[zero-grad]\n    2,\n]\nb = '# skyline: ignore'\n"
    assert [is_switched_off(text, line, "zero-grad") for line in range(1, 6)] == [True, True, True, True, False]
    block = "for x in (  # skyline: ignore\n    a\n):\n    step(x)\n"
    assert [is_switched_off(block, line, "zero-grad") for line in range(1, 5)] == [True, True, True, False]


def test_an_action_switches_advice_off() -> None:
    """Beside its fix, advice can be switched off where it stands: the comment is added, and works."""
    titles = [action.title for action in actions_of(stepping(), ADAM, 2)]
    assert titles == ["Update all tensors in one kernel (Adam)", "Switch off fused-optimizer on this line"]
    edit = actions_of(stepping(), ADAM, 2)[1].edit
    assert edit is not None
    after = apply(ADAM.encode(), edit).decode()
    assert "lr=1e-3)  # skyline: ignore[fused-optimizer]\n" in after
    assert not advice_of(stepping(), after)


def test_a_fix_follows_its_line() -> None:
    """After edits elsewhere the fix is made where the line is now; after edits of what it changes there is none."""
    moved = "# one more line\n" + ADAM
    (edit, *_) = [action.edit for action in actions_of(stepping(), moved, 3, profiled=ADAM, line_of={1: 2, 2: 3, 3: 4})]
    assert edit is not None
    assert "lr=1e-3, fused=True)" in apply(moved.encode(), edit).decode()
    multi = ADAM.replace("(parameters, lr=1e-3)", "(\n    parameters,\n    lr=1e-3)")
    profile = stepping(line=5)
    profile = replace(profile, tree=(replace(profile.tree[0], line=5),), lines=(replace(profile.lines[0], line=5),))
    assert len(actions_of(profile, multi, 2)) == 2
    edited = multi.replace("    parameters,", "    others,")
    kept = {1: 1, 2: 2, 4: 4, 5: 5}
    assert [action.title for action in actions_of(profile, edited, 2, profiled=multi, line_of=kept)] == [
        "Switch off fused-optimizer on this line"
    ]


def test_no_comment_where_it_would_be_none() -> None:
    """Within a string that goes on, or behind a backslash, advice can't be switched off by an edit."""
    for text in ("x = '''\n'''\n", "x = 1 + \\\n    2\n"):
        remark = Remark(kind=RemarkKind.GRAPH_BREAK, path="train.py", line=1, message="a graph break")
        assert not actions_of(profile_of("train.py:1 f 1 0", remarks=(remark,)), text, 1)


@given(st.text(alphabet="ab(),#='\"\n \\:[]", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """No text, however broken, is more than one without advice of its own."""
    advise(stepping(), {"train.py": text})
