"""What the features look at: one file, what was measured of it, and what may be changed in it, at one moment.

A snapshot never changes. What costs time is computed once: by profile in `Index`, by file in `snapshot`.
"""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from skyline_lsp.features.advice import Advice, advise, is_switched_off
from skyline_lsp.prediction import DeviceSpec, FoundPeak, Model, Prediction
from skyline_lsp.protocol import Failure, Frame, LineCost, Profile, Remark
from skyline_lsp.source import EntryPoint, Site, SourceText

_NUMBER = re.compile(r"(?<![^.])\d+(?![^. ])")
"""A number that is a whole part of a module's name, such as a layer's."""
_WINDOWS = re.compile(r"(?:[A-Za-z]:)?[\\/]{2}|[A-Za-z]:[\\/]")


class State(enum.Enum):
    """What the user sees the workload doing."""

    IDLE = "idle"
    RUNNING = "running"
    READY = "ready"
    STALE = "stale"
    """There are results, and the source has changed since."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user has set about what is shown."""

    hints_enabled: bool = True
    threshold_percent: float = 1.0
    """Lines whose shares of time and of memory are below it get no hint."""
    show_memory: bool = True
    """Whether hints name activation bytes."""
    most_hints: int = 200
    """Hints in one file, the costliest lines first."""
    lenses_enabled: bool = True
    summary_diagnostic: bool = True
    advice_disabled: frozenset[str] = frozenset()
    """Codes of advice and remarks that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Another batch size, shown as if it were in force."""

    batch_size: int
    prediction: Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedLine:
    """A project line that a line calls or is called by; inclusive times and bytes of the callee on these paths."""

    path: str
    """Relative to the root, as in the profile."""
    line: int
    function: str
    forward_ms: float
    backward_ms: float
    activation_bytes: int
    invocations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerModules:
    """Modules of library code that a line runs, those whose names differ in numbers only taken together."""

    name: str
    """Qualified name and type, "*" for a number that differs."""
    modules: int
    self_forward_ms: float
    self_backward_ms: float
    self_activation_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDetail:
    """What the call tree says of a line beyond its `LineCost`."""

    functions: tuple[str, ...]
    """Qualified names of the functions that the line is in: one, but for generated code."""
    calls: tuple[RelatedLine, ...]
    """The costliest first."""
    callers: tuple[RelatedLine, ...]
    """Lines that call it, with what of its inclusive cost each causes, the costliest first."""
    modules: tuple[InnerModules, ...]
    """What of the line's own cost is whose, the costliest first."""
    paths: int
    """Over how many call paths it is reached."""
    self_peak_bytes: int
    """Bytes that it allocated and that are alive at the peak."""
    peak_bytes: int
    """Inclusive."""
    recompute_ms: float
    """Inclusive."""


class Index:
    """A profile by file and by line. Make one when a profile arrives and give it to each `snapshot` of it."""

    def __init__(self, profile: Profile, texts: Mapping[str, str] | None = None) -> None:
        """`texts` are the files as they were profiled, by path as in the profile; advice is drawn from them."""
        self.profile = profile
        self._texts = texts or {}

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What would make the step cheaper, by path and line of the profile."""
        return advise(self.profile, self._texts)

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """The profile's remarks that no comment of the profiled text switches off."""
        return tuple(
            remark
            for remark in self.profile.remarks
            if not is_switched_off(self._texts.get(remark.path, ""), remark.line, remark.kind.value)
        )

    @cached_property
    def lines_by_path(self) -> Mapping[str, tuple[LineCost, ...]]:
        """Lines of each file (relative path, as in the profile), by line number."""
        found: dict[str, list[LineCost]] = {}
        for cost in self.profile.lines:
            found.setdefault(cost.path, []).append(cost)
        return {path: tuple(sorted(costs, key=lambda cost: cost.line)) for path, costs in found.items()}

    @cached_property
    def hottest(self) -> tuple[LineCost, ...]:
        """Every line, the one with the largest self time first."""
        return tuple(
            sorted(self.profile.lines, key=lambda c: (-(c.self_forward_ms + c.self_backward_ms), c.path, c.line))
        )

    def detail(self, path: str, line: int) -> LineDetail:
        """What the call tree says of a line; `path` as in the profile."""
        tree = self.profile.tree
        key = (path, line)
        nodes = self._nodes_by_line.get(key, ())
        # A node below another of the same line (recursion) is part of that one's inclusive cost.
        outermost = [i for i in nodes if not self._is_below(i, key)]
        calls: dict[tuple[str, int], list[int]] = {}
        callers: dict[tuple[str, int], list[int]] = {}
        pending = list(outermost)
        while pending:
            for child in self._children[pending.pop()]:
                below = (tree[child].path, tree[child].line)
                if below == key:
                    pending.append(child)
                else:
                    calls.setdefault(below, []).append(child)
        for i in outermost:
            if tree[i].parent >= 0:
                above = tree[tree[i].parent]
                callers.setdefault((above.path, above.line), []).append(i)
        return LineDetail(
            functions=tuple(dict.fromkeys(tree[i].function for i in nodes)),
            calls=self._related(calls, {key: tree[of[0]].function for key, of in calls.items()}),
            callers=self._related(callers, {key: tree[tree[of[0]].parent].function for key, of in callers.items()}),
            modules=self._modules(nodes),
            paths=sum(tree[i].module is None for i in nodes),
            self_peak_bytes=sum(tree[i].peak_bytes for i in nodes),
            peak_bytes=sum(self._inclusive[i].peak_bytes for i in outermost),
            recompute_ms=sum(self._inclusive[i].recompute_ms for i in outermost),
        )

    @cached_property
    def _nodes_by_line(self) -> Mapping[tuple[str, int], Sequence[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        for i, node in enumerate(self.profile.tree):
            found.setdefault((node.path, node.line), []).append(i)
        return found

    @cached_property
    def _children(self) -> Sequence[Sequence[int]]:
        found: list[list[int]] = [[] for _ in self.profile.tree]
        for i, node in enumerate(self.profile.tree):
            if node.parent >= 0:
                found[node.parent].append(i)
        return found

    @cached_property
    def _inclusive(self) -> Sequence["_Inclusive"]:
        rows = [
            _Inclusive(
                node.self_forward_ms,
                node.self_backward_ms,
                node.self_activation_bytes,
                node.peak_bytes,
                node.recompute_ms,
            )
            for node in self.profile.tree
        ]
        # A parent stands before its children, so from the end each node is complete when its parent takes it.
        for i in range(len(rows) - 1, -1, -1):
            parent = self.profile.tree[i].parent
            if parent >= 0:
                rows[parent].add(rows[i])
        return rows

    def _modules(self, nodes: Sequence[int]) -> tuple[InnerModules, ...]:
        tree = self.profile.tree
        groups: dict[str, dict[str, list[int]]] = {}
        for i in nodes:
            name = tree[i].module
            if name is not None:
                groups.setdefault(_NUMBER.sub("*", name), {}).setdefault(name, []).append(i)
        rows = []
        for pattern, by_name in groups.items():
            members = [tree[i] for of_name in by_name.values() for i in of_name]
            rows.append(
                InnerModules(
                    name=pattern if len(by_name) > 1 else next(iter(by_name)),
                    modules=len(by_name),
                    self_forward_ms=sum(node.self_forward_ms for node in members),
                    self_backward_ms=sum(node.self_backward_ms for node in members),
                    self_activation_bytes=sum(node.self_activation_bytes for node in members),
                )
            )
        rows = [row for row in rows if row.self_forward_ms or row.self_backward_ms or row.self_activation_bytes]
        return tuple(sorted(rows, key=lambda r: (-(r.self_forward_ms + r.self_backward_ms), r.name)))

    def _is_below(self, i: int, key: tuple[str, int]) -> bool:
        tree = self.profile.tree
        while (i := tree[i].parent) >= 0:
            if (tree[i].path, tree[i].line) == key:
                return True
        return False

    def _related(
        self, groups: Mapping[tuple[str, int], Sequence[int]], functions: Mapping[tuple[str, int], str]
    ) -> tuple[RelatedLine, ...]:
        rows = [
            RelatedLine(
                path=key[0],
                line=key[1],
                function=functions[key],
                forward_ms=sum(self._inclusive[i].forward_ms for i in nodes),
                backward_ms=sum(self._inclusive[i].backward_ms for i in nodes),
                activation_bytes=sum(self._inclusive[i].activation_bytes for i in nodes),
                invocations=sum(self.profile.tree[i].invocations for i in nodes),
            )
            for key, nodes in groups.items()
        ]
        return tuple(sorted(rows, key=lambda r: (-(r.forward_ms + r.backward_ms), r.path, r.line)))


@dataclass(slots=True)
class _Inclusive:
    forward_ms: float
    backward_ms: float
    activation_bytes: int
    peak_bytes: int
    recompute_ms: float

    def add(self, other: "_Inclusive") -> None:
        self.forward_ms += other.forward_ms
        self.backward_ms += other.backward_ms
        self.activation_bytes += other.activation_bytes
        self.peak_bytes += other.peak_bytes
        self.recompute_ms += other.recompute_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One file at one moment. Made by `snapshot`; paths are absolute, lines count from 1, columns from 0."""

    path: str
    source: SourceText
    root: str
    state: State
    progress: str | None
    """What a run is busy with."""
    profile: Profile | None
    index: Index | None
    """Of `profile`."""
    outdated: bool
    """Whether the source has changed since `profile` was measured."""
    relative_path: str
    """`path` as a profile names it."""
    line_of: Mapping[int, int] | None
    """Line of this file when it was profiled -> line now; None where nothing moved."""
    costs: Mapping[int, LineCost]
    """Line of the file as it is now -> what it cost, in the order of lines; edited lines are absent."""
    entry: EntryPoint | None
    """What is profiled; its file may be another one."""
    sites: tuple[Site, ...]
    """Of the workload, in rank order, in whatever files they are."""
    no_site_reason: str | None
    """Why there is no site that can be edited, where there is none."""
    model: Model | None
    failure: Failure | None
    failure_line_of: Mapping[int, int] | None
    """Line of this file when the run failed -> line now; None where nothing moved."""
    preview: Preview | None
    devices: tuple[DeviceSpec, ...]
    """Devices that aren't here, on which the user wants to know the program."""
    peaks_found: tuple[FoundPeak, ...]
    """Peaks of batch sizes of this very source, for those devices."""
    estimate_note: str | None
    """Why peaks can't be found without allocating, a sentence or two; None where they can, or where none was tried."""
    options: Options

    @property
    def line_count(self) -> int:
        """Lines of the file as it is now."""
        return len(self.source.lines)

    @property
    def site(self) -> Site | None:
        """The site to edit: the best one that can be; None where none can."""
        return next((site for site in self.sites if site.editable and not site.evaluation), None)

    @property
    def main_site(self) -> Site | None:
        """The best site of the training batch size, editable or not."""
        return next((site for site in self.sites if not site.evaluation), None)

    def relative(self, path: str) -> str:
        """An absolute path as a profile names it."""
        return relative_path(path, self.root)

    @property
    def batch_size(self) -> int | None:
        """The batch size that the source says; where it does not, the one that was measured."""
        site = self.site or self.main_site
        if site is not None and site.batch_size > 0:
            return site.batch_size
        return self.profile.batch_size if self.profile is not None else None

    def line_of_frame(self, frame: Frame) -> int:
        """Where the line of a failure's frame is now, as far as is known."""
        line = max(1, frame.line)
        moved = self.failure_line_of
        if frame.path != self.path:
            return line
        if moved is not None and line not in moved:
            # An edited line keeps its distance from the last line above it that is still there.
            above = max((before for before in moved if before < line), default=None)
            line = moved[above] + line - above if above is not None else line
        elif moved is not None:
            line = moved[line]
        return max(1, min(line, self.line_count))

    def advice(self) -> tuple[Advice, ...]:
        """The advice that is to be shown, in all files."""
        if self.index is None:
            return ()
        return tuple(one for one in self.index.advice if one.code.value not in self.options.advice_disabled)

    def line_now(self, path: str, line: int) -> int | None:
        """Where a line of the profile is now, as far as is known of its file; None for one that was edited."""
        if path == self.relative_path and self.line_of is not None:
            return self.line_of.get(line)
        return line

    def entry_lines(self) -> tuple[int, ...]:
        """Lines of this file that stand for the workload as a whole, the one for a lens first; empty elsewhere."""
        if self.entry is None or self.entry.path != self.path:
            return ()
        lines = [self.entry.line]
        if self.entry.providers is not None:
            providers = self.entry.providers
            lines += [
                p.line for p in (providers.model, providers.input, providers.iteration) if p and p.path == self.path
            ]
        return tuple(dict.fromkeys(line for line in lines if 1 <= line <= self.line_count))


def snapshot(
    *,
    path: str,
    source: SourceText,
    root: str,
    state: State = State.IDLE,
    progress: str | None = None,
    profile: Profile | None = None,
    index: Index | None = None,
    line_of: Mapping[int, int] | None = None,
    outdated: bool | None = None,
    entry: EntryPoint | None = None,
    sites: Sequence[Site] = (),
    no_site_reason: str | None = None,
    model: Model | None = None,
    failure: Failure | None = None,
    failure_line_of: Mapping[int, int] | None = None,
    preview: Preview | None = None,
    devices: Sequence[DeviceSpec] = (),
    peaks_found: Sequence[FoundPeak] = (),
    estimate_note: str | None = None,
    options: Options | None = None,
) -> Snapshot:
    """Bring together what is known of one file.

    `line_of` maps this file's lines when they were profiled to its lines now; None means that nothing moved. `index`
    spares the work of indexing `profile` again. `outdated` is told from the state where it is not given.
    """
    if profile is None or (index is not None and index.profile is not profile):
        index = None
    if profile is not None and index is None:
        index = Index(profile)
    relative = relative_path(path, root)
    costs = index.lines_by_path.get(relative, ()) if index is not None else ()
    return Snapshot(
        path=path,
        source=source,
        root=root,
        state=state,
        progress=progress,
        profile=profile,
        index=index,
        outdated=state is State.STALE if outdated is None else outdated,
        relative_path=relative,
        line_of=line_of,
        costs=_placed(costs, line_of, len(source.lines)),
        entry=entry,
        sites=tuple(sites),
        no_site_reason=no_site_reason,
        model=model,
        failure=failure,
        failure_line_of=failure_line_of,
        preview=preview,
        devices=tuple(devices),
        peaks_found=tuple(peaks_found),
        estimate_note=estimate_note,
        options=options or Options(),
    )


def relative_path(path: str, root: str) -> str:
    """An absolute path as a profile names it: relative to the root with forward slashes, whole where not below it."""
    windows = _WINDOWS.match(root) is not None
    shown = path.replace("\\", "/") if windows else path
    base = (root.replace("\\", "/") if windows else root).rstrip("/") + "/"
    # Windows' own paths differ in the drive's letter case between programs.
    below = shown.lower().startswith(base.lower()) if windows else shown.startswith(base)
    return shown[len(base) :] if below else shown


def absolute_path(path: str, root: str) -> str:
    """Where a path of a profile is."""
    if path.startswith("/") or _WINDOWS.match(path):
        return path
    if _WINDOWS.match(root):
        return root.rstrip("\\/") + "\\" + path.replace("/", "\\")
    return root.rstrip("/") + "/" + path


def _placed(costs: Sequence[LineCost], line_of: Mapping[int, int] | None, line_count: int) -> Mapping[int, LineCost]:
    placed: dict[int, LineCost] = {}
    for cost in costs:
        line = cost.line if line_of is None else line_of.get(cost.line)
        if line is not None and 1 <= line <= line_count:
            placed[line] = cost
    return dict(sorted(placed.items()))
