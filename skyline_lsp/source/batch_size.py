"""Where the batch size of a program is written."""

import ast

from skyline_lsp.source.entry_points import EntryPointKind, find_entry_point
from skyline_lsp.source.files import Files
from skyline_lsp.source.site import Site, SiteKind
from skyline_lsp.source.syntax import SourceError, Syntax, parse, top_level


def find_sites(files: Files, entry_path: str, arguments: tuple[str, ...] = ()) -> tuple[Site, ...]:
    """Sites of the program at `entry_path` when run with `arguments`, best first; none where it can't be parsed."""
    data = files.read(entry_path)
    if data is None:
        return ()
    try:
        syntax = parse(data)
    except SourceError:
        return ()
    entry = find_entry_point(entry_path, data)
    if entry is not None and entry.kind is EntryPointKind.PROVIDER:
        return _provider_sites(entry_path, syntax)
    return _keyword_sites(entry_path, syntax)


def why_no_site(files: Files, entry_path: str, arguments: tuple[str, ...] = ()) -> str:
    """Why `find_sites` finds nothing editable there, for the user."""
    if files.read(entry_path) is None:
        return f"{entry_path} can't be read"
    return "no batch size is written as an integer in this program"


def _provider_sites(path: str, syntax: Syntax) -> tuple[Site, ...]:
    found: ast.FunctionDef | None = None
    for statement in top_level(syntax.tree.body):
        if isinstance(statement, ast.FunctionDef) and statement.name.endswith("_input_provider"):
            found = statement
    if found is None:
        return ()
    positional = [*found.args.posonlyargs, *found.args.args]
    defaults = dict(zip([a.arg for a in positional][::-1], found.args.defaults[::-1], strict=False))
    default = defaults.get("batch_size")
    if not (isinstance(default, ast.Constant) and type(default.value) is int):
        return ()
    reason = f"default of batch_size in {found.name}"
    return (_site(path, syntax, default, SiteKind.PROVIDER_DEFAULT, "batch_size", reason, 0),)


def _keyword_sites(path: str, syntax: Syntax) -> tuple[Site, ...]:
    sites: list[Site] = []
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.keyword) and node.arg == "batch_size":
            value = node.value
            if isinstance(value, ast.Constant) and type(value.value) is int:
                reason = "batch_size of a call"
                sites.append(_site(path, syntax, value, SiteKind.CALL_KEYWORD, "batch_size", reason, len(sites)))
    return tuple(sites)


def _site(path: str, syntax: Syntax, node: ast.Constant, kind: SiteKind, name: str, reason: str, rank: int) -> Site:
    line, column = syntax.start(node)
    text = syntax.segment(node)
    start = syntax.source.byte_offset(line, column)
    return Site(
        path=path,
        line=line,
        column=column + 1,
        start=start,
        end=start + len(text),
        text=text,
        value=node.value if isinstance(node.value, int) else 0,
        kind=kind,
        name=name,
        editable=True,
        reason=reason,
        evaluation=False,
        rank=rank,
    )
