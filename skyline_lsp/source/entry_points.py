"""What can be profiled: files with the three provider functions, and scripts that train."""

import ast
import enum
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyline_lsp.source.files import Files
from skyline_lsp.source.syntax import SourceError, Syntax, called_name, is_main_guard, parse, top_level

PREFIXES = ("skyline", "deepview")
ROLES = ("model", "input", "iteration")

_PROVIDER = re.compile(rb"\b(?:skyline|deepview)_(?:model|input|iteration)_provider\b")
_FRAMEWORK = re.compile(
    rb"\b(?:torch|lightning|pytorch_lightning|transformers|accelerate|fastai|ignite|deepspeed|timm|ultralytics|trl)\b"
)
_TRAINS = re.compile(rb"backward|\bfit|train|learn|optim|main\(", re.IGNORECASE)
_TRAIN_CALL = re.compile(
    r"^(?:fit(?:_.*)?|train|train_.*|.*_train|.*_training|training|learn|finetune|fine_tune|pretrain)$"
)
_SCRIPT_NAME = re.compile(r"(?:^|_)(?:train|main|run|pretrain|finetune|fit)(?:_|$|\d)|(?:train|training)$")


class EntryPointKind(enum.Enum):
    """How the file is profiled."""

    PROVIDER = "provider"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRef:
    """Where a function is defined in a file, or imported into it."""

    name: str
    line: int
    """1-based: the `def` itself, decorators left out, or the import."""
    path: str
    """Absolute."""
    imported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """The provider functions of a file; None for one that is missing."""

    model: FunctionRef | None
    input: FunctionRef | None
    iteration: FunctionRef | None
    prefix: str
    """"skyline" or "deepview"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A file that can be profiled."""

    kind: EntryPointKind
    path: str
    """Absolute."""
    line: int
    """1-based: where a lens about the whole belongs: the iteration provider, or the step or call that trains."""
    providers: Providers | None
    batch_size_line: int | None
    """Of a provider file: the line of the input provider's `batch_size` parameter, where it is in this file."""
    reason: str
    """Why it is one, for the user."""


def find_entry_point(path: str, data: bytes) -> EntryPoint | None:
    """What the file at `path` is to be profiled as; None where it neither has providers nor trains, or is broken."""
    provides = _PROVIDER.search(data) is not None
    if not provides and not (_TRAINS.search(data) and (_FRAMEWORK.search(data) or _script_name(path))):
        return None
    try:
        syntax = parse(data)
    except SourceError:
        return None
    return (_provider_file(path, syntax) if provides else None) or _training_script(path, syntax)


def find_entry_points(files: Files) -> tuple[EntryPoint, ...]:
    """Every entry point of a project, provider files first, each kind sorted by path."""
    found = []
    for path in files.paths((".py",)):
        data = files.read(path)
        entry = find_entry_point(path, data) if data is not None else None
        if entry is not None:
            found.append(entry)
    return tuple(sorted(found, key=lambda entry: (entry.kind is not EntryPointKind.PROVIDER, entry.path)))


def nearest_entry_point(entries: Sequence[EntryPoint], path: str) -> EntryPoint | None:
    """The one to profile while `path` is open: itself, else the nearest by folders, providers before scripts."""
    return min(entries, key=lambda entry: _distance(entry, path), default=None)


def _distance(entry: EntryPoint, path: str) -> tuple[int, int, int, bool, bool, str]:
    here, there = _folders(path), _folders(entry.path)
    common = 0
    for a, b in zip(here, there, strict=False):
        if a != b:
            break
        common += 1
    # Up is nearer than down or aside: a package's file belongs to the script above it.
    aside = len(there) - common
    return (
        entry.path != path,
        (len(here) - common) + 2 * aside,
        aside,
        entry.kind is not EntryPointKind.PROVIDER,
        not _script_name(entry.path),
        entry.path,
    )


def _folders(path: str) -> list[str]:
    return [part for part in posixpath.dirname(path.replace("\\", "/")).split("/") if part]


def _provider_file(path: str, syntax: Syntax) -> EntryPoint | None:
    found: dict[str, tuple[FunctionRef, ast.stmt]] = {}
    wanted = {f"{prefix}_{role}_provider" for prefix in PREFIXES for role in ROLES}
    for statement in top_level(syntax.tree.body):
        for name, imported in _bound_names(statement):
            if name in wanted:
                ref = FunctionRef(name=name, line=statement.lineno, path=path, imported=imported)
                found[name] = (ref, statement)
    if not found:
        return None
    prefix = max(PREFIXES, key=lambda p: sum(f"{p}_{role}_provider" in found for role in ROLES))
    refs = {role: found.get(f"{prefix}_{role}_provider") for role in ROLES}
    by_role = {role: pair[0] if pair else None for role, pair in refs.items()}
    lens = by_role["iteration"] or by_role["model"] or by_role["input"]
    assert lens is not None
    missing = [f"{prefix}_{role}_provider" for role in ROLES if refs[role] is None]
    reason = f"it has {prefix}'s provider functions"
    return EntryPoint(
        kind=EntryPointKind.PROVIDER,
        path=path,
        line=lens.line,
        providers=Providers(
            model=by_role["model"], input=by_role["input"], iteration=by_role["iteration"], prefix=prefix
        ),
        batch_size_line=_batch_size_line(refs["input"][1]) if refs["input"] else None,
        reason=reason + (f", {' and '.join(missing)} missing" if missing else ""),
    )


def _bound_names(statement: ast.stmt) -> Iterable[tuple[str, bool]]:
    """Names that a statement binds to what may be a function, and whether by importing it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name, False
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name, True
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id, False


def _batch_size_line(statement: ast.stmt) -> int | None:
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    arguments = statement.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named = [parameter for parameter in parameters if parameter.arg == "batch_size"]
    return named[0].lineno if named else None


def _training_script(path: str, syntax: Syntax) -> EntryPoint | None:
    """A heuristic: it starts something when run, and in it is a step that trains, or a call that names one."""
    guard = next((s for s in syntax.tree.body if isinstance(s, ast.If) and is_main_guard(s.test)), None)
    step: ast.Call | None = None
    step_text = ""
    call: ast.Call | None = None
    for node in ast.walk(syntax.tree):
        if not isinstance(node, ast.Call):
            continue
        name = called_name(node)
        if name in ("backward", "manual_backward") and isinstance(node.func, ast.Attribute):
            if step is None or node.lineno < step.lineno:
                step, step_text = node, f"{syntax.segment(node.func)}(...)"
        elif _TRAIN_CALL.match(name) and not _is_mode_switch(node) and (call is None or node.lineno < call.lineno):
            call = node
    runs = guard is not None or _runs_at_top(syntax.tree.body)
    if not runs:
        return None
    how = "a __main__ block" if guard is not None else "statements at its top level"
    if step is not None:
        return _script(path, step.lineno, f"it trains ({step_text}) and has {how}")
    if call is not None:
        text = syntax.segment(call.func).splitlines()[0]
        return _script(path, call.lineno, f"it calls {text}(...) and has {how}")
    if guard is not None and _script_name(path) and _imports_framework(syntax.tree):
        return _script(path, guard.lineno, f"its name says that it trains, and it has {how}")
    return None


def _script(path: str, line: int, reason: str) -> EntryPoint:
    return EntryPoint(
        kind=EntryPointKind.SCRIPT, path=path, line=line, providers=None, batch_size_line=None, reason=reason
    )


def _is_mode_switch(call: ast.Call) -> bool:
    """`model.train()` and `model.train(False)` switch a mode; `trainer.train()` trains."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "train"):
        return False
    if len(call.args) > 1 or call.keywords:
        return False
    if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, bool):
        return True
    owner = call.func.value
    last = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    if isinstance(owner, ast.Call):
        last = called_name(owner)
    return not re.search(r"train|learn|engine|runner|algo|agent|yolo", last, re.IGNORECASE)


def _runs_at_top(body: list[ast.stmt]) -> bool:
    """Whether the module does work when run, beyond definitions, imports and constants."""
    for statement in body:
        if isinstance(statement, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return True
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            return True
    return False


def _script_name(path: str) -> bool:
    stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
    return _SCRIPT_NAME.search(stem.lower()) is not None


def _imports_framework(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(_FRAMEWORK.match(alias.name.encode()) for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module and _FRAMEWORK.match(node.module.encode()):
            return True
    return False
