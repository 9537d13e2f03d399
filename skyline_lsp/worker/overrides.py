"""Literals replaced in memory, as an edit would leave them on disk: in source when it is compiled, in any other file
when the program opens it for reading. Nothing on disk changes.
"""

import builtins
import functools
import io
import os
import pathlib
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from skyline_lsp.protocol import Failure, FailureKind, Frame, Override
from skyline_lsp.worker.failures import Refused


class Overrides:
    """The replacements of one run, by file."""

    def __init__(self, overrides: Iterable[Override]) -> None:
        by_path: dict[str, list[Override]] = defaultdict(list)
        for override in overrides:
            by_path[os.path.realpath(override.path)].append(override)
        self._by_path = {path: sorted(group, key=lambda one: -one.start) for path, group in by_path.items()}
        self._names = {os.path.normcase(os.path.basename(path)) for path in by_path} | {
            os.path.normcase(os.path.basename(override.path)) for group in by_path.values() for override in group
        }

    def __bool__(self) -> bool:
        return bool(self._by_path)

    def concern(self, path: str) -> bool:
        """Whether something is replaced in the file."""
        # Most files are told apart by their name, which costs no look at the disk.
        return os.path.normcase(os.path.basename(path)) in self._names and os.path.realpath(path) in self._by_path

    def apply(self, path: str, data: bytes) -> bytes:
        """The file's bytes as the edits would leave them. Raises `Refused` where another text stands there."""
        for override in self._by_path.get(os.path.realpath(path), ()):
            if data[override.start : override.end] != override.old.encode("ascii", "replace"):
                raise Refused(_changed(override, data))
            data = data[: override.start] + override.new.encode("ascii") + data[override.end :]
        return data

    def check(self) -> None:
        """Raise `Refused` where a file is gone or holds another text than what is to be replaced."""
        for path, group in self._by_path.items():
            try:
                data = read_from_disk(path)
            except OSError as error:
                message = f"The batch size can't be changed: {error.strerror or error}. Save the file, and try again."
                frame = Frame(path=group[0].path, line=1, function="")
                raise Refused(Failure(kind=FailureKind.CHANGED, message=message, frames=(frame,))) from error
            self.apply(path, data)

    def replace_when_opened(self) -> None:
        """From here on, whoever opens one of the files for reading reads the replaced text."""
        if not self:
            return
        opened = io.open

        @functools.wraps(opened)
        def open_replaced(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if opener is None and self._replaces(file, mode):
                opener = self._descriptor
            return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)

        usual_code = io.open_code

        def open_code_replaced(path: str) -> Any:
            return open_replaced(path, "rb") if self._replaces(path, "rb") else usual_code(path)

        builtins.open = open_replaced
        io.open = open_replaced
        # What `runpy` reads a script with.
        io.open_code = open_code_replaced
        accessor: Any = getattr(pathlib, "_NormalAccessor", None)
        if accessor is not None:
            # Python 3.10 keeps its own reference.
            accessor.open = staticmethod(open_replaced)

    def _replaces(self, file: Any, mode: str) -> bool:
        if isinstance(file, int) or not set(mode) <= set("rbtU"):
            return False
        try:
            return self.concern(os.fsdecode(file))
        except (TypeError, ValueError):
            return False

    def _descriptor(self, file: Any, _: int) -> int:
        """Open a file in memory that holds the replaced text."""
        path = os.fsdecode(file)
        data = memoryview(self.apply(path, read_from_disk(path)))
        descriptor = _memory_file()
        while data:
            data = data[os.write(descriptor, data) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor


def read_from_disk(path: str) -> bytes:
    """The file's bytes as they are, whatever `open` has been made to give. Raises `OSError`."""
    with io.FileIO(path) as file:
        return file.readall()


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("skyline-override")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _changed(override: Override, data: bytes) -> Failure:
    found = data[override.start : override.end].decode("utf-8", "replace")
    line = data.count(b"\n", 0, override.start) + 1
    name = os.path.basename(override.path)
    return Failure(
        kind=FailureKind.CHANGED,
        message=(
            f"{name} changed meanwhile: line {line} holds {found!r} where {override.old!r} was expected. Try again."
        ),
        frames=(Frame(path=override.path, line=line, function=""),),
    )
