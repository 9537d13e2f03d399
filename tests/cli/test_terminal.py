"""What the terminal shows: columns stay aligned, and nothing of the source steers the terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from skyline_lsp.terminal import (
    Note,
    annotated_source,
    console_for,
    failure_lines,
    print_lines,
    printable,
    progress_line,
)


def check_drawn(lines: list[str], notes: dict[int, str], expected: str, **options: object) -> None:
    drawn = annotated_source(lines, {line: Note(text=text) for line, text in notes.items()}, **options)
    assert "\n".join(row.plain.rstrip() for row in drawn) == expected.strip("\n")


def test_notes_stand_in_one_column() -> None:
    """Notes of short and long lines begin in the same column."""
    check_drawn(
        ["x = a(x)", "x = longer(x)"],
        {1: "1 ms", 2: "2 ms"},
        """
1 | x = a(x)       1 ms
2 | x = longer(x)  2 ms
""",
    )


def test_wide_characters_count_for_two_cells() -> None:
    """A note after wide characters stands where the others do."""
    check_drawn(
        ["名前 = 1", "abcdefgh"],
        {1: "1 ms", 2: "2 ms"},
        """
1 | 名前 = 1  1 ms
2 | abcdefgh  2 ms
""",
    )


def test_unmarked_stretches_are_left_out() -> None:
    """Only the surroundings of annotated lines are shown, and a gap is marked."""
    check_drawn(
        [f"line{n}" for n in range(1, 13)],
        {1: "1 ms", 12: "2 ms"},
        """
 1 | line1   1 ms
 2 | line2
   :
11 | line11
12 | line12  2 ms
""",
        context=1,
    )


def test_a_source_without_notes_is_not_shown() -> None:
    """Nothing to say of a file: nothing is drawn."""
    check_drawn(["a", "b"], {}, "")


def test_remarks_stand_above_their_line_with_its_indent() -> None:
    """What an editor shows as a lens stands above the line, indented like it."""
    check_drawn(
        ["def f():", "    g()"],
        {},
        """
1 | def f():
  |     profile | 3 ms
2 |     g()
""",
        above={2: ["profile | 3 ms"]},
    )


@pytest.mark.parametrize("width", [30, 40, 60, 100])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, colour: bool) -> None:
    """Long and wide lines are cut before their notes are, and nothing passes the edge."""
    lines = ["x = " + "名" * 60, "y = " + "a" * 120, "", "\tz = 1  # " + "b" * 90]
    drawn = annotated_source(
        lines, {1: Note(text="fwd 1 ms"), 2: Note(text="2 ms")}, context=None, width=width, colour=colour
    )
    assert len(drawn) == len(lines)
    assert max(cell_len(row.plain) for row in drawn) <= width
    if width >= 40:
        assert [row.plain.rstrip().endswith(" ms") for row in drawn] == [True, True, False, False]


def test_a_pipe_gets_whole_lines() -> None:
    """Without a width the code is not cut, however long, and stays on one line."""
    file = io.StringIO()
    print_lines(console_for(file), annotated_source(["x" * 300], {1: Note(text="1 ms")}))
    assert file.getvalue() == "1 | " + "x" * 300 + "  1 ms\n"


def test_colours_change_no_character() -> None:
    """Highlighted source has the same text as plain source, also inside a string over several lines."""
    lines = ['x = """', "", "  text  ", '"""', "return x"]
    notes = {1: Note(text="1 ms", share=0.5), 5: Note(text="2 ms", share=0.02)}
    plain = annotated_source(lines, notes, context=None)
    coloured = annotated_source(lines, notes, context=None, colour=True)
    assert [row.plain for row in coloured] == [row.plain for row in plain]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a   b"),
        ("\tx", "    x"),
        ("名\tx", "名  x"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("a\rb\x0cc", "a\ufffdb\ufffdc"),
        ("a\u202eb", "a\ufffdb"),
    ],
)
def test_control_characters_do_not_reach_the_terminal(text: str, shown: str) -> None:
    """Tabs become spaces; escapes, form feeds and direction overrides are shown as replaced."""
    assert printable(text) == shown


def test_a_failure_starts_with_its_place() -> None:
    """The first line is `file:line: error: message`, as compilers write it, then come the frames, outermost first."""
    lines = failure_lines(
        "ValueError: no\nadd one",
        [("a.py", 30, "main", "run()"), ("b.py", 12, "run", "    raise ValueError")],
        path="a.py",
    )
    assert [line.plain for line in lines] == [
        "b.py:12: error: ValueError: no",
        "  add one",
        "  a.py:30 in main",
        "    30 | run()",
        "  b.py:12 in run",
        "    12 | raise ValueError",
    ]


def test_a_failure_without_frames_names_the_program() -> None:
    """Where no line is known, the file is."""
    (line,) = failure_lines("it exited", [], path="train.py")
    assert line.plain == "train.py: error: it exited"


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to a file has no escape sequences."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    file = io.StringIO()
    print_lines(console_for(file), [Text("x", style="bold red")])
    assert file.getvalue() == "x\n"


def test_what_cannot_be_encoded_is_escaped() -> None:
    """A terminal that knows ASCII only gets escapes instead of an error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_lines(console_for(stream), [Text("名")])
    stream.flush()
    assert raw.getvalue() == b"\\u540d\n"


@pytest.mark.parametrize(("verbose", "expected"), [(True, "one\ntwo\n"), (False, "")])
def test_progress_in_a_pipe(verbose: bool, expected: str) -> None:
    """Without a terminal, progress is written with --verbose only, each message once."""
    file = io.StringIO()
    with progress_line(console_for(file), verbose=verbose) as line:
        for message in ("one", "one", "two"):
            line.update(message, 0.5)
    assert file.getvalue() == expected


def test_output_in_a_pipe_is_passed_on_as_it_is() -> None:
    """What the program writes is not changed."""
    file = io.StringIO()
    with progress_line(console_for(file), verbose=False) as line:
        line.output("half ")
        line.output("line\n\x1b[1mbold")
    assert file.getvalue() == "half line\n\x1b[1mbold"


def test_output_on_a_terminal_keeps_its_lines_whole() -> None:
    """Above the moving line, pieces of one line are put together, and the last one is not lost."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, color_system=None)
    with progress_line(console, verbose=False) as line:
        line.update("timing", None)
        line.output("half ")
        line.output("line\nold\rnew\nlast")
        line.update("timing", 0.5)
    shown = file.getvalue()
    for text in ("half line", "new", "last"):
        assert text in shown
    assert "old" not in shown
