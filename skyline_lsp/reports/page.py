"""A report as one HTML file that needs nothing else: no script, no request, readable in light and dark and on paper.

Whatever comes from the program, its source above all, is text there and never markup.
"""

import functools
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files

from skyline_lsp.features import (
    AnnotatedLine,
    Index,
    State,
    Table,
    annotated_lines,
    breakdown,
    files_by_cost,
    near_costs,
    paragraph,
    snapshot,
)
from skyline_lsp.features.table import used_columns
from skyline_lsp.features.units import count, format_bytes, format_ms, format_percent
from skyline_lsp.protocol import MemoryEvent, Profile
from skyline_lsp.reports.report import Report
from skyline_lsp.source import decode
from skyline_lsp.source.text import split_lines

MOST_LINES_SHOWN_WHOLE = 2000
"""Of longer files, only the surroundings of lines with a cost are shown."""

_GENERATOR = '<meta name="generator" content="skyline-lsp report">'
# Nothing is fetched and nothing runs, even if an escape were missing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# What a browser would not show, or would show in another order than Python reads it.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
_CLASSES = ("weights", "gradients", "optimizer", "activations", "other")
_PLACE = re.compile(r"(?P<path>.+):(?P<line>\d+)")


def to_html(report: Report) -> str:
    """The page."""
    profile = report.profile
    index = Index(profile)
    title = f"{profile.workload.path}: training step"
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            _GENERATOR,
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>\n{_style()}</style>",
            "</head>",
            "<body>",
            f"<h1>{_text(title)}</h1>",
            *_summary(profile),
            *_breakdown(report, index),
            *_memory(profile),
            *_parameters(profile),
            *_files(report, index),
            "</body>",
            "</html>",
            "",
        )
    )


def recognise_html(head: bytes) -> bool:
    """Whether a file that begins so is a page that this module wrote."""
    return _GENERATOR.encode("ascii") in head


@functools.cache
def _style() -> str:
    return (files("skyline_lsp.reports") / "page.css").read_text(encoding="utf-8")


def _text(text: str) -> str:
    return html.escape(_UNPRINTABLE.sub("\ufffd", text))


def _summary(profile: Profile) -> Iterator[str]:
    yield f"<p>{_text(paragraph(profile))}</p>"
    versions = f"torch {profile.torch_version}, Python {profile.python_version}"
    yield f'<p class="muted">{_text(versions)}</p>'
    for warning in profile.warnings:
        yield f'<p class="muted">Note: {_text(warning)}</p>'
    if profile.remarks:
        yield "<ul>"
        for remark in profile.remarks:
            yield f"<li>{_link(remark.path, remark.line)}: {_text(remark.message)}</li>"
        yield "</ul>"


def _breakdown(report: Report, index: Index) -> Iterator[str]:
    tables = breakdown(index, most_lines=20)
    yield "<h2>Where time and memory go</h2>"
    yield '<div class="tables">'
    for table in (tables.phases, tables.memory, tables.lines):
        if table.rows:
            yield from _table(table)
    yield "</div>"


def _table(table: Table) -> Iterator[str]:
    table = used_columns(table)
    left = table.left()
    yield '<div class="scroll"><table>'
    yield "<tr>" + "".join(_cell("th", name, left[i]) for i, name in enumerate(table.header)) + "</tr>"
    for row in table.rows:
        plain = [cell if isinstance(cell, str) else cell.plain for cell in row]
        yield "<tr>" + "".join(_cell("td", text, left[i], place=i == 0) for i, text in enumerate(plain)) + "</tr>"
    yield "</table></div>"


def _cell(tag: str, text: str, left: bool, *, place: bool = False) -> str:
    match = _PLACE.fullmatch(text) if place else None
    content = _link(match["path"], int(match["line"])) if match is not None else _text(text)
    return f'<{tag} class="left">{content}</{tag}>' if left else f"<{tag}>{content}</{tag}>"


def _link(path: str, line: int) -> str:
    return f'<a href="#{_anchor(path, line)}"><code>{_text(f"{path}:{line}")}</code></a>'


def _anchor(path: str, line: int) -> str:
    # A path may hold anything; in hexadecimal it is an identifier, and no two paths have the same.
    return f"f{path.encode('utf-8', 'surrogateescape').hex()}-{line}"


def _memory(profile: Profile) -> Iterator[str]:
    memory = profile.memory
    sizes = (
        memory.weights_bytes,
        memory.gradients_bytes,
        memory.optimizer_bytes,
        memory.activations_bytes,
        memory.other_bytes,
    )
    if sum(sizes) > 0:
        yield "<h2>Memory</h2>"
        yield from _bar("What is alive at the peak", dict(zip(_CLASSES, sizes, strict=True)))
    if len(profile.timeline) > 1:
        yield from _timeline(profile.timeline)


def _bar(title: str, parts: dict[str, int]) -> Iterator[str]:
    width, whole, at = 960.0, sum(parts.values()), 0.0
    yield f'<figure><svg viewBox="0 0 {width:g} 46" role="img" aria-label="{_text(title)}">'
    for name, size in parts.items():
        wide = width * size / whole
        told = f"{name}: {format_bytes(size)}, {format_percent(100 * size / whole)}"
        size_and_place = f'x="{at:.1f}" width="{max(0.0, wide - 1):.1f}" height="24"'
        yield f'<rect class="{name}" {size_and_place}><title>{told}</title></rect>'
        # About 6 units a letter: what has no room stands in the title, and in the table above.
        if wide > 6 * len(name):
            yield f'<text x="{at:.1f}" y="40">{name}</text>'
        at += wide
    yield f"</svg><figcaption>{_text(title)}: {format_bytes(whole)}.</figcaption></figure>"


def _timeline(timeline: Sequence[MemoryEvent]) -> Iterator[str]:
    """Live bytes over the iteration, as steps: memory stays what it is until the next event."""
    width, height, top, bottom = 960.0, 220.0, 18.0, 18.0
    first = timeline[0].time_ms
    duration = max(timeline[-1].time_ms - first, 1e-9)
    peak = max(timeline, key=lambda event: event.live_bytes)
    scale = (height - top - bottom) / max(peak.live_bytes, 1)

    def place(event: MemoryEvent) -> tuple[float, float]:
        return width * (event.time_ms - first) / duration, height - bottom - event.live_bytes * scale

    points = [place(event) for event in _thinned(timeline)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    floor = height - bottom
    x, y = place(peak)
    anchor = "start" if x < width / 2 else "end"
    told = f"Live memory over one iteration; the peak is {format_bytes(peak.live_bytes)}"
    yield f'<figure><svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{told}">'
    yield f'<path class="area" d="{path}V{floor:g}H0Z"/><path class="line" d="{path}"/>'
    yield f'<line class="axis" x1="0" x2="{width:g}" y1="{floor:g}" y2="{floor:g}"/>'
    yield f'<circle class="peak" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    yield f'<text x="{x:.1f}" y="{y - 6:.1f}" text-anchor="{anchor}">peak {format_bytes(peak.live_bytes)}</text>'
    yield f'<text x="0" y="{height - 4:g}">start of the iteration</text>'
    yield f'<text x="{width:g}" y="{height - 4:g}" text-anchor="end">end</text>'
    yield "</svg><figcaption>Live memory over one iteration, in the order of its operations; recorded in an "
    yield "iteration of its own, so distances are no times to rely on.</figcaption></figure>"


def _thinned(timeline: Sequence[MemoryEvent], buckets: int = 960) -> list[MemoryEvent]:
    """At most four events a bucket, so that no peak and no dip is lost: first, lowest, highest, last."""
    if len(timeline) <= 4 * buckets:
        return list(timeline)
    kept: set[int] = set()
    for bucket in range(buckets):
        span = range(bucket * len(timeline) // buckets, (bucket + 1) * len(timeline) // buckets)
        kept |= {span[0], span[-1]}
        kept |= {pick(span, key=lambda at: timeline[at].live_bytes) for pick in (min, max)}
    return [timeline[at] for at in sorted(kept)]


def _parameters(profile: Profile) -> Iterator[str]:
    if not profile.parameters:
        return
    whole = sum(one.weight_bytes for one in profile.parameters)
    yield f"<details><summary>{count(len(profile.parameters), 'parameter')}, {format_bytes(whole)}</summary>"
    largest_first = sorted(profile.parameters, key=lambda one: (-one.weight_bytes, one.name))
    yield from _table(
        Table(
            header=("parameter", "weights", "gradient"),
            rows=tuple(
                (one.name, format_bytes(one.weight_bytes), format_bytes(one.gradient_bytes)) for one in largest_first
            ),
        )
    )
    yield "</details>"


def _files(report: Report, index: Index) -> Iterator[str]:
    yield "<h2>Source</h2>"
    known = files_by_cost(index)
    if not known:
        yield "<p>No project line has a cost.</p>"
    for file in known:
        share = format_percent(file.share_percent)
        head = f"<code>{_text(file.path)}</code>: {format_ms(file.self_ms)}, {share} of the iteration"
        if file.path in report.sources:
            yield f"<details open><summary>{head}</summary>"
            yield from _source(report, index, file.path)
        else:
            yield f"<details><summary>{head}; its text is not in the report</summary>"
        yield "</details>"


_CELLS = ("forward", "backward", "share", "memory", "runs")


def _source(report: Report, index: Index, path: str) -> Iterator[str]:
    lines = split_lines(report.sources[path])
    # The text is decoded already, and a coding line in it must not have it decoded again: as many empty lines do.
    blank = decode(b"\n" * (len(lines) - 1))
    annotated = annotated_lines(
        snapshot(path=f"/{path}", source=blank, root="/", state=State.READY, profile=index.profile, index=index)
    )
    shown = tuple(replace(line, source=text) for line, text in zip(annotated, lines, strict=True))
    stretches = (shown,) if len(shown) <= MOST_LINES_SHOWN_WHOLE else near_costs(shown, context=5)
    yield '<div class="scroll"><table class="source">'
    titles = "".join(f"<th>{title}</th>" for title in _CELLS)
    yield f'<thead><tr>{titles}<th></th><th class="left"></th></tr></thead>'
    for at, stretch in enumerate(stretches):
        if at > 0:
            yield f'<tr class="gap"><td colspan="{len(_CELLS) + 2}"></td></tr>'
        for line in stretch:
            yield _source_row(path, line)
    yield "</table></div>"


def _source_row(path: str, line: AnnotatedLine) -> str:
    cells = (line.forward, line.backward, line.share, line.memory, line.invocations)
    # Up to two fifths of the colour: the text on it stays readable in both schemes.
    heat = f' style="background:rgba(var(--heat),{0.4 * line.heat:.2f})"' if line.heat >= 0.02 else ""
    return (
        f'<tr id="{_anchor(path, line.line)}"{heat}>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in cells)
        + f'<td class="number">{line.line}</td><td class="code">{_text(line.source)}</td></tr>'
    )
