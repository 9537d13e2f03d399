"""Which files are the user's own: those below the project's root that no tool put there."""

import os
import sys
import sysconfig
from collections.abc import Iterable

_NOT_OURS = frozenset(
    {".venv", "venv", "site-packages", "dist-packages", "node_modules", ".git", ".tox", ".nox", "__pypackages__"}
)
"""Folders whose content is installed or generated."""

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""This package: never the user's, even where its repository is the project."""


class Project:
    """The files below `root`. `files` are the user's as well, wherever they lie (the entry file).

    A file reached by a symbolic link belongs to the project where either its name or its target lies below the root.
    """

    def __init__(self, root: str, files: Iterable[str] = ()) -> None:
        self.root = os.path.abspath(root)
        self._roots = tuple(dict.fromkeys((self.root, os.path.realpath(root))))
        self._installations = tuple(
            path
            for path in {
                os.path.realpath(folder)
                for folder in (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), _OWN_FOLDER)
            }
            if any(_below(path, root) for root in self._roots)
        )
        self._files = frozenset(os.path.realpath(file) for file in files)
        self._environments: dict[str, bool] = {}
        self._places: dict[str, str | None] = {}

    def is_project(self, filename: str) -> bool:
        """Whether a code object's file is project code."""
        return self._place(filename) is not None

    def relative(self, filename: str) -> str:
        """The file relative to the project's root, with forward slashes; absolute where it lies elsewhere."""
        place = self._place(filename)
        return place if place is not None else os.path.abspath(filename).replace(os.sep, "/")

    def _place(self, filename: str) -> str | None:
        try:
            return self._places[filename]
        except KeyError:
            place = self._places[filename] = self._find(filename)
            return place

    def _find(self, filename: str) -> str | None:
        if not filename or filename.startswith("<"):
            return None
        # A relative name may be anything that was given to compile(); it counts where it names a file.
        if not os.path.isabs(filename) and not os.path.isfile(filename):
            return None
        real = os.path.realpath(filename)
        for path in dict.fromkeys((os.path.abspath(filename), real)):
            for root in self._roots:
                if _below(path, root) and self._is_users(path, root):
                    return path[len(root.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
        return real.replace(os.sep, "/") if real in self._files else None

    def _is_users(self, path: str, root: str) -> bool:
        real = os.path.realpath(path)
        if real not in self._files and any(_below(real, folder) for folder in self._installations):
            return False
        folder = os.path.dirname(path)
        while folder != root and _below(folder, root):
            if os.path.basename(folder) in _NOT_OURS or self._is_environment(folder):
                return False
            folder = os.path.dirname(folder)
        return True

    def _is_environment(self, folder: str) -> bool:
        """Whether a virtual or conda environment, of whatever name, begins at `folder`."""
        known = self._environments.get(folder)
        if known is None:
            known = self._environments[folder] = any(
                os.path.exists(os.path.join(folder, mark)) for mark in ("pyvenv.cfg", "conda-meta")
            )
        return known


def _below(path: str, folder: str) -> bool:
    return os.path.normcase(path).startswith(os.path.normcase(folder.rstrip(os.sep) + os.sep))
