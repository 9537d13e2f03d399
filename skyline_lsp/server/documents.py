"""The documents that the client has open, as the client has them.

Kept here and not by pygls, whose documents count lines with `str.splitlines` and so go out of step with the editor on
the first edit after a form feed.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from skyline_lsp.server.positions import Encoding, line_starts, offset_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One open document at one version."""

    uri: str
    """As the client spells it: what is sent back must be spelled the same."""
    path: str
    """Absolute."""
    version: int
    """The client's count."""
    text: str
    serial: int = 0
    """Ours: never the same for two states of any document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One content change: the text between two 0-based positions, in the client's units, is replaced."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def apply_change(text: str, change: Change, encoding: Encoding) -> str:
    """The text after the change."""
    starts = line_starts(text)
    start = offset_of(text, starts, *change.start, encoding)
    end = offset_of(text, starts, *change.end, encoding)
    return text[:start] + change.text + text[max(start, end) :]


@lru_cache(maxsize=8192)
def path_key(path: str) -> str:
    """What two spellings of one file have in common: links resolved, and case where it does not matter."""
    try:
        return os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):
        # No file has such a name; it may have been made up by a URI.
        return path


class Documents:
    """The open documents, found by URI or by path."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Document] = {}
        self._by_key: dict[str, str] = {}
        self._serials = itertools.count(1)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._by_uri.values()))

    def open(self, document: Document) -> None:
        """Take a document in; one that is open already is replaced."""
        self._by_uri[document.uri] = replace(document, serial=next(self._serials))
        self._by_key[path_key(document.path)] = document.uri

    def change(self, uri: str, version: int, changes: Sequence[Change | str], encoding: Encoding) -> Document | None:
        """Apply changes in order, a string being the whole new text. None where the document is not open."""
        document = self._by_uri.get(uri)
        if document is None:
            return None
        text = document.text
        for change in changes:
            text = change if isinstance(change, str) else apply_change(text, change, encoding)
        changed = replace(document, version=version, text=text, serial=next(self._serials))
        self._by_uri[uri] = changed
        return changed

    def close(self, uri: str) -> Document | None:
        """Forget a document."""
        document = self._by_uri.pop(uri, None)
        if document is not None and self._by_key.get(path_key(document.path)) == uri:
            del self._by_key[path_key(document.path)]
        return document

    def at_uri(self, uri: str) -> Document | None:
        """The open document with this URI."""
        return self._by_uri.get(uri)

    def at_path(self, path: str) -> Document | None:
        """The open document of this file, however the path is spelled."""
        uri = self._by_key.get(path_key(path))
        return self._by_uri.get(uri) if uri is not None else None
