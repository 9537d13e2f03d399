"""The workload of a provider file: a model, its inputs and one training step, each from a function of the user's.

Skyline's names are `skyline_*_provider`, DeepView's `deepview_*_provider`. The functions may be defined in the file
or imported into it. Each is checked, and what is wrong is said at the function's own line.
"""

import ast
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType
from typing import Any, NoReturn, TypeVar

import torch

from skyline_lsp.protocol import Failure, FailureKind, Frame, Stage
from skyline_lsp.worker.channel import PipeReporter
from skyline_lsp.worker.failures import ProfilerFault, Refused, function_name
from skyline_lsp.worker.measurement import Measurement
from skyline_lsp.worker.project import Project
from skyline_lsp.worker.sources import Sources

_T = TypeVar("_T")

PREFIXES = ("skyline", "deepview")
_ROLES = ("model", "input", "iteration")
_SIGNATURES = {
    "model": "def {name}(): ... return model",
    "input": "def {name}(batch_size=32): ... return (inputs, targets)",
    "iteration": "def {name}(model): ... return iteration",
}


class ProviderWorkload:
    """A provider file, loaded as a module of its own name."""

    def __init__(self, path: str, batch_size: int | None, project: Project, sources: Sources) -> None:
        self._path = path
        self._batch_size = batch_size
        self._project = project
        self._sources = sources

    def run(self, measurement: Measurement, reporter: PipeReporter) -> None:
        """Load, check, and iterate until the measurement has what it wants. Raises what the user's code raises."""
        name = os.path.basename(self._path)
        reporter.progress(Stage.LOADING, f"loading {name}")
        module = self._load()
        providers = self._find_providers(module)
        reporter.progress(Stage.LOADING, "building the model")
        model = self._model(providers["model"])
        inputs, batch_size = self._inputs(providers["input"])
        iteration = self._iteration(providers["iteration"], model)
        measurement.add_model(model)
        measurement.batch_size = batch_size
        self._iterate(iteration, inputs, measurement)

    # -- loading -----------------------------------------------------------------------------------------------

    def _load(self) -> ModuleType:
        folder = os.path.dirname(self._path)
        sys.path.insert(0, folder)
        # The last resort: a provider file below the root may import the project's packages without installing them.
        if self._project.root not in sys.path:
            sys.path.append(self._project.root)
        stem = os.path.splitext(os.path.basename(self._path))[0]
        taken = stem in sys.modules or not stem.isidentifier()
        name = f"_skyline_{stem}" if taken else stem
        spec = importlib.util.spec_from_file_location(name, self._path)
        if spec is None:
            raise self._refusal(FailureKind.MISSING_PROVIDER, "A provider file is Python source, ending in .py.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        # Processes that `multiprocessing` spawns load what is `__main__` here: not the worker.
        sys.modules["__main__"] = ModuleType("__main__")
        sys.argv = [self._path]
        exec(self._sources.compile_file(self._path), module.__dict__)
        return module

    def _find_providers(self, module: ModuleType) -> dict[str, Any]:
        names = vars(module)
        prefix = max(PREFIXES, key=lambda one: sum(f"{one}_{role}_provider" in names for role in _ROLES))
        found: dict[str, Any] = {}
        missing: list[str] = []
        for role in _ROLES:
            name = f"{prefix}_{role}_provider"
            if name in names:
                found[role] = names[name]
            else:
                missing.append(f"`{name}` is missing; add `{_SIGNATURES[role].format(name=name)}`")
        if missing:
            raise self._refusal(FailureKind.MISSING_PROVIDER, "; ".join(missing) + ".")
        for role, function in found.items():
            if not callable(function):
                name = f"{prefix}_{role}_provider"
                message = f"`{name}` is {_a(function)}, not a function. Write `{_SIGNATURES[role].format(name=name)}`."
                raise self._refusal(FailureKind.BAD_PROVIDER, message, _binding_line(self._path, name))
        self._prefix = prefix
        return found

    # -- the three functions -----------------------------------------------------------------------------------

    def _model(self, provider: Callable[..., Any]) -> Callable[..., Any]:
        name = self._name("model")
        self._check_arguments(provider, "model", (), "takes no parameters")
        model = provider()
        if not callable(model):
            self._refuse(provider, f"`{name}` returned {_a(model)}; it must return the model, such as an nn.Module.")
        result: Callable[..., Any] = model
        return result

    def _inputs(self, provider: Callable[..., Any]) -> tuple[tuple[Any, ...], int]:
        name = self._name("input")
        signature = self._signature(provider, "input")
        if list(signature.parameters) != ["batch_size"]:
            self._refuse(provider, f"`{name}` takes exactly one parameter, `batch_size`, with a default such as 32.")
        default = signature.parameters["batch_size"].default
        if default is inspect.Parameter.empty:
            self._refuse(provider, f"`batch_size` has no default in `{name}`; add one, such as `batch_size=32`.")
        if type(default) is not int or default < 1:
            self._refuse(
                provider, f"The default of `batch_size` in `{name}` is {default!r}; it must be an int of 1 or more."
            )
        batch_size = default if self._batch_size is None else self._batch_size
        inputs = provider() if self._batch_size is None else provider(batch_size=batch_size)
        if isinstance(inputs, torch.Tensor):
            self._refuse(
                provider,
                f"`{name}` returned a bare tensor; wrap it in a tuple, `return (inputs,)`, since the iteration is "
                "called as `iteration(*inputs)`.",
            )
        if isinstance(inputs, (dict, str, bytes)):
            self._refuse(
                provider,
                f"`{name}` returned {_a(inputs)}; return a tuple, since the iteration is called as "
                "`iteration(*inputs)`.",
            )
        if not isinstance(inputs, Iterable):
            self._refuse(provider, f"`{name}` returned {_a(inputs)}; it must return a tuple of the iteration's inputs.")
        return tuple(inputs), batch_size

    def _iteration(self, provider: Callable[..., Any], model: Any) -> Callable[..., Any]:
        name = self._name("iteration")
        self._check_arguments(provider, "iteration", (model,), "takes one parameter, the model")
        iteration = provider(model)
        if not callable(iteration):
            self._refuse(
                provider,
                f"`{name}` returned {_a(iteration)}; it must return a function that runs one training step, "
                "`return iteration`.",
            )
        result: Callable[..., Any] = iteration
        return result

    def _iterate(self, iteration: Callable[..., Any], inputs: tuple[Any, ...], measurement: Measurement) -> None:
        try:
            inspect.signature(iteration).bind(*inputs)
        except TypeError as error:
            name = getattr(iteration, "__name__", "iteration")
            self._refuse(
                iteration,
                f"`{self._name('input')}` returned {len(inputs)} input{'s' if len(inputs) != 1 else ''}, which "
                f"`{name}` can't be called with: {error}.",
            )
        except ValueError:
            pass  # a builtin without a signature
        _measuring(measurement.begin)
        while True:
            iteration(*inputs)
            if _measuring(measurement.boundary):
                return

    # -- refusals ----------------------------------------------------------------------------------------------

    def _name(self, role: str) -> str:
        return f"{self._prefix}_{role}_provider"

    def _signature(self, provider: Callable[..., Any], role: str) -> inspect.Signature:
        try:
            return inspect.signature(provider)
        except (TypeError, ValueError):
            self._refuse(provider, f"`{self._name(role)}` is {_a(provider)}; make it a function.")

    def _check_arguments(
        self, provider: Callable[..., Any], role: str, arguments: tuple[Any, ...], wanted: str
    ) -> None:
        try:
            self._signature(provider, role).bind(*arguments)
        except TypeError:
            name = self._name(role)
            self._refuse(provider, f"`{name}` {wanted}: `{_SIGNATURES[role].format(name=name)}`.")

    def _refuse(self, function: Callable[..., Any], message: str) -> NoReturn:
        raise Refused(
            Failure(kind=FailureKind.BAD_PROVIDER, message=message, frames=(self._definition(function),))
        ) from None

    def _refusal(self, kind: FailureKind, message: str, line: int = 1) -> Refused:
        frame = Frame(path=self._path, line=line, function="<module>")
        return Refused(Failure(kind=kind, message=message, frames=(frame,)))

    def _definition(self, function: Callable[..., Any]) -> Frame:
        """Where a function is defined, in whichever project file; else where its name is bound in the entry file."""
        unwrapped = inspect.unwrap(function)
        unwrapped = getattr(unwrapped, "__func__", unwrapped)
        code = getattr(unwrapped, "__code__", None)
        if isinstance(code, CodeType) and self._project.is_project(code.co_filename):
            return Frame(path=code.co_filename, line=_def_line(code), function=function_name(code))
        name = getattr(function, "__name__", "")
        return Frame(path=self._path, line=_binding_line(self._path, name), function="<module>")


def _measuring(step: Callable[[], _T]) -> _T:
    try:
        return step()
    except Exception as error:
        raise ProfilerFault(error) from error


def _a(value: object) -> str:
    """The value's kind in words, such as "a list"."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _def_line(code: CodeType) -> int:
    """Line of the `def` itself: a code object begins at its first decorator."""
    for node in _nodes(code.co_filename):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.name == code.co_name
            and min([node.lineno, *(one.lineno for one in node.decorator_list)]) == code.co_firstlineno
        ):
            return node.lineno
    return code.co_firstlineno


def _binding_line(path: str, name: str) -> int:
    """The last line at a file's top level that binds `name`; 1 where none does."""
    line = 1
    for node in _nodes(path):
        targets: list[ast.expr] = []
        names: list[str | None] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
        if name in names:
            line = max(line, getattr(node, "lineno", 1))
    return line


def _nodes(path: str) -> list[ast.AST]:
    try:
        with open(path, "rb") as file:
            return list(ast.walk(ast.parse(file.read(), path)))
    except (OSError, SyntaxError, ValueError):
        return []
