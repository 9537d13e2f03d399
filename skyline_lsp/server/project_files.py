"""The project's files: what the editor has open shadows what is on disk.

The one place where features' questions about source text meet the file system. Programs are looked for on a thread of
their own, so everything here may be asked from any.
"""

import hashlib
import io
import itertools
import os
import stat
import threading
import tokenize
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from skyline_lsp.server.documents import Document, Documents, path_key

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Larger files are data, or generated: nobody writes a batch size there."""

_MAX_CONTENTS: Final = 512
"""Files whose bytes are kept in memory."""
_MAX_ENTRIES: Final = 200_000
_BOM: Final = b"\xef\xbb\xbf"
ROOT_MARKS: Final = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
"""A folder that holds one of these is the root of a project."""
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "__pypackages__", "build", "dist", "venv"})
# Files that a virtual or conda environment holds at its top, whatever its folder is called.
_ENVIRONMENT_MARKS: Final = ("pyvenv.cfg", "conda-meta")


Stamp = tuple[int, int, int]
"""Changes whenever a file's content does: an open document's serial, or a file's time and size."""


class ProjectFiles:
    """Files below one root; implements `skyline_lsp.source.Files`."""

    def __init__(self, root: str, documents: Documents | None = None) -> None:
        self.root = root
        self._documents = documents if documents is not None else Documents()
        self._lock = threading.Lock()
        self._contents: OrderedDict[str, tuple[Stamp, bytes]] = OrderedDict()
        self._encoded: dict[str, tuple[Stamp, Stamp | None, bytes]] = {}
        self._digests: dict[tuple[str, bool], tuple[tuple[Stamp | None, Stamp | None], str]] = {}
        self._listing: tuple[str, ...] | None = None
        self._listed: frozenset[str] = frozenset()
        self._filtered: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def read(self, path: str) -> bytes | None:
        """Bytes of a file as the editor would save it; None where it is absent or too big."""
        document = self._documents.at_path(path)
        if document is None:
            return self.read_disk(path)
        stamp, disk_stamp = _document_stamp(document), self.disk_stamp(path)
        known = self._encoded.get(path)
        if known is None or known[:2] != (stamp, disk_stamp):
            known = (stamp, disk_stamp, encode_document(document, self.read_disk(path)))
            self._encoded[path] = known
        return known[2]

    def read_disk(self, path: str) -> bytes | None:
        """Bytes of a file as a run of it would find them; None where it is absent or too big."""
        stamp = self.disk_stamp(path)
        if stamp is None or stamp[2] > MAX_FILE_BYTES:
            return None
        with self._lock:
            known = self._contents.get(path)
            if known is not None and known[0] == stamp:
                self._contents.move_to_end(path)
                return known[1]
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        with self._lock:
            self._contents[path] = (stamp, data)
            if len(self._contents) > _MAX_CONTENTS:
                self._contents.popitem(last=False)
        return data

    def stamp(self, path: str) -> Stamp | None:
        """What tells one content of a file, as the editor has it, from another; None where it is absent."""
        document = self._documents.at_path(path)
        return self.disk_stamp(path) if document is None else _document_stamp(document)

    def disk_stamp(self, path: str) -> Stamp | None:
        """The same of the file on disk."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        return (1, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None

    def digest(self, path: str, *, on_disk: bool = False) -> str | None:
        """SHA-256 of a file's bytes, in hexadecimal; None where it has none."""
        # What a document is saved as depends on the file that it replaces.
        stamps = (None if on_disk else self.stamp(path), self.disk_stamp(path))
        known = self._digests.get((path, on_disk))
        if known is not None and known[0] == stamps:
            return known[1]
        data = self.read_disk(path) if on_disk else self.read(path)
        if data is None:
            return None
        digest = hashlib.sha256(data).hexdigest()
        self._digests[path, on_disk] = (stamps, digest)
        return digest

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """Absolute paths of the project's files that end so, sorted; environments and hidden folders left out."""
        if self._listing is None:
            self.take_listing(tuple(self.walk()))
        open_paths = tuple(document.path for document in self._documents)
        known = self._filtered.get(suffixes)
        if known is None or known[0] != open_paths:
            unsaved = (path for path in open_paths if path not in self._listed and self.holds(path))
            everything = (*(self._listing or ()), *unsaved)
            known = (open_paths, tuple(sorted({path for path in everything if path.endswith(suffixes)})))
            self._filtered[suffixes] = known
        return known[1]

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
        """Keep what a caller gathered from `walk`."""
        self._listing = listing
        self._listed = frozenset(listing)
        self._filtered.clear()

    def walk(self) -> Iterator[str]:
        """Yield the files' paths, those near the root first."""
        folders = deque([self.root])
        seen = 0
        while folders and seen < _MAX_ENTRIES:
            folder = folders.popleft()
            try:
                with os.scandir(folder) as entries:
                    listed = list(itertools.islice(entries, _MAX_ENTRIES - seen))
            except OSError:
                continue
            seen += len(listed)
            if folder != self.root and any(entry.name in _ENVIRONMENT_MARKS for entry in listed):
                continue
            for entry in sorted(listed, key=lambda entry: entry.name):
                # Links to folders are not followed: they may lead out of the project or round in a circle.
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and entry.name not in _SKIPPED:
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


def find_root(folder: str) -> str:
    """The nearest folder upwards that is marked as a project's root; the folder itself where none is."""
    home = os.path.realpath(os.path.expanduser("~"))
    current = folder
    while True:
        if any(os.path.exists(os.path.join(current, mark)) for mark in ROOT_MARKS):
            return current
        above = os.path.dirname(current)
        # A home folder kept under version control is no project.
        if above in (current, home):
            return folder
        current = above


def _document_stamp(document: Document) -> Stamp:
    return (0, document.serial, 0)


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
