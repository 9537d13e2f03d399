"""Modules of the project: which file an import means, and its syntax."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from skyline_lsp.source.dataflow.values import Module
from skyline_lsp.source.files import Files
from skyline_lsp.source.syntax import SourceError, Syntax, parse

if TYPE_CHECKING:
    from skyline_lsp.source.dataflow.interpreter import Run


def normal(path: str) -> str:
    """An absolute path with forward slashes, `.` and `..` taken out."""
    return posixpath.normpath(path.replace("\\", "/"))


def is_absolute(path: str) -> bool:
    """Whether a path with forward slashes starts at a root, or at a drive."""
    return path.startswith("/") or path[1:3] == ":/"


class Modules:
    """Finds the project's modules as Python would with the entry's folder and the root on `sys.path`."""

    def __init__(self, files: Files, entry_path: str) -> None:
        self._files = files
        self._root = normal(files.root)
        self.search_path: list[str] = [posixpath.dirname(entry_path), self._root, posixpath.join(self._root, "src")]
        self.loaded: dict[str, Module] = {}
        """By path; a module stands here from the start of its import."""
        self._index: dict[str, list[str]] | None = None
        self._folders: set[str] = set()

    def native_path(self, path: str) -> str:
        """The path as `Files` gives it, for one with forward slashes."""
        return path.replace("/", "\\") if "\\" in self._files.root else path

    def syntax(self, path: str) -> Syntax | None:
        """A file's syntax; None where it is absent or broken."""
        data = self._files.read(self.native_path(path))
        if data is None:
            return None
        try:
            return parse(data)
        except SourceError:
            return None

    def find(self, name: str, search: list[str] | None = None) -> tuple[str, bool] | None:
        """The file of a module and whether it is a package; a folder without `__init__.py` ends with a slash."""
        relative = name.replace(".", "/")
        for folder in self.search_path if search is None else search:
            found = self._at(posixpath.join(folder, relative))
            if found is not None:
                return found
        if search is not None:
            return None
        # Started from elsewhere than its folder, or with a path put on sys.path in a way that is not followed: the
        # shallowest file that ends so.
        first = relative.split("/")[0]
        for folder in self._folders_of(first):
            found = self._at(posixpath.join(folder, relative))
            if found is not None:
                return found
        return None

    def submodule(self, run: Run, module: Module, name: str) -> Module | None:
        """A module inside a package, where it was imported already."""
        found = self._at(posixpath.join(posixpath.dirname(module.path), name)) if module.is_package else None
        return self.loaded.get(found[0]) if found is not None else None

    def _at(self, base: str) -> tuple[str, bool] | None:
        base = normal(base)
        for path, package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if self._exists(path):
                return path, package
        return (f"{base}/", True) if base in self._folders else None

    def _exists(self, path: str) -> bool:
        index = self._paths()
        return posixpath.basename(path) in index.get(posixpath.dirname(path), ())

    def _paths(self) -> dict[str, list[str]]:
        if self._index is None:
            self._index = {}
            for path in self._files.paths((".py",)):
                clean = normal(path)
                folder = posixpath.dirname(clean)
                self._index.setdefault(folder, []).append(posixpath.basename(clean))
                while folder.startswith(f"{self._root}/") and folder not in self._folders:
                    self._folders.add(folder)
                    folder = posixpath.dirname(folder)
        return self._index

    def _folders_of(self, first: str) -> list[str]:
        index = self._paths()
        found = [folder for folder, names in index.items() if f"{first}.py" in names]
        found += [posixpath.dirname(folder) for folder in index if posixpath.basename(folder) == first]
        return sorted(set(found), key=lambda folder: (folder.count("/"), folder))
