"""Python source as a syntax tree with exact positions, parsed once for the same bytes."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from skyline_lsp.source.text import SourceText, decode


class SourceError(Exception):
    """Python source that can't be parsed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        """1-based; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """A parsed file."""

    source: SourceText
    tree: ast.Module

    def start(self, node: ast.expr) -> tuple[int, int]:
        """Line, and column in code points, where a node starts."""
        return node.lineno, self.source.column_of_utf8(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> tuple[int, int]:
        """Line, and column in code points, where a node ends."""
        line, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return line, self.source.column_of_utf8(line, column)

    def segment(self, node: ast.expr) -> str:
        """The node's own text."""
        (line, column), (end_line, end_column) = self.start(node), self.end(node)
        return self.source.text[self.source.index(line, column) : self.source.index(end_line, end_column)]


@lru_cache(maxsize=400)
def parse(data: bytes) -> Syntax:
    """The syntax of a file's bytes. Raises `SourceError` where there is none."""
    source = decode(data)
    if source.problem is not None:
        raise SourceError(source.problem)
    try:
        with warnings.catch_warnings():
            # The user's invalid escapes are the user's, and would be printed on the server's standard error.
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
    except SyntaxError as error:
        raise SourceError(error.msg, error.lineno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(str(error) or type(error).__name__) from error
    return Syntax(source=source, tree=tree)


def is_main_guard(test: ast.expr) -> bool:
    """Whether a condition is `__name__ == "__main__"`, either way round."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = [test.left, test.comparators[0]]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the module itself, those inside its `if`, `try`, `with` and loops included, in order."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "handlers", "orelse", "finalbody"):
            for child in getattr(statement, name, ()):
                yield from top_level(child.body if isinstance(child, ast.ExceptHandler) else [child])


def called_name(call: ast.Call) -> str:
    """The last name of what a call calls: "fit" for `trainer.fit(...)`; empty where there is none."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` as text; empty for anything but names and attributes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=64)
def parents(tree: ast.Module) -> dict[int, ast.AST]:
    """The node above each node, by the identity of the lower one."""
    return {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def in_loop(syntax: Syntax, node: ast.AST) -> bool:
    """Whether a node stands in a loop of its function or module."""
    above = parents(syntax.tree)
    at = above.get(id(node))
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(at, (ast.For, ast.AsyncFor, ast.While)):
            return True
        at = above.get(id(at))
    return False
