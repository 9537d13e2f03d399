"""Hovers: a line's cost in full, the batch size and what others would do, the iteration as a whole.

They work on lines that moved, and on any column: an editor that shows no hints has its hovers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.features.batch_sizes import batch_size_table, literal_at, model_remarks
from skyline_lsp.features.cost import Scale, ShownCost, percent, scale_for, shown_cost
from skyline_lsp.features.document import Block, Paragraph, Rule, bullets, heading, markdown, paragraph, plain
from skyline_lsp.features.elsewhere import (
    device_sentence,
    elsewhere,
    elsewhere_remarks,
    elsewhere_table,
    shown_batch_size,
)
from skyline_lsp.features.layer_hint import argument_hint
from skyline_lsp.features.place import place
from skyline_lsp.features.snapshot import InnerModules, LineDetail, RelatedLine, Snapshot, State
from skyline_lsp.features.summary import breakdown
from skyline_lsp.features.summary import paragraph as summary_paragraph
from skyline_lsp.features.table import Cell, Table, code, escape
from skyline_lsp.features.units import count, format_bytes, format_ms, format_percent
from skyline_lsp.features.work import work_blocks
from skyline_lsp.protocol import LineCost, Profile
from skyline_lsp.source import Site

_MOST_RELATED = 8
"""Rows of the tables of callees and of callers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hover:
    """What is shown for a position, in two forms."""

    markdown: str
    plain: str
    """Without markup, columns aligned: for a client that takes plain text, or shows the source of tables."""
    line: int

    @property
    def fenced(self) -> str:
        """The plain form as Markdown, for a client that takes Markdown only and doesn't render tables."""
        fence = "```"
        while fence in self.plain:
            fence += "`"
        return f"{fence}text\n{self.plain}\n{fence}"


def hover(snapshot: Snapshot, line: int, column: int) -> Hover | None:
    """What is known at a position: lines count from 1, columns from 0, in code points. None where nothing is."""
    sites = [site for site in snapshot.sites if site.path == snapshot.path and site.line == line]
    pointed = literal_at(snapshot, line, column)
    cost = snapshot.costs.get(line)
    parts: list[list[Block]] = []
    if (hint := argument_hint(snapshot, line, column)) and pointed is None:
        parts.append(hint)
    if pointed is not None:
        parts.append(_batch_size(snapshot, pointed))
    if cost is not None and snapshot.profile is not None:
        parts.append(_cost(snapshot, snapshot.profile, cost, line))
    if pointed is None and sites:
        parts.append(_batch_size(snapshot, sites[0]))
    entry_lines = snapshot.entry_lines()
    if line in entry_lines[:1] or (line in entry_lines and not sites):
        parts.append(_whole(snapshot))
    if not parts:
        return None
    blocks = parts[0]
    for part in parts[1:]:
        blocks = [*blocks, Rule(), *part]
    return Hover(markdown=markdown(blocks), plain=plain(blocks), line=line)


def _cost(snapshot: Snapshot, profile: Profile, measured: LineCost, line: int) -> list[Block]:
    assert snapshot.index is not None
    scale = scale_for(profile, snapshot.preview)
    cost = shown_cost(measured, scale)
    detail = snapshot.index.detail(measured.path, measured.line)
    title = f"{measured.path}:{line}"
    within = " and ".join(detail.functions)
    blocks: list[Block] = [
        Paragraph(
            plain=title + (f" in {within}" if within else ""),
            markdown=f"**{code(title)}**" + (f" in {code(within)}" if within else ""),
        ),
        _cost_table(snapshot, profile, cost, detail, scale),
    ]
    remarks = _cost_remarks(snapshot, cost, detail, scale)
    if remarks:
        blocks.append(paragraph(" ".join(remarks)))
    if measured.label:
        blocks.append(paragraph(_sentence(measured.label)))
    if snapshot.preview is None:
        blocks += work_blocks(profile, measured)
    if detail.modules:
        blocks.append(_modules_table(detail.modules, scale))
    if detail.calls:
        blocks.append(_related_table(snapshot, "calls", detail.calls, scale))
    if len(detail.callers) > 1:
        blocks.append(_related_table(snapshot, "called from", detail.callers, scale))
    blocks.append(_footer(snapshot, profile, measured, line))
    return blocks


def _cost_table(snapshot: Snapshot, profile: Profile, cost: ShownCost, detail: LineDetail, scale: Scale) -> Table:
    # What is alive at the peak of another batch size is not known by line.
    by_peak = snapshot.preview is None
    own = (
        "this line itself",
        format_ms(cost.self_forward_ms),
        format_ms(cost.self_backward_ms),
        format_ms(cost.self_forward_ms + cost.self_backward_ms),
        format_percent(cost.self_percent),
        _bytes(cost.self_activation_bytes),
        _bytes(detail.self_peak_bytes) if by_peak else "",
    )
    whole = (
        "with what it calls",
        format_ms(cost.forward_ms),
        format_ms(cost.backward_ms),
        format_ms(cost.forward_ms + cost.backward_ms),
        format_percent(cost.time_percent),
        _bytes(cost.activation_bytes),
        _bytes(detail.peak_bytes) if by_peak else "",
    )
    return Table(
        header=(
            "cost" if by_peak else "cost, predicted",
            "forward",
            "backward",
            "time",
            "share",
            "saved",
            "at the peak",
        ),
        rows=(own, whole) if detail.calls or own[1:] != whole[1:] else (own,),
    )


def _cost_remarks(snapshot: Snapshot, cost: ShownCost, detail: LineDetail, scale: Scale) -> list[str]:
    remarks = []
    if cost.invocations > 1:
        each = format_ms((cost.forward_ms + cost.backward_ms) / cost.invocations)
        paths = f", over {detail.paths} call paths" if detail.paths > 1 else ""
        remarks.append(f"Runs {cost.invocations} times an iteration{paths}; {each} each.")
    if detail.recompute_ms > 0:
        recompute_ms = detail.recompute_ms * scale.time
        remarks.append(f"{format_ms(recompute_ms)} of the backward time runs forward code again (checkpointing).")
    if cost.activation_bytes > 0:
        share = format_percent(cost.memory_percent)
        remarks.append(f"What it saves for backward is {share} of the iteration's peak memory.")
    return remarks


def _related_table(snapshot: Snapshot, title: str, related: Sequence[RelatedLine], scale: Scale) -> Table:
    rows: list[tuple[str | Cell, ...]] = [
        (
            place(row.path, row.line, snapshot.root),
            format_ms(row.forward_ms * scale.time),
            format_ms(row.backward_ms * scale.time),
            format_ms((row.forward_ms + row.backward_ms) * scale.time),
            format_percent(percent((row.forward_ms + row.backward_ms) * scale.time, scale.run_time_ms)),
            _bytes(row.activation_bytes * scale.activations),
            f"x{row.invocations}" if row.invocations > 1 else "",
            Cell(plain=row.function, markdown=code(row.function)),
        )
        for row in related[:_MOST_RELATED]
    ]
    rest = related[_MOST_RELATED:]
    if rest:
        forward_ms = sum(row.forward_ms for row in rest) * scale.time
        backward_ms = sum(row.backward_ms for row in rest) * scale.time
        rows.append(
            (
                f"{len(rest)} more",
                format_ms(forward_ms),
                format_ms(backward_ms),
                format_ms(forward_ms + backward_ms),
                format_percent(percent(forward_ms + backward_ms, scale.run_time_ms)),
                _bytes(sum(row.activation_bytes for row in rest) * scale.activations),
                "",
                "",
            )
        )
    return Table(header=(title, "forward", "backward", "time", "share", "saved", "runs", ""), rows=tuple(rows))


def _modules_table(modules: Sequence[InnerModules], scale: Scale) -> Table:
    def row(name: str | Cell, of: Sequence[InnerModules]) -> tuple[str | Cell, ...]:
        forward_ms = sum(module.self_forward_ms for module in of) * scale.time
        backward_ms = sum(module.self_backward_ms for module in of) * scale.time
        return (
            name,
            format_ms(forward_ms),
            format_ms(backward_ms),
            format_ms(forward_ms + backward_ms),
            format_percent(percent(forward_ms + backward_ms, scale.run_time_ms)),
            _bytes(sum(module.self_activation_bytes for module in of) * scale.activations),
            f"x{of[0].modules}" if len(of) == 1 and of[0].modules > 1 else "",
        )

    rows = [row(Cell(plain=module.name, markdown=code(module.name)), [module]) for module in modules[:_MOST_RELATED]]
    rest = modules[_MOST_RELATED:]
    if rest:
        rows.append(row(f"{len(rest)} more", rest))
    header = ("of this line itself", "forward", "backward", "time", "share", "saved", "modules")
    return Table(header=header, rows=tuple(rows))


def _footer(snapshot: Snapshot, profile: Profile, measured: LineCost, line: int) -> Paragraph:
    iteration = profile.iteration
    batch = f" of batch size {profile.batch_size}" if profile.batch_size is not None else ""
    text = (
        f"Measured on {profile.device.name or profile.device.kind}: {count(iteration.iterations, 'iteration')}{batch}"
    )
    if profile.slowdown > 0:
        text += f"; lines from a traced one, which took {profile.slowdown:.2f} times as long, scaled to their median"
    text += "."
    if snapshot.preview is not None:
        text += f" Scaled to batch size {snapshot.preview.batch_size} as predicted."
    if snapshot.outdated:
        text += " The source has changed since"
        text += f"; this line was line {measured.line} then." if measured.line != line else "."
    return Paragraph(plain=text, markdown=f"*{escape(text)}*")


def _batch_size(snapshot: Snapshot, site: Site) -> list[Block]:
    title = f"batch size {site.batch_size}" if site.value > 0 else f"batch size: {site.text}"
    if site.evaluation:
        title += ", for evaluation only"
    blocks: list[Block] = [heading(title), paragraph(" ".join(_site_sentences(snapshot, site)))]
    if site.evaluation:
        return blocks
    if site == (snapshot.site or snapshot.main_site):
        blocks.append(batch_size_table(snapshot))
        blocks += bullets(model_remarks(snapshot))
        blocks.append(elsewhere_table(snapshot))
        blocks += bullets(tuple(elsewhere_remarks(snapshot)))
    return blocks


def _site_sentences(snapshot: Snapshot, site: Site) -> list[str]:
    sentences = [_sentence(site.reason)]
    if site.multiplier != 1 or site.divisor != 1:
        calculation = f"{site.text}" + (f" x {site.multiplier}" if site.multiplier != 1 else "")
        calculation += f" / {site.divisor}" if site.divisor != 1 else ""
        sentences.append(f"The batch size is {calculation} = {site.batch_size}.")
    if site.maximum is not None:
        sentences.append(f"The program uses no larger batch than {site.maximum}.")
    if not site.editable and not site.evaluation:
        better = snapshot.site
        if better is not None:
            where = place(snapshot.relative(better.path), better.line, snapshot.root)
            sentences.append(f"Change it at {where.plain}.")
    return sentences


def _whole(snapshot: Snapshot) -> list[Block]:
    blocks: list[Block] = []
    if snapshot.state is State.RUNNING:
        blocks.append(paragraph(f"Profiling: {snapshot.progress or 'starting'}."))
    if snapshot.state is State.FAILED and snapshot.failure is not None:
        blocks.append(paragraph(f"Profiling failed: {snapshot.failure.message}"))
    profile, index = snapshot.profile, snapshot.index
    if profile is None and snapshot.state is State.IDLE:
        blocks.append(paragraph('Not profiled yet: choose the code action "Profile this training step".'))
    if snapshot.site is None and snapshot.no_site_reason:
        blocks.append(
            paragraph(
                f"The batch size can't be changed from here: {snapshot.no_site_reason.strip().removesuffix('.')}."
            )
        )
    there = [f"{device_sentence(one)}." for one in elsewhere(snapshot, shown_batch_size(snapshot))]
    if profile is None or index is None:
        return [*blocks, *bullets(there)]
    if snapshot.outdated:
        blocks.append(paragraph("The source has changed since this was measured."))
    tables = breakdown(index, snapshot.preview)
    blocks += [paragraph(summary_paragraph(profile, snapshot.preview)), tables.phases, tables.memory, tables.lines]
    blocks += bullets([*profile.warnings, *there])
    return blocks


def _bytes(size: float) -> str:
    return format_bytes(size) if size > 0 else ""


def _sentence(text: str) -> str:
    """A remark with a capital, unless it starts with a name, and a full stop."""
    text = text.strip()
    if text.partition(" ")[0].isalpha():
        text = text[0].upper() + text[1:]
    return text if not text or text.endswith((".", "!", "?")) else text + "."
