"""How the user's files become code: as Python does it, except where something is replaced or marked in them.

Such a file is compiled anew in each run; its .pyc is neither read nor written.
"""

import ast
import importlib.machinery
import io
import linecache
import os
import tokenize
from collections.abc import Callable
from types import CodeType
from typing import Any

from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.worker import markers
from skyline_lsp.worker.failures import Refused
from skyline_lsp.worker.overrides import Overrides, read_from_disk
from skyline_lsp.worker.project import Project


class Sources:
    """Compiles project files with a run's replacements and marks.

    `iteration` is the file and the line whose every run ends an iteration.
    """

    def __init__(self, project: Project, overrides: Overrides, iteration: tuple[str, int] | None = None) -> None:
        self._project = project
        self._overrides = overrides
        self._iteration = (os.path.realpath(iteration[0]), iteration[1]) if iteration is not None else None
        self.marks = 0
        """How many places that end an iteration were compiled so far."""

    def compile_file(self, path: str) -> CodeType:
        """The code of the file that is started. Raises `SyntaxError`, `Refused` where it can't be read."""
        try:
            data = read_from_disk(path)
        except OSError as error:
            message = f"{path} can't be read: {error.strerror or error}."
            frame = Frame(path=path, line=1, function="<module>")
            raise Refused(Failure(kind=FailureKind.EXCEPTION, message=message, frames=(frame,))) from error
        code: CodeType = compile(self._prepared(path, data), path, "exec", dont_inherit=True)
        return code

    def install(self) -> None:
        """From here on every import of a project file goes through here."""
        loader_class: Any = importlib.machinery.SourceFileLoader
        usual: Callable[[Any, str], CodeType | None] = loader_class.get_code

        def get_code(loader: Any, fullname: str) -> CodeType | None:
            path: str = loader.get_filename(fullname)
            if not self._overrides.concern(path) and not self._project.is_project(path):
                return usual(loader, fullname)
            data: bytes = loader.get_data(path)
            if not self._changes(path, data):
                return usual(loader, fullname)
            code: CodeType = loader.source_to_code(self._prepared(path, data), path)
            return code

        loader_class.get_code = get_code

    def _changes(self, path: str, data: bytes) -> bool:
        return (
            self._overrides.concern(path)
            or (self._iteration is not None and os.path.realpath(path) == self._iteration[0])
            or self._has_comments(data)
        )

    def _has_comments(self, data: bytes) -> bool:
        # The setting is the user's later word.
        return self._iteration is None and markers.has_comment(data)

    def _prepared(self, path: str, data: bytes) -> bytes | ast.Module:
        """What to give to `compile`."""
        if self._overrides.concern(path):
            data = self._overrides.apply(path, data)
            _show_in_tracebacks(path, data)
        here = self._iteration is not None and os.path.realpath(path) == self._iteration[0]
        if not here and not self._has_comments(data):
            return data
        tree = ast.parse(data, path)
        if self._iteration is None:
            self.marks += markers.mark_comments(tree, data)
        else:
            line = self._iteration[1]
            if not markers.mark_line(tree, line):
                raise Refused(
                    Failure(
                        kind=FailureKind.NO_ITERATION,
                        message=(
                            f"No statement stands on line {line} of {os.path.basename(path)}, where the setting "
                            "`iteration` says that an iteration ends. Name the line of a statement."
                        ),
                        frames=(Frame(path=path, line=line, function="<module>"),),
                    )
                )
            self.marks += 1
        return tree


def _show_in_tracebacks(path: str, data: bytes) -> None:
    """Give tracebacks and `inspect.getsource` the text that runs, not the text on disk."""
    lines = iter(data.splitlines(keepends=True))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        return
    # An entry without a modification time is never compared with the file.
    linecache.cache[path] = (len(text), None, io.StringIO(text, newline=None).readlines(), path)
