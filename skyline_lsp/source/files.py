"""How `source` reads a project: through an object that the caller gives it, never from the disk itself."""

from typing import Protocol


class Files(Protocol):
    """The files of one project, as the user sees them now."""

    @property
    def root(self) -> str:
        """Absolute path of the project's root."""
        ...

    def read(self, path: str) -> bytes | None:
        """Bytes of the file at an absolute path, an open document before the disk; None if absent or too large."""
        ...

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """Absolute paths of the project's own files whose names end so, sorted; environments and caches left out."""
        ...
