"""Small projects for tests: written as text with the expected site marked, or lying on the disk."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from skyline_lsp.source import Site

ROOT = "/project"

_FILE = re.compile(r"^@@ (.+)\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MemoryFiles:
    """A project of the test's own."""

    files: dict[str, bytes]
    root: str = ROOT

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(path for path in self.files if path.endswith(suffixes)))


@dataclass(frozen=True)
class DiskFiles:
    """A project on the disk."""

    root: str

    def read(self, path: str) -> bytes | None:
        return Path(path).read_bytes() if os.path.isfile(path) else None

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [os.path.join(folder, name) for name in names if name.endswith(suffixes)]
        return tuple(sorted(found))


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Where a fixture says that the site is."""

    path: str
    line: int
    column: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fixture: files after `@@ name` lines, the literal to find between double brackets; above them, `key: value`."""

    files: MemoryFiles
    entry: str
    mark: Mark | None
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.settings.get("arguments", "").split())


def read_case(text: str) -> Case:
    """Read a fixture; text without any `@@` line is one file, train.py."""
    head, *parts = _FILE.split(text) if _FILE.search(text) else ["", "train.py", text]
    settings = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    files: dict[str, bytes] = {}
    mark: Mark | None = None
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        path = f"{ROOT}/{name}"
        if "⟦" in body:
            start, end = body.index("⟦"), body.index("⟧")
            line_start = body.rfind("\n", 0, start) + 1
            mark = Mark(
                path=path,
                line=body.count("\n", 0, start) + 1,
                column=start - line_start + 1,
                text=body[start + 1 : end],
            )
            body = body.replace("⟦", "").replace("⟧", "")
        files[path] = body.encode()
    return Case(files=MemoryFiles(files=files), entry=f"{ROOT}/{parts[0]}", mark=mark, settings=settings)


def mark_of(site: Site) -> Mark:
    """A site's place, to compare with a mark."""
    return Mark(path=site.path, line=site.line, column=site.column, text=site.text)
