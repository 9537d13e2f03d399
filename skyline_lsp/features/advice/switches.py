"""Comments that switch advice off: `# skyline: ignore` for all of a line's, `# skyline: ignore[code, code]` for some.

The comment stands on the line that the advice is at, or on another line of the same statement.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Mapping
from functools import lru_cache

_COMMENT = re.compile(r"#\s*skyline:\s*ignore(?!\w)(?:\[(?P<codes>[^\]]*)\])?")
_EVERYTHING = frozenset({"*"})


def is_switched_off(text: str, line: int, code: str) -> bool:
    """Whether a comment of a file's text switches a code off at a line."""
    codes = _switches(text).get(line)
    return codes is not None and (codes is _EVERYTHING or code in codes)


@lru_cache(maxsize=256)
def _switches(text: str) -> Mapping[int, frozenset[str]]:
    """Line -> codes that are switched off there."""
    if "skyline:" not in text:
        return {}
    comments: dict[int, frozenset[str]] = {}
    try:
        # A text in a string literal that looks like a comment is none.
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)) is not None:
                comments[token.start[0]] = _codes(match["codes"])
    except (tokenize.TokenError, SyntaxError):
        return {}
    found = dict(comments)
    for first, last in _statements(text):
        for line in range(first, last + 1):
            if line in comments:
                for other in range(first, last + 1):
                    found[other] = _joined(found.get(other), comments[line])
    return found


def shape_of(text: str) -> str | None:
    """What a text means, whatever its comments; None where it can't be parsed."""
    tree = _tree(text)
    return None if tree is None else ast.dump(tree)


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # Invalid escapes are the user's, and would be printed on the server's standard error.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _codes(listed: str | None) -> frozenset[str]:
    return _EVERYTHING if listed is None else frozenset(code.strip() for code in listed.split(","))


def _joined(first: frozenset[str] | None, second: frozenset[str]) -> frozenset[str]:
    if first is None or first is second:
        return second
    return _EVERYTHING if first is _EVERYTHING or second is _EVERYTHING else first | second


def _statements(text: str) -> list[tuple[int, int]]:
    """First and last line of each statement that has no block and of each block's head, where they are several."""
    tree = _tree(text)
    if tree is None:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            if last > node.lineno:
                found.append((node.lineno, last))
    return found
