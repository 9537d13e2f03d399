"""Where an iteration ends when the program itself says so: a line named in the settings, or a comment
`# skyline: iteration`. A call is put into the syntax tree there, so that nothing has to be traced.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

HOOK = "__skyline_iteration__"
"""Name of the built-in function that is called at each mark."""

_COMMENT = re.compile(r"#\s*skyline:\s*iteration\b")
_BYTES = re.compile(rb"#\s*skyline:\s*iteration\b")


def has_comment(data: bytes) -> bool:
    """Whether a source file may hold the comment; quick, and wrong at most where a string holds its text."""
    return _BYTES.search(data) is not None


def mark_line(tree: ast.Module, line: int) -> bool:
    """Put a call where execution arrives at `line`: before a statement, or at the start of each pass of a loop.

    Returns False where no statement can be marked there.
    """
    found = _statement_at(tree, line)
    if found is None:
        return False
    statements, index = found
    statement = statements[index]
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)) and statement.lineno == line:
        statements, index = statement.body, 0
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        statements, index = statement.body, int(ast.get_docstring(statement, clean=False) is not None)
        if index == len(statements):
            statements.append(ast.copy_location(ast.Pass(), statements[-1]))
    elif isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return False
    statements.insert(index, _call(statements[index]))
    return True


def mark_comments(tree: ast.Module, data: bytes) -> int:
    """Put a call at each comment of the file, and return how many there were.

    Behind a statement the comment marks the statement; alone on its line it marks the place where it stands.
    """
    marked = 0
    for line, column, alone in _comments(data):
        marked += _mark_place(tree, line, column) if alone else mark_line(tree, line)
    return marked


def _comments(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Line, column and whether nothing else is on the line, of each marking comment."""
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.COMMENT and _COMMENT.match(token.string):
            yield token.start[0], token.start[1], not token.line[: token.start[1]].strip()


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _statement_at(tree: ast.Module, line: int) -> tuple[list[ast.stmt], int] | None:
    """The innermost statement that spans the line, by its block and its place there."""
    best: tuple[list[ast.stmt], int] | None = None
    smallest = 0
    for block in _blocks(tree):
        for index, statement in enumerate(block):
            end = statement.end_lineno or statement.lineno
            if statement.lineno <= line <= end:
                # Of two statements on the same lines the first found, and outermost, is the one that starts there.
                size = end - statement.lineno + 1
                if best is None or size < smallest:
                    best, smallest = (block, index), size
                break
    return best


def _mark_place(tree: ast.Module, line: int, column: int) -> bool:
    """Mark after the last statement before `line` that stands at `column`, else before the first after it."""
    before: tuple[list[ast.stmt], int] | None = None
    after: tuple[list[ast.stmt], int] | None = None
    for block in _blocks(tree):
        for index, statement in enumerate(block):
            if statement.col_offset != column:
                continue
            end = statement.end_lineno or statement.lineno
            if end < line and (before is None or end > _end(before)):
                before = (block, index)
            if statement.lineno > line and (after is None or statement.lineno < after[0][after[1]].lineno):
                after = (block, index)
    # A statement above in the same column may end another, earlier block: then a shallower line lies between.
    if before is not None and not _shallower_between(tree, _end(before), line, column):
        block, index = before
        block.insert(index + 1, _call(block[index], at_end=True))
        return True
    if after is not None:
        block, index = after
        block.insert(index, _call(block[index]))
        return True
    return False


def _end(place: tuple[list[ast.stmt], int]) -> int:
    statement = place[0][place[1]]
    return statement.end_lineno or statement.lineno


def _shallower_between(tree: ast.Module, start: int, end: int, column: int) -> bool:
    return any(
        start < statement.lineno < end and statement.col_offset < column
        for block in _blocks(tree)
        for statement in block
    )


def _call(neighbour: ast.stmt, at_end: bool = False) -> ast.stmt:
    """A statement that calls the hook, with the position of its neighbour so that no line is added or moved."""
    call = ast.Expr(ast.Call(ast.Name(HOOK, ast.Load()), [], []))
    for node in ast.walk(call):
        ast.copy_location(node, neighbour)
        if at_end and isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = neighbour.end_lineno or neighbour.lineno
    return call
