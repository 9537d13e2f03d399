"""In what a literal of Python source stands, and which literals speak of a batch size by their name alone."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from skyline_lsp.source.dataflow.values import names_batch_size
from skyline_lsp.source.site import SiteKind
from skyline_lsp.source.syntax import Syntax, called_name, dotted_name, parents

Role = tuple[SiteKind, str, str]

_NUMBER = re.compile(r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*")
_LOADER = re.compile(r"(?:Data)?Loader$|DataLoader")
_PASSED_THROUGH = {"int", "min", "max", "round", "float", "abs", "str", "ceil", "floor"}
_RECORD = re.compile(
    r"dataclass|NamedTuple|BaseModel|BaseSettings|TypedDict|attrs?\b|define|frozen|\bTap\b|Struct|Args"
)
_TRAINING = re.compile(r"TrainingArguments$|^(?:SFT|DPO|Reward|ORPO|KTO|GRPO)Config$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A literal's position and meaning."""

    line: int
    """1-based."""
    column: int
    """0-based, in code points."""
    start: int
    """Byte offset in the file's bytes."""
    end: int
    text: str
    value: int
    kind: SiteKind
    name: str
    description: str
    problem: str
    """Why it can't be edited; empty where it can."""


def find_place(syntax: Syntax, node: ast.expr, role: Role | None = None) -> Place | None:
    """Where and what a literal is; None where its text is no plain number."""
    line, column = syntax.start(node)
    text = syntax.segment(node)
    value: int
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        quoted = re.fullmatch(r"""(['"])([0-9]+)\1""", text)
        if quoted is None:
            return None
        text, column, value = quoted.group(2), column + 1, int(node.value)
    elif isinstance(node, ast.Constant) and node.value is None:
        value = 0
    elif isinstance(node, ast.UnaryOp):
        value = -1 if text == "-1" else 0
        if value == 0:
            return None
    elif _NUMBER.fullmatch(text) and isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = node.value
    else:
        return None
    kind, name, description, in_expression = _meaning(syntax, node)
    if role is not None:
        kind, name, description = role
    if in_expression:
        kind = SiteKind.EXPRESSION
    return Place(
        line=line,
        column=column,
        start=syntax.source.byte_offset(line, column),
        end=syntax.source.byte_offset(line, column + len(text)),
        text=text,
        value=value,
        kind=kind,
        name=name,
        description=description,
        problem="",
    )


def named_literals(syntax: Syntax) -> Iterator[Place]:
    """Integer literals whose own name speaks of a batch size, in order."""
    for node in ast.walk(syntax.tree):
        above = parents(syntax.tree).get(id(node))
        if isinstance(node, ast.Constant) and type(node.value) is int and not isinstance(above, ast.UnaryOp):
            place = find_place(syntax, node)
            if place is None or place.kind is SiteKind.EXPRESSION or place.value < 1:
                continue
            if names_batch_size(place.name):
                yield place


def _meaning(syntax: Syntax, node: ast.expr) -> tuple[SiteKind, str, str, bool]:
    """Kind, name, description, and whether the literal is part of a calculation."""
    above = parents(syntax.tree)
    child: ast.AST = node
    calculated = False
    while True:
        parent = above.get(id(child))
        if parent is None:
            return SiteKind.EXPRESSION, syntax.segment(node), f"`{syntax.segment(node)}`", calculated
        if isinstance(parent, (ast.BinOp, ast.UnaryOp)):
            calculated = calculated or isinstance(parent, ast.BinOp)
        elif isinstance(parent, (ast.BoolOp, ast.IfExp, ast.Starred, ast.Set)):
            pass
        elif isinstance(parent, (ast.Tuple, ast.List)):
            named = _element_target(above, parent, child)
            if named is not None:
                return (*named, calculated)
        elif isinstance(parent, ast.Call):
            found = _argument(syntax, above, parent, child)
            if found is not None:
                return (*found, calculated)
        elif isinstance(parent, ast.keyword):
            call = above.get(id(parent))
            if isinstance(call, ast.Call) and parent.arg is not None:
                return (*_keyword(syntax, above, call, parent.arg), calculated)
        elif isinstance(parent, ast.Dict):
            return (*_entry(above, parent, child), calculated)
        elif isinstance(parent, ast.arguments):
            return (*_default(above, parent, child), calculated)
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
            return (*_assigned(syntax, above, parent, target), calculated)
        elif isinstance(parent, ast.Return):
            function = _enclosing(above, parent, (ast.FunctionDef, ast.AsyncFunctionDef))
            name = function.name if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else "return"
            return SiteKind.CONSTANT, name, f"what {name} returns", calculated
        elif isinstance(parent, ast.Lambda):
            pass
        elif isinstance(parent, ast.stmt):
            return SiteKind.EXPRESSION, syntax.segment(node), f"`{syntax.segment(node)}`", True
        child = parent


def _element_target(
    above: dict[int, ast.AST], parent: ast.Tuple | ast.List, child: ast.AST
) -> tuple[SiteKind, str, str] | None:
    """The name that a tuple's element is assigned to: `epochs, batch_size = 3, 32`."""
    statement = above.get(id(parent))
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return None
    targets = statement.targets[0].elts
    at = next((i for i, item in enumerate(parent.elts) if item is child), -1)
    if 0 <= at < len(targets):
        target = targets[at]
        name = dotted_name(target)
        if name:
            kind = SiteKind.ATTRIBUTE if isinstance(target, ast.Attribute) else SiteKind.CONSTANT
            return kind, name, name
    return None


def _argument(
    syntax: Syntax, above: dict[int, ast.AST], call: ast.Call, child: ast.AST
) -> tuple[SiteKind, str, str] | None:
    """A positional argument; None where the call only converts it."""
    name = called_name(call)
    if name in _PASSED_THROUGH or child is call.func:
        return None
    dotted = dotted_name(call.func) or name
    if name in ("getenv", "get", "setdefault") and ("environ" in dotted or name == "getenv"):
        variable = str(call.args[0].value) if call.args and isinstance(call.args[0], ast.Constant) else "a variable"
        return SiteKind.ENVIRONMENT_DEFAULT, variable, f"default of the environment variable {variable}"
    if name in ("get", "pop", "setdefault") and len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
        key = str(call.args[0].value)
        return SiteKind.DICT_ENTRY, key, f"what {dotted}({key!r}, ...) falls back on"
    if name == "getattr" and len(call.args) == 3 and isinstance(call.args[1], ast.Constant):
        attribute = str(call.args[1].value)
        return SiteKind.CALL_ARGUMENT, attribute, f"what getattr falls back on for {attribute}"
    if name in ("field", "Field", "ib", "attrib"):
        field_name = _field_name(above, call)
        if field_name:
            return SiteKind.DATACLASS_FIELD, field_name, _field_description(above, call, field_name)
    if name == "setattr" and len(call.args) == 3 and isinstance(call.args[1], ast.Constant):
        return SiteKind.ATTRIBUTE, str(call.args[1].value), str(call.args[1].value)
    if _LOADER.search(name):
        return SiteKind.DATALOADER, "batch_size", f"batch_size of {name} at line {call.lineno}"
    return SiteKind.CALL_ARGUMENT, name or "argument", f"an argument of {dotted or 'a call'} at line {call.lineno}"


def _keyword(syntax: Syntax, above: dict[int, ast.AST], call: ast.Call, keyword: str) -> tuple[SiteKind, str, str]:
    name = called_name(call)
    dotted = dotted_name(call.func) or name
    if name in ("dict", "OrderedDict", "update") and isinstance(call.func, (ast.Name, ast.Attribute)):
        return SiteKind.DICT_ENTRY, keyword, f"{keyword} of {dotted}(...)"
    if name in ("field", "Field", "ib", "attrib") and keyword == "default":
        field_name = _field_name(above, call)
        if field_name:
            return SiteKind.DATACLASS_FIELD, field_name, _field_description(above, call, field_name)
    if keyword == "default" and name in ("add_argument", "option", "argument", "Option"):
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        flag = max(flags, key=len) if flags else name
        kind = SiteKind.ARGPARSE if name == "add_argument" else SiteKind.CLICK if name != "Option" else SiteKind.TYPER
        return kind, flag, f"default of {flag}"
    if name.startswith("DEFINE_") and keyword == "default" and call.args and isinstance(call.args[0], ast.Constant):
        flag = f"--{call.args[0].value!s}"
        return SiteKind.ABSL, flag, f"default of {flag}"
    if _LOADER.search(name):
        return SiteKind.DATALOADER, keyword, f"{keyword} of {name} at line {call.lineno}"
    if _TRAINING.search(name):
        return SiteKind.TRAINING_ARGUMENTS, keyword, f"{keyword} of {name}"
    return SiteKind.CALL_KEYWORD, keyword, f"{keyword} of {dotted or 'a call'}(...)"


def _entry(above: dict[int, ast.AST], node: ast.Dict, child: ast.AST) -> tuple[SiteKind, str, str]:
    keys: list[str] = []
    at: ast.AST = child
    holder: ast.AST | None = node
    while isinstance(holder, ast.Dict):
        index = next((i for i, value in enumerate(holder.values) if value is at), -1)
        key = holder.keys[index] if index >= 0 else None
        keys.insert(0, str(key.value) if isinstance(key, ast.Constant) else "...")
        at, holder = holder, above.get(id(holder))
    name = ".".join(keys)
    target = ""
    if isinstance(holder, (ast.Assign, ast.AnnAssign)):
        first = holder.targets[0] if isinstance(holder, ast.Assign) else holder.target
        target = dotted_name(first)
    return SiteKind.DICT_ENTRY, name, f"entry {name} of {target}" if target else f"entry {name}"


def _default(above: dict[int, ast.AST], arguments: ast.arguments, child: ast.AST) -> tuple[SiteKind, str, str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(positional[::-1], arguments.defaults[::-1], strict=False))
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    name = next((parameter.arg for parameter, default in pairs if default is child), "a parameter")
    function = above.get(id(arguments))
    owner = function.name if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else "a function"
    if owner == "__init__":
        cls = _enclosing(above, function, (ast.ClassDef,)) if function is not None else None
        owner = cls.name if isinstance(cls, ast.ClassDef) else owner
    return SiteKind.FUNCTION_DEFAULT, name, f"default of {name} in {owner}"


def _assigned(
    syntax: Syntax, above: dict[int, ast.AST], statement: ast.AST, target: ast.expr
) -> tuple[SiteKind, str, str]:
    if isinstance(target, ast.Attribute):
        name = dotted_name(target) or target.attr
        return SiteKind.ATTRIBUTE, name, name
    if isinstance(target, ast.Subscript):
        keys: list[str] = []
        at: ast.expr = target
        while isinstance(at, ast.Subscript):
            keys.insert(0, str(at.slice.value) if isinstance(at.slice, ast.Constant) else "...")
            at = at.value
        name = ".".join(keys)
        return SiteKind.DICT_ENTRY, name, f"entry {name} of {dotted_name(at) or 'a dictionary'}"
    name = dotted_name(target) or "a value"
    owner = above.get(id(statement))
    while isinstance(owner, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
        owner = above.get(id(owner))
    if isinstance(owner, ast.ClassDef):
        return _field_kind(owner, statement), name, f"{owner.name}.{name}"
    if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return SiteKind.CONSTANT, name, f"{name} in {owner.name}"
    return SiteKind.CONSTANT, name, name


def _field_kind(owner: ast.ClassDef, statement: ast.AST) -> SiteKind:
    told = " ".join(ast.unparse(node) for node in (*owner.decorator_list, *owner.bases))
    if isinstance(statement, ast.AnnAssign) and _RECORD.search(told):
        return SiteKind.DATACLASS_FIELD
    return SiteKind.CLASS_ATTRIBUTE


def _field_name(above: dict[int, ast.AST], call: ast.Call) -> str:
    statement = above.get(id(call))
    if isinstance(statement, ast.AnnAssign):
        return dotted_name(statement.target)
    if isinstance(statement, ast.Assign):
        return dotted_name(statement.targets[0])
    return ""


def _field_description(above: dict[int, ast.AST], call: ast.Call, name: str) -> str:
    owner = _enclosing(above, call, (ast.ClassDef,))
    return f"{owner.name}.{name}" if isinstance(owner, ast.ClassDef) else name


def _enclosing(above: dict[int, ast.AST], node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
    at = above.get(id(node))
    while at is not None and not isinstance(at, kinds):
        at = above.get(id(at))
    return at
