"""Who imports whom: the code map of docs/architecture.md is what the code does."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "skyline_lsp"
ROW = re.compile(r"^\| (?P<names>`[^|]*) \|[^|]*\| (?P<imports>[^|]*) \|$", re.MULTILINE)
EVERYONES = {"", "skyline_lsp"}
"""The package itself, which holds its version."""
PURE = ("source", "prediction", "features", "reports")
# What reads the disk, the network, the clock or another process.
IMPURE = {"asyncio", "os", "random", "shutil", "socket", "subprocess", "tempfile", "threading", "time"}


def code_map() -> dict[str, set[str]]:
    """Layer -> the layers it may import, as the table says."""
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [
        ({name.removesuffix(".py") for name in re.findall(r"`([\w.]+)/?`", row["names"])}, row["imports"])
        for row in ROW.finditer(text)
    ]
    layers = set().union(*(names for names, _ in rows))
    allowed: dict[str, set[str]] = {}
    for names, words in rows:
        named = set(re.findall(r"`(\w+)`", words))
        for name in names:
            # What shares a row is one layer.
            allowed[name] = names | (layers - named if words.startswith("all but") else named)
    return allowed


def layer_of(path: Path) -> str:
    """The package, or the module, that a file belongs to."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts in (("__init__",), ("__main__",)) else parts[0]


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, at any depth, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            module = node.module or ""
            # `from skyline_lsp import protocol` imports a layer, too.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "skyline_lsp" else [module]
            yield from ((name, node.lineno) for name in names)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if "static" not in path.parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_the_layers_that_the_code_map_allows(path: Path) -> None:
    """And no other: `__main__` starts the command line."""
    allowed = code_map()
    layer = layer_of(path)
    assert layer in allowed or layer == "", f"{layer} has no row in the code map"
    for module, line in imports(path):
        top, _, rest = module.partition(".")
        if top == "skyline_lsp":
            wanted = rest.partition(".")[0]
            may = EVERYONES | {layer} | allowed.get(layer, {"cli"})
            if wanted in allowed:
                assert wanted in may, f"{path}:{line}: {layer} must not import {wanted}"
        elif top == "torch":
            assert layer == "worker", f"{path}:{line}: only the worker imports torch"
        elif top in ("pygls", "lsprotocol"):
            assert layer == "server", f"{path}:{line}: only the server knows pygls"


@pytest.mark.parametrize(
    "path", [p for p in FILES if layer_of(p) in PURE], ids=lambda p: p.relative_to(PACKAGE).as_posix()
)
def test_pure_layers_reach_for_nothing(path: Path) -> None:
    """No disk, no clock, no process: values in, values out."""
    for module, line in imports(path):
        assert module.partition(".")[0] not in IMPURE, f"{path}:{line}: {module}"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "pathlib":
            assert all(alias.name.startswith("Pure") for alias in node.names), f"{path}:{node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "input", "print"), f"{path}:{node.lineno}: {node.func.id}()"


@pytest.mark.parametrize("layer", ["worker", "protocol"])
def test_what_runs_in_the_users_interpreter_needs_nothing_installed(layer: str) -> None:
    """The standard library, torch where it is the worker's, and the protocol."""
    known = set(sys.stdlib_module_names) | {"skyline_lsp"} | ({"torch"} if layer == "worker" else set())
    for path in (PACKAGE / layer).rglob("*.py"):
        for module, line in imports(path):
            assert module.partition(".")[0] in known, f"{path}:{line}: {module}"


def test_the_server_never_imports_torch() -> None:
    """Started, greeted, with a document open and its features asked for."""
    program = """
import asyncio, json, sys
from skyline_lsp.server.app import Server
from skyline_lsp.server.transport import SkylineProtocol

class Writer:
    def write(self, data): answers.append(data)
    def close(self): pass

class Reader:
    def __init__(self, data): self.data = data
    async def readline(self):
        line, _, self.data = self.data.partition(b"\\n")
        return line + b"\\n" if line or self.data else b""
    async def readexactly(self, n):
        part, self.data = self.data[:n], self.data[n:]
        await asyncio.sleep(0)
        return part

def message(method, params, identity=None):
    body = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if identity is None else {"id": identity})
    text = json.dumps(body).encode()
    return b"Content-Length: %d\\r\\n\\r\\n%s" % (len(text), text)

answers = []
document = {"uri": "file:///nowhere/train.py", "languageId": "python", "version": 1, "text": "import torch\\n"}
at = {"textDocument": {"uri": document["uri"]}}
data = b"".join((
    message("initialize", {"capabilities": {}, "processId": None, "rootUri": "file:///nowhere"}, 1),
    message("initialized", {}),
    message("textDocument/didOpen", {"textDocument": document}),
    message("textDocument/codeLens", at, 2),
    message("textDocument/hover", at | {"position": {"line": 0, "character": 0}}, 3),
    message("shutdown", None, 4),
    message("exit", None),
))
code = asyncio.run(Server().protocol.serve(Reader(data), Writer()))
assert code == 0 and len(answers) >= 4, (code, answers)
loaded = sorted(name for name in sys.modules if name.partition(".")[0] in ("torch", "functorch", "torchgen"))
assert not loaded, loaded
assert "skyline_lsp.worker" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PROJECT, timeout=120)


def test_what_the_command_line_shares_with_the_server_needs_no_pygls() -> None:
    """The worker's client, settings, files and cache load in a fraction of the time."""
    modules = ("cache", "interpreter", "project_files", "settings", "worker_client", "workloads")
    lines = [f"import skyline_lsp.server.{module}" for module in modules]
    check = "import sys; assert not {'pygls', 'lsprotocol', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", "\n".join([*lines, check])], check=True, cwd=PROJECT, timeout=120)
