"""What the source of a project says: its programs, where their batch size is written, and where lines have gone.

Finding that out takes as long as reading and following a program takes, so it is kept apart from asking: `update_*`
and `scan` are slow and may run on any thread; everything else answers at once, at every key stroke, with what was last
found, carried along to where its lines are now.
"""

import ast
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from skyline_lsp.server.positions import split_lines
from skyline_lsp.server.project_files import ProjectFiles, Stamp
from skyline_lsp.source import (
    EntryPoint,
    FunctionRef,
    Site,
    SourceText,
    decode,
    find_entry_point,
    find_sites,
    moved_lines,
    why_no_site,
)
from skyline_lsp.source.text import decode_as

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_PYTHON: Final = (".py", ".pyw")
_MAX_KEPT: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesFound:
    """The batch-size sites of a program."""

    sites: tuple[Site, ...]
    """Best first."""
    reason: str | None
    """Why none of them can be edited; None where one can."""

    @property
    def best(self) -> Site | None:
        """The one to edit."""
        return next((site for site in self.sites if site.editable and not site.evaluation), None)


@dataclass(frozen=True, slots=True)
class _KnownEntry:
    stamp: Stamp | None
    """Of the file when it was last looked at."""
    point: EntryPoint | None
    text: str
    """In which the point's lines count."""


@dataclass(frozen=True, slots=True)
class _KnownSites:
    stamps: Mapping[str, Stamp | None]
    """Of each file that was read for it."""
    listings: Mapping[tuple[str, ...], tuple[str, ...]]
    found: SitesFound
    texts: Mapping[str, str]
    """Path -> text in which the sites' lines count."""


class SourceIndex:
    """Entry points, batch-size sites, texts and moved lines of one project."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._entries: dict[str, _KnownEntry] = {}
        self._sites: dict[tuple[str, tuple[str, ...]], _KnownSites] = {}
        self._sources: OrderedDict[str, tuple[Stamp | None, SourceText]] = OrderedDict()
        self._moves: OrderedDict[tuple[str, str], tuple[str, Mapping[int, int] | None]] = OrderedDict()
        self._stopped = threading.Event()
        self.revision = 0
        """Grows whenever something else was found than was known."""

    # Finding out.

    def scan(self) -> None:
        """Look for programs in every file of the project."""
        listing = []
        for path in self._files.walk():
            if self._stopped.is_set():
                return
            listing.append(path)
        self._files.take_listing(tuple(listing))
        paths = self._files.paths(_PYTHON)
        for path in paths:
            if self._stopped.is_set():
                return
            self.update_entry(path)
        for gone in set(self._entries) - set(paths):
            self._entries.pop(gone, None)

    def stop(self) -> None:
        """End a scan that is under way."""
        self._stopped.set()

    def update_entry(self, path: str) -> None:
        """Find out whether a file is a program. While its source is broken, it is what it was before."""
        stamp = self._files.stamp(path)
        known = self._entries.get(path)
        if known is not None and known.stamp == stamp:
            return
        shown = self.entry_at(path)
        data = self._files.read(path)
        point = find_entry_point(path, data) if data is not None else None
        text = decode(data).text if data is not None and point is not None else ""
        if point is None and known is not None and known.point is not None and data is not None and _is_broken(data):
            # A lens that goes whenever a bracket is open would make the text jump.
            point, text = known.point, known.text
        self._entries[path] = _KnownEntry(stamp, point, text)
        if self.entry_at(path) != shown:
            self.revision += 1

    def update_sites(self, entry_path: str, arguments: tuple[str, ...]) -> None:
        """Find out where the batch size of a program is written."""
        key = (entry_path, arguments)
        known = self._sites.get(key)
        if known is not None and self._is_current(known):
            return
        shown = self.sites(entry_path, arguments)
        recorder = _Recorder(self._files)
        sites = find_sites(recorder, entry_path, arguments)
        found = SitesFound(sites=sites, reason=None)
        if found.best is None:
            found = replace(found, reason=why_no_site(recorder, entry_path, arguments))
        texts = {site.path: self.source(site.path).text for site in sites}
        self._sites[key] = _KnownSites(recorder.stamps, recorder.listings, found, texts)
        if found != shown:
            self.revision += 1

    # Asking.

    def knows_entry(self, path: str) -> bool:
        """Whether a file was ever looked at."""
        return path in self._entries

    def knows_sites(self, entry_path: str, arguments: tuple[str, ...]) -> bool:
        """Whether a program's sites were ever looked for."""
        return (entry_path, arguments) in self._sites

    def entry_points(self) -> tuple[EntryPoint, ...]:
        """The programs found so far, sorted by path."""
        # Copied at once: another thread may be adding to it.
        programs = sorted(path for path, known in tuple(self._entries.items()) if known.point is not None)
        found = (self.entry_at(path) for path in programs)
        return tuple(point for point in found if point is not None)

    def entry_at(self, path: str) -> EntryPoint | None:
        """The file as a program; None where it is none."""
        known = self._entries.get(path)
        if known is None or known.point is None or self._files.stamp(path) is None:
            return None
        moved = self.moved(path, known.text)
        return known.point if moved is None else _moved_entry(known.point, moved)

    def sites(self, entry_path: str, arguments: tuple[str, ...]) -> SitesFound:
        """Where the batch size of a program is written; a site whose line was edited since is absent."""
        known = self._sites.get((entry_path, arguments))
        if known is None:
            return SitesFound(sites=(), reason="it has not been looked for yet")
        sites = tuple(
            moved for site in known.found.sites if (moved := self._moved_site(site, known.texts[site.path])) is not None
        )
        if sites == known.found.sites:
            return known.found
        found = SitesFound(sites=sites, reason=None)
        return found if found.best is not None else replace(found, reason=known.found.reason or "its line was edited")

    def source(self, path: str) -> SourceText:
        """A file's text as the editor has it; empty where there is none."""
        stamp = self._files.stamp(path)
        known = self._sources.get(path)
        if known is None or known[0] != stamp:
            data = self._files.read(path) or b""
            known = (stamp, decode(data) if path.endswith(_PYTHON) else decode_as(data))
            self._sources[path] = known
            _shrink(self._sources)
        return known[1]

    def moved(self, path: str, before: str) -> Mapping[int, int] | None:
        """Line of `before` -> line of the file now, edited lines absent; None where nothing changed."""
        now = self.source(path).text
        known = self._moves.get((path, before))
        if known is None or known[0] != now:
            known = (now, None if before == now else moved_lines(before, now))
            self._moves[path, before] = known
            _shrink(self._moves)
        return known[1]

    def _moved_site(self, site: Site, before: str) -> Site | None:
        moved = self.moved(site.path, before)
        if moved is None:
            return site
        source = self.source(site.path)
        line = moved.get(site.line)
        if line is None:
            return _renumbered(site, before, source, moved)
        start = source.byte_offset(line, site.column - 1)
        return replace(site, line=line, start=start, end=start + site.end - site.start)

    def _is_current(self, known: _KnownSites) -> bool:
        return all(self._files.stamp(path) == stamp for path, stamp in known.stamps.items()) and all(
            self._files.paths(suffixes) == listing for suffixes, listing in known.listings.items()
        )


class _Recorder:
    """`Files` that notes what is read."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self.root = files.root
        self.stamps: dict[str, Stamp | None] = {}
        self.listings: dict[tuple[str, ...], tuple[str, ...]] = {}

    def read(self, path: str) -> bytes | None:
        self.stamps[path] = self._files.stamp(path)
        return self._files.read(path)

    def paths(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        self.listings[suffixes] = self._files.paths(suffixes)
        return self.listings[suffixes]


def _shrink(kept: "OrderedDict[_Key, _Value]") -> None:
    while len(kept) > _MAX_KEPT:
        kept.popitem(last=False)


def _renumbered(site: Site, before: str, source: SourceText, moved: Mapping[int, int]) -> Site | None:
    """A site whose line was edited, where nothing but its number was: as retuning does."""
    column, old_line = site.column - 1, split_lines(before)[site.line - 1]
    neighbours = ((moved.get(site.line - 1), 1), (moved.get(site.line + 1), -1))
    line = next((near + step for near, step in neighbours if near is not None), site.line)
    new_line = source.lines[line - 1] if 1 <= line <= len(source.lines) else ""
    head, tail = old_line[:column], old_line[column + len(site.text) :]
    text = new_line[column : len(new_line) - len(tail)]
    if new_line != head + text + tail or re.fullmatch(r"[1-9][0-9]*", text) is None:
        return None
    start = source.byte_offset(line, column)
    end = source.byte_offset(line, column + len(text))
    return replace(site, line=line, start=start, end=end, text=text, value=int(text))


def _is_broken(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return True
    return False


def _moved_entry(point: EntryPoint, moved: Mapping[int, int]) -> EntryPoint:
    """An entry point after its file was edited; an edited line stays where it is."""

    def at(line: int) -> int:
        return moved.get(line, line)

    def ref(function: FunctionRef | None) -> FunctionRef | None:
        return replace(function, line=at(function.line)) if function and function.path == point.path else function

    providers = point.providers
    if providers is not None:
        providers = replace(
            providers, model=ref(providers.model), input=ref(providers.input), iteration=ref(providers.iteration)
        )
    size_line = point.batch_size_line
    return replace(
        point,
        line=at(point.line),
        providers=providers,
        batch_size_line=None if size_line is None else at(size_line),
    )
