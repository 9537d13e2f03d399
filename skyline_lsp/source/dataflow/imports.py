"""Imports: modules of the project are followed, others are names from outside."""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow.branches import Flow
from skyline_lsp.source.dataflow.objects import (
    get_attribute,
)
from skyline_lsp.source.dataflow.values import (
    External,
    Known,
    Module,
    Scope,
    Sequence,
    Unknown,
    Value,
)
from skyline_lsp.source.syntax import parse

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run


_EMPTY = parse(b"")


def import_(run: Run, node: ast.Import, scope: Scope) -> Flow:
    for alias in node.names:
        module = run.import_module(alias.name)
        if alias.asname:
            run.bind_name(alias.asname, module, scope)
            continue
        first = alias.name.split(".")[0]
        if isinstance(module, Module) and "." in alias.name:
            run.bind_name(first, run.import_module(first), scope)
        else:
            run.bind_name(first, module if "." not in alias.name else External(first), scope)
    return Flow.NEXT


def import_from(run: Run, node: ast.ImportFrom, scope: Scope) -> Flow:
    base = _from_module(run, node, scope.module)
    for alias in node.names:
        if alias.name == "*":
            if isinstance(base, Module):
                _import_star(run, base, scope)
            elif isinstance(base, External):
                scope.module.star_externals.append(base.name)
            continue
        value: Value
        if isinstance(base, Module):
            value = _from_name(run, base, alias.name)
        elif isinstance(base, External):
            value = External(f"{base.name}.{alias.name}")
        else:
            value = Unknown(alias.name)
        run.bind_name(alias.asname or alias.name, value, scope)
    return Flow.NEXT


def _from_module(run: Run, node: ast.ImportFrom, module: Module) -> Value:
    name = node.module or ""
    if node.level == 0:
        return run.import_module(name)
    folder = posixpath.dirname(module.path)
    for _ in range(node.level - 1):
        folder = posixpath.dirname(folder)
    if not name:
        found = run.modules.find(posixpath.basename(folder), [posixpath.dirname(folder)])
    else:
        found = run.modules.find(name, [folder])
    return load_found(run, found, name or posixpath.basename(folder)) if found else Unknown(name)


def _from_name(run: Run, base: Module, name: str) -> Value:
    if name in base.cells:
        return base.cells[name]
    if base.is_package:
        found = run.modules.find(name, [posixpath.dirname(base.path)])
        if found is not None:
            return load_found(run, found, f"{base.name}.{name}")
    return get_attribute(run, base, name)


def _import_star(run: Run, base: Module, scope: Scope) -> None:
    listed = base.cells.get("__all__")
    names = list(base.cells)
    if isinstance(listed, Sequence) and listed.complete:
        names = [str(item.value) for item in listed.items if isinstance(item, Known)]
    else:
        names = [str(name) for name in names if not str(name).startswith("_")]
    for name in names:
        if name in base.cells:
            run.bind_name(name, base.cells[name], scope)
    scope.module.star_externals.extend(base.star_externals)


def import_module(run: Run, name: str) -> Value:
    """The module that `import name` means."""
    found = run.modules.find(name) if name and not run.library.knows(name) else None
    if found is None:
        return External(name)
    parts = name.split(".")
    for i in range(1, len(parts)):
        above = run.modules.find(".".join(parts[:i]))
        if above is not None:
            load_found(run, above, ".".join(parts[:i]))
    return load_found(run, found, name)


def load_found(run: Run, found: tuple[str, bool], name: str) -> Value:
    path, is_package = found
    loaded = run.modules.loaded.get(path)
    if loaded is not None:
        return loaded
    if path.endswith("/"):
        empty = Module(
            name=name,
            path=posixpath.join(path, "__init__.py"),
            syntax=_EMPTY,
            cells={},
            is_package=True,
        )
        run.modules.loaded[path] = empty
        return empty
    return run.load(path, name, is_package) or Unknown(name)
