"""Which Python runs the project: the user's, not the server's, wherever one can be found."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_WINDOWS = os.name == "nt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The interpreter chosen for a project."""

    path: str
    reason: str
    """Why this one, to show to the user."""
    problem: str | None = None
    """What is wrong with it, with what to do; None when all is well."""


def find_interpreter(
    *,
    root: str,
    setting: str | None = None,
    near: str | None = None,
    remote: bool = False,
    environ: Mapping[str, str] = os.environ,
    own: str = sys.executable,
    windows: bool = _WINDOWS,
) -> Interpreter:
    """Choose the setting, else the project's own environment, else the active one, else the server's interpreter.

    `near` is the folder of the program: its environments come before the root's. With `remote`, the setting names a
    file on another machine and is not looked at here.
    """
    if setting is not None:
        return _from_setting(setting, root=root, remote=remote)
    for folder in _folders(near or root, root):
        for name in (".venv", "venv"):
            if (path := _python_in(os.path.join(folder, name), windows=windows)) is not None:
                return Interpreter(path=path, reason=f"the environment {os.path.join(folder, name)}")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable)
        if prefix and (path := _python_in(prefix, windows=windows)) is not None:
            return Interpreter(path=path, reason=f"the active environment ({variable})")
    return Interpreter(
        path=own, reason="the interpreter of skyline-lsp itself; no environment of the project was found"
    )


def expand(text: str, root: str) -> str:
    """A path from the settings: `~` and `${workspaceFolder}` filled in, relative paths taken from the root."""
    filled = os.path.expanduser(text.replace("${workspaceFolder}", root))
    return os.path.normpath(os.path.join(root, filled))


def _from_setting(setting: str, *, root: str, remote: bool) -> Interpreter:
    reason = "the setting `python`"
    if remote:
        return Interpreter(path=setting, reason=reason)
    if os.path.basename(setting) == setting and not setting.startswith("~"):
        found = shutil.which(setting)
        if found is not None:
            return Interpreter(path=found, reason=reason)
    path = expand(setting, root)
    if os.path.isfile(path):
        return Interpreter(path=path, reason=reason)
    problem = f"The setting `python` names {setting}, which is not there. Correct it, or remove it to have one found."
    return Interpreter(path=path, reason=reason, problem=problem)


def _folders(near: str, root: str) -> list[str]:
    """The folders from `near` up to the root."""
    folders = [near]
    while folders[-1] != root and (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders if folders[-1] == root else [root]


def _python_in(prefix: str, *, windows: bool) -> str | None:
    """The interpreter of a virtual or conda environment."""
    # A conda environment on Windows has its interpreter at the top.
    names = (("Scripts", "python.exe"), ("python.exe",)) if windows else (("bin", "python"), ("bin", "python3"))
    for name in names:
        path = os.path.join(prefix, *name)
        if os.path.isfile(path):
            return path
    return None
