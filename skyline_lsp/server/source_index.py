"""What the source of a project says, computed once for each state of its files.

Everything here is asked at every key stroke, for every hint and lens, so each answer is kept with the stamps of the
files that it was drawn from.
"""

import ast
import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

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

T = TypeVar("T")

_SLICE_S: Final = 0.01
"""How long looking for programs keeps the event loop at a stretch."""
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
class _Answer:
    """What was computed, and the state of all that was read for it."""

    stamps: Mapping[str, Stamp | None]
    listings: Mapping[tuple[str, ...], tuple[str, ...]]
    value: object


class SourceIndex:
    """Entry points, batch-size sites, texts and moved lines of one project."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._entries: dict[str, tuple[Stamp | None, EntryPoint | None, str]] = {}
        self._programs: set[str] = set()
        """Paths that are programs or were."""
        self._answers: dict[tuple[object, ...], _Answer] = {}
        self._moves: dict[str, tuple[str, str, Mapping[int, int] | None]] = {}

    async def scan(self) -> None:
        """Look for programs in every file of the project, giving way to other work all the time."""
        started = time.monotonic()
        listing: list[str] = []
        for path in self._files.walk():
            if path is not None:
                listing.append(path)
            if time.monotonic() - started > _SLICE_S:
                await asyncio.sleep(0)
                started = time.monotonic()
        self._files.take_listing(tuple(listing))
        paths = self._files.paths(_PYTHON)
        for path in paths:
            self.entry_at(path)
            if time.monotonic() - started > _SLICE_S:
                await asyncio.sleep(0)
                started = time.monotonic()
        for gone in self._entries.keys() - set(paths):
            del self._entries[gone]
            self._programs.discard(gone)

    def entry_points(self) -> tuple[EntryPoint, ...]:
        """The programs found so far, sorted by path."""
        found = (self.entry_at(path) for path in sorted(self._programs))
        return tuple(point for point in found if point is not None)

    def entry_at(self, path: str) -> EntryPoint | None:
        """The file as a program; None where it is none. While its source is broken, what it was before."""
        stamp = self._files.stamp(path)
        known = self._entries.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        data = self._files.read(path)
        point = find_entry_point(path, data) if data is not None else None
        text = self.source(path).text if point is not None else ""
        if point is None and data is not None and known is not None and known[1] is not None and _is_broken(data):
            # A lens that goes whenever a bracket is open would make the text jump.
            point, text = _moved_entry(known[1], moved_lines(known[2], decode(data).text)), decode(data).text
        self._entries[path] = (stamp, point, text)
        if point is not None:
            self._programs.add(path)
        return point

    def sites(self, entry_path: str, arguments: tuple[str, ...]) -> SitesFound:
        """Where the batch size of the program at `entry_path` is written."""

        def find(files: "_Recorder") -> SitesFound:
            sites = find_sites(files, entry_path, arguments)
            found = SitesFound(sites=sites, reason=None)
            return found if found.best is not None else replace(found, reason=why_no_site(files, entry_path, arguments))

        return self._kept(("sites", entry_path, arguments), find)

    def source(self, path: str) -> SourceText:
        """A file's text as the editor has it; empty where there is none."""

        def read(files: "_Recorder") -> SourceText:
            data = files.read(path) or b""
            return decode(data) if path.endswith(_PYTHON) else decode_as(data)

        return self._kept(("source", path), read)

    def moved(self, path: str, before: str) -> Mapping[int, int] | None:
        """Line of `before` -> line of the file now, edited lines absent; None where nothing changed."""
        now = self.source(path).text
        known = self._moves.get(path)
        if known is None or known[0] != before or known[1] != now:
            known = (before, now, None if before == now else moved_lines(before, now))
            self._moves[path] = known
        return known[2]

    def _kept(self, key: tuple[object, ...], compute: Callable[["_Recorder"], T]) -> T:
        answer = self._answers.get(key)
        if answer is None or not self._holds(answer):
            recorder = _Recorder(self._files)
            value = compute(recorder)
            answer = _Answer(recorder.stamps, recorder.listings, value)
            self._answers.pop(key, None)
            self._answers[key] = answer
            if len(self._answers) > _MAX_KEPT:
                del self._answers[next(iter(self._answers))]
        return answer.value  # type: ignore[return-value]  # the key tells the type

    def _holds(self, answer: _Answer) -> bool:
        return all(self._files.stamp(path) == stamp for path, stamp in answer.stamps.items()) and all(
            self._files.paths(suffixes) == listing for suffixes, listing in answer.listings.items()
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
