"""The project's files: what the editor has open shadows what is on disk.

The one place where features' questions about source text meet the file system.
"""

import io
import os
import tokenize
from collections import deque
from collections.abc import Iterator
from typing import Final

from skyline_lsp.server.documents import Document, Documents, path_key

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Larger files are data, or generated: nobody writes a batch size there."""

_MAX_ENTRIES: Final = 200_000
_ENTRIES_A_TICK: Final = 256
_BOM: Final = b"\xef\xbb\xbf"
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "__pypackages__", "build", "dist", "venv"})
# Files that a virtual or conda environment holds at its top, whatever its folder is called.
_ENVIRONMENT_MARKS: Final = ("pyvenv.cfg", "conda-meta")


class ProjectFiles:
    """Files below one root; implements `skyline_lsp.source.Files`."""

    def __init__(self, root: str, documents: Documents | None = None) -> None:
        self.root = root
        self._documents = documents if documents is not None else Documents()
        self._contents: dict[str, tuple[tuple[int, int], bytes]] = {}
        self._listing: tuple[str, ...] | None = None

    def read(self, path: str) -> bytes | None:
        """Bytes of a file as the editor would save it; None where it is absent or too big."""
        document = self._documents.at_path(path)
        on_disk = self.read_disk(path)
        return on_disk if document is None else encode_document(document, on_disk)

    def read_disk(self, path: str) -> bytes | None:
        """Bytes of a file as a run of it would find them; None where it is absent or too big."""
        try:
            status = os.stat(path)
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._contents.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            if status.st_size > MAX_FILE_BYTES:
                return None
            with open(path, "rb") as file:
                data = file.read()
        except (OSError, ValueError):
            self._contents.pop(path, None)
            return None
        self._contents[path] = (stamp, data)
        return data

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """Absolute paths of the project's files that end so, sorted; environments and hidden folders left out."""
        if self._listing is None:
            self._listing = tuple(path for path in self.walk() if path is not None)
        keys = {path_key(path) for path in self._listing}
        unsaved = (doc.path for doc in self._documents if self.holds(doc.path) and path_key(doc.path) not in keys)
        return tuple(sorted(path for path in (*self._listing, *unsaved) if path.endswith(suffixes)))

    def holds(self, path: str) -> bool:
        """Whether a path lies below the root."""
        root, key = path_key(self.root), path_key(path)
        return key.startswith(root.rstrip(os.sep) + os.sep)

    def relative(self, path: str) -> str:
        """A path below the root as a profile names it: relative, with forward slashes."""
        return os.path.relpath(path_key(path), path_key(self.root)).replace(os.sep, "/")

    def absolute(self, relative: str) -> str:
        """The path that a profile names."""
        return os.path.join(self.root, *relative.split("/"))

    def forget_listing(self) -> None:
        """Files came or went."""
        self._listing = None

    def take_listing(self, listing: tuple[str, ...]) -> None:
        """Keep what a caller gathered from `walk` step by step."""
        self._listing = listing

    def walk(self) -> Iterator[str | None]:
        """Yield the files' paths, those near the root first, and None now and then for a caller to yield in turn."""
        folders = deque([self.root])
        seen = 0
        while folders:
            folder = folders.popleft()
            try:
                with os.scandir(folder) as entries:
                    listed = []
                    for entry in entries:
                        listed.append(entry)
                        seen += 1
                        if seen % _ENTRIES_A_TICK == 0:
                            yield None
                        if seen >= _MAX_ENTRIES:
                            folders.clear()
                            break
            except OSError:
                continue
            if folder != self.root and any(entry.name in _ENVIRONMENT_MARKS for entry in listed):
                continue
            for entry in sorted(listed, key=lambda entry: entry.name):
                # Links to folders are not followed: they may lead out of the project or round in a circle.
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and entry.name not in _SKIPPED and seen < _MAX_ENTRIES:
                        folders.append(entry.path)
                elif entry.is_file():
                    yield entry.path


def encode_document(document: Document, on_disk: bytes | None) -> bytes:
    """The bytes that saving a document would write.

    Editors keep the byte order mark to themselves, and some send `\\n` for every line end; a text that differs from
    the file in these alone is the file.
    """
    encoding = _source_encoding(document.text) if document.path.endswith((".py", ".pyi", ".pyw")) else "utf-8"
    try:
        data = document.text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        data = document.text.encode("utf-8", "surrogatepass")
    if on_disk is None:
        return data
    if on_disk.startswith(_BOM) and not data.startswith(_BOM):
        data = _BOM + data
    return on_disk if _unix(data) == _unix(on_disk) else data


def _unix(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def _source_encoding(text: str) -> str:
    """PEP 263: the encoding a Python source declares in its first two lines."""
    head = text[:1000].encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    except SyntaxError:
        return "utf-8"
    return "utf-8" if encoding == "utf-8-sig" else encoding
