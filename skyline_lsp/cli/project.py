"""The project that a command works on: its root, files, settings, interpreter and program."""

import argparse
import os
from dataclasses import dataclass, replace

from skyline_lsp.cli.failures import UsageError
from skyline_lsp.protocol import Entry, EntryKind
from skyline_lsp.server.interpreter import Interpreter, find_interpreter
from skyline_lsp.server.project_files import ProjectFiles, find_root
from skyline_lsp.server.settings import Reading, Settings, read_settings
from skyline_lsp.server.workloads import module_file
from skyline_lsp.source import EntryPoint, EntryPointKind, find_entry_point


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder and how its programs are run."""

    root: str
    """Absolute."""
    files: ProjectFiles
    reading: Reading
    interpreter: Interpreter

    @property
    def settings(self) -> Settings:
        """What the project's pyproject.toml sets, and the defaults."""
        return self.reading.settings

    def shown(self, path: str) -> str:
        """A path for the user, as one would type it here."""
        near = os.path.relpath(path)
        return path if near.startswith(os.pardir + os.sep + os.pardir) else near


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program of a project."""

    project: Project
    path: str
    """Absolute."""
    entry_point: EntryPoint | None
    """None where nothing in the file says that it can be profiled; running it tells."""
    arguments: tuple[str, ...]
    module: str | None = None
    """The name that `python -m` would be given, where it is run that way."""

    @property
    def entry(self) -> Entry:
        """How the worker starts it."""
        provider = self.entry_point is not None and self.entry_point.kind is EntryPointKind.PROVIDER
        otherwise = EntryKind.SCRIPT if self.module is None else EntryKind.MODULE
        return Entry(
            kind=EntryKind.PROVIDER if provider else otherwise,
            path=self.path,
            module=None if provider else self.module,
            arguments=self.arguments,
            # As under `python train.py`: what the arguments name is looked up from where the command is given.
            working_directory=None if provider else os.getcwd(),
        )


def open_project(start: str, *, root: str | None, python: str | None) -> Project:
    """The project that the folder `start` belongs to. Raises `UsageError`."""
    if root is not None and not os.path.isdir(root):
        raise UsageError(f"--root: {root} is not a folder")
    folder = os.path.realpath(root) if root is not None else find_root(os.path.realpath(start))
    files = ProjectFiles(folder)
    reading = read_settings(pyproject=files.read(os.path.join(folder, "pyproject.toml")))
    interpreter = find_interpreter(root=folder, setting=_python(python), near=start)
    if python is not None:
        interpreter = replace(interpreter, reason="--python")
    return Project(root=folder, files=files, reading=reading, interpreter=interpreter)


def open_program(arguments: argparse.Namespace) -> Program:
    """The program that a command line names. Raises `UsageError`."""
    module = arguments.file if getattr(arguments, "as_module", False) else None
    path = os.path.realpath(arguments.file if module is None else module_file(module, os.getcwd()))
    if not os.path.isfile(path) and module is not None:
        raise UsageError(f"-m {module}: there is no such module below the folder that you are in")
    if not os.path.isfile(path):
        raise UsageError(f"{arguments.file}: there is no such file")
    # The folder of a module is a part of a package only.
    start = os.path.dirname(path) if module is None else os.getcwd()
    project = open_project(start, root=arguments.root, python=arguments.python)
    if not project.files.holds(path):
        raise UsageError(f"{arguments.file} is not below the root, {project.root}")
    if project.interpreter.problem is not None:
        raise UsageError(f"--python: {project.interpreter.path}: there is no such file")
    data = project.files.read(path)
    return Program(
        project=project,
        path=path,
        entry_point=find_entry_point(path, data) if data is not None else None,
        arguments=arguments.program_arguments,
        module=module,
    )


def _python(given: str | None) -> str | None:
    """`--python` is relative to where the command is given, the setting to the root."""
    if given is None or os.path.basename(given) == given:
        return given
    return os.path.abspath(os.path.expanduser(given))
