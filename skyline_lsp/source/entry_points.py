"""What can be profiled: files with the three provider functions, and scripts that train."""

import ast
import enum
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skyline_lsp.source.files import Files
from skyline_lsp.source.syntax import SourceError, Syntax, called_name, is_main_guard, parse, top_level
from skyline_lsp.source.text import split_lines

PREFIXES = ("skyline", "deepview")
ROLES = ("model", "input", "iteration")

_PROVIDER = re.compile(rb"\b(?:skyline|deepview)_(?:model|input|iteration)_provider\b")
_FRAMEWORK = re.compile(
    rb"\b(?:torch|lightning|pytorch_lightning|transformers|accelerate|fastai|ignite|deepspeed|timm|ultralytics|trl)\b"
)
_TRAINS = re.compile(rb"backward|\bfit|train|learn|optim|main\(", re.IGNORECASE)
_TRAINS_OWN = re.compile(rb"\btrain\w*\(|\.backward\(")
_RUNS = re.compile(
    rb"__main__|^(?:for|while|with)\b|^[A-Za-z_][\w.]*\(|^try:\s+\w+\("
    rb"|^(?!def |class |async |from |import |[\s#@]).*(?:fit|train|run|learn)\w*\(",
    re.MULTILINE,
)
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
    trains = _script_name(path) or _TRAINS_OWN.search(data) or (_TRAINS.search(data) and _FRAMEWORK.search(data))
    if not provides and not (trains and _RUNS.search(data)):
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
    call: ast.Call | None = None
    for node in ast.walk(syntax.tree):
        if not isinstance(node, ast.Call):
            continue
        if _is_backward(node):
            step = node if step is None or node.lineno < step.lineno else step
        elif _starts_training(node) and (call is None or node.lineno < call.lineno):
            call = node
    if guard is None and not _runs_at_top(syntax.tree):
        return None
    how = "a __main__ block" if guard is not None else "statements at its top level"
    if step is not None:
        return _script(path, step.lineno, f"it trains ({_called(syntax, step)}) and has {how}")
    if call is not None:
        return _script(path, call.lineno, f"it calls {_called(syntax, call)} and has {how}")
    if "train" in posixpath.basename(path):
        named = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in syntax.tree.body)
    else:
        named = _script_name(path) and _imports_framework(syntax.tree)
    if guard is not None and named:
        return _script(path, guard.lineno, f"its name says that it trains, and it has {how}")
    return None


def _called(syntax: Syntax, call: ast.Call) -> str:
    return f"{split_lines(syntax.segment(call.func))[0]}(...)"


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "manual_backward")


def _starts_training(call: ast.Call) -> bool:
    """Whether a call's name says that it trains."""
    name = called_name(call)
    if name in ("run", "start", "main", "launch") and isinstance(call.func, ast.Attribute):
        return re.search(r"train|runner|learner", _owner(call.func), re.IGNORECASE) is not None
    return _TRAIN_CALL.match(name) is not None and not _is_mode_switch(call)


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
    return not re.search(r"train|learn|engine|runner|algo|agent|yolo", _owner(call.func), re.IGNORECASE)


def _owner(function: ast.Attribute) -> str:
    """The last name of what a method is called on."""
    owner = function.value
    if isinstance(owner, ast.Call):
        return called_name(owner)
    return owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""


def _runs_at_top(tree: ast.Module) -> bool:
    """Whether the module trains, or starts a function of its own, when it is run."""
    own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        pending: list[ast.AST] = [statement]
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, ast.Call):
                if _is_backward(node) or _starts_training(node):
                    return True
                given = {arg.id for arg in node.args if isinstance(arg, ast.Name)}
                if isinstance(statement, (ast.Expr, ast.For, ast.While, ast.If)) and called_name(node) in own:
                    return True
                if given & own:
                    return True
            pending.extend(ast.iter_child_nodes(node))
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
