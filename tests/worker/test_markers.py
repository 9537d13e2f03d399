"""Where a mark is put into a program."""

import ast
import builtins
import textwrap
from collections.abc import Callable

import pytest

from skyline_lsp.worker import markers


def trace(source: str, mark: Callable[[ast.Module, bytes], object]) -> str:
    """Run a program that appends letters to `log`; each mark appends a bar."""
    data = textwrap.dedent(source).encode("utf-8")
    tree = ast.parse(data)
    mark(tree, data)
    log: list[str] = []
    setattr(builtins, markers.HOOK, lambda: log.append("|"))
    try:
        exec(compile(tree, "program.py", "exec"), {"log": log.append})
    finally:
        delattr(builtins, markers.HOOK)
    return "".join(log)


def check_comment(expected: str, source: str) -> None:
    assert trace(source, markers.mark_comments) == expected


def check_line(expected: str, source: str) -> None:
    """Mark the line that holds HERE."""
    lines = textwrap.dedent(source).splitlines()
    (line,) = [number for number, text in enumerate(lines, start=1) if "HERE" in text]
    assert trace(source, lambda tree, _: markers.mark_line(tree, line)) == expected


LOOP = """
    for _ in range(2):{loop}
        log("a"){first}
        if True:
            log("b"){inner}
        {alone}
    log("z")
    """


def loop(**marks: str) -> str:
    return LOOP.format(**{"loop": "", "first": "", "inner": "", "alone": "", **marks})


def test_line_of_a_statement() -> None:
    """An iteration ends whenever the line is reached."""
    check_line("|ab|abz", loop(first="  # HERE"))
    check_line("a|ba|bz", loop(inner="  # HERE"))


def test_line_of_a_loop() -> None:
    """On a loop's line, each pass counts."""
    check_line("|ab|abz", loop(loop="  # HERE"))
    check_line("|a|az", "n = 2\nwhile n:  # HERE\n    n -= 1\n    log('a')\nlog('z')")


def test_line_of_a_function() -> None:
    """On a function's line, each call counts; its documentation stays."""
    check_line("|aDz", 'def f():  # HERE\n    "D"\n    log("a")\nf()\nlog(f.__doc__)\nlog("z")')


def test_line_within_a_statement() -> None:
    """Any line of a statement stands for the statement."""
    check_line("|az", 'log(\n    "a"  # HERE\n)\nlog("z")')


def test_line_without_statement() -> None:
    """A line with nothing on it can't be marked."""
    assert not markers.mark_line(ast.parse("x = 1\n\n\ny = 2\n"), 3)
    assert not markers.mark_line(ast.parse("from __future__ import annotations\n"), 1)


def test_comment_behind_a_statement() -> None:
    """The comment marks the statement it stands behind."""
    check_comment("a|ba|bz", loop(inner="  # skyline: iteration"))


def test_comment_at_the_end_of_a_loop() -> None:
    """Alone on the last line of a loop's body, it marks the end of each pass."""
    check_comment("ab|ab|z", loop(alone="# skyline: iteration"))


def test_comment_at_the_start_of_a_loop() -> None:
    """Alone on the first line of a body, it marks the start of each pass."""
    check_comment("|a|az", "for _ in range(2):\n    # skyline: iteration\n    log('a')\nlog('z')\n")


def test_comment_below_another_block() -> None:
    """It belongs to the block it stands in, not to an earlier one that is indented alike."""
    check_comment(
        "x|a|az",
        "for _ in range(1):\n    log('x')\nfor _ in range(2):\n    # skyline: iteration\n    log('a')\nlog('z')\n",
    )


def test_comment_in_an_outer_block() -> None:
    """After an inner block, the comment's own indentation says which block it is in."""
    check_comment(
        "aa|aa|z", "for _ in range(2):\n    for _ in range(2):\n        log('a')\n    # skyline: iteration\nlog('z')\n"
    )


@pytest.mark.parametrize("text", ["#skyline:iteration", "#   skyline:  iteration ends here"])
def test_spelling(text: str) -> None:
    """Spaces don't matter, nor what follows."""
    assert markers.has_comment(text.encode())
    check_comment("|az", f"log('a')  {text}\nlog('z')\n")


def test_string_is_no_comment() -> None:
    """A string that holds the text is left alone."""
    check_comment("z", "text = '# skyline: iteration'\nlog('z')\n")


def test_lines_stay() -> None:
    """No line number changes, and a marked line traces as one line."""
    source = loop(first="  # skyline: iteration", alone="# skyline: iteration")
    data = textwrap.dedent(source).encode()
    tree = ast.parse(data)
    assert markers.mark_comments(tree, data) == 2
    plain = {line for _, _, line in compile(data, "p", "exec").co_lines() if line}
    marked = {line for _, _, line in compile(tree, "p", "exec").co_lines() if line}
    assert marked == plain
