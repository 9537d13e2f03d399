"""`skyline-lsp sites FILE`: where the batch size is written, best first, and whether writing another has an effect."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rich.text import Text

from skyline_lsp.cli.failures import DONE
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.cli.worker import ProgramFailed, Runner, spec_for, with_worker
from skyline_lsp.protocol import BatchReport, Goal, Override, to_json
from skyline_lsp.source import Edit, EditRefused, Site, find_sites, set_batch_size, why_no_site
from skyline_lsp.terminal import print_lines, printable, standard_consoles


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRow:
    """One place, as it is printed."""

    path: str
    """Relative to the root."""
    line: int
    column: int
    """1-based, in code points."""
    value: int
    name: str
    kind: str
    editable: bool
    evaluation: bool
    proven: bool | None
    """Whether another value was seen to change the batch; None where that was not tried."""
    reason: str


def run(arguments: argparse.Namespace) -> int:
    """List the places; with `--prove`, run the program once as it is and once for each."""
    program = open_program(arguments)
    sites = find_sites(program.project.files, program.path, program.arguments)
    proven: dict[int, bool] = {}
    if arguments.prove and any(site.editable for site in sites):
        proven = with_worker(program, lambda runner: _prove(runner, program, sites), verbose=arguments.verbose)
    rows = [_row(program, site, proven.get(site.rank)) for site in sites]
    if arguments.json:
        print(json.dumps([to_json(row) for row in rows], indent=2))
        return DONE
    console, _ = standard_consoles()
    if not rows:
        why = why_no_site(program.project.files, program.path, program.arguments)
        print_lines(console, [Text(f"{program.project.shown(program.path)}: {printable(why)}")])
    for row in rows:
        print_lines(console, _drawn(row))
    return DONE


async def _prove(runner: Runner, program: Program, sites: Sequence[Site]) -> dict[int, bool]:
    base = spec_for(program, Goal.PROVE)
    before = (await runner.run(base, label="as it is")).batch
    proven: dict[int, bool] = {}
    for site in sites:
        if not site.editable:
            continue
        other = another_size(site)
        try:
            spec = replace(base, overrides=(_override(set_batch_size(site, other)),))
            after = (await runner.run(spec, label=f"{site.name} = {other}")).batch
        except (EditRefused, ProgramFailed):
            # A program that runs no batch of another size says nothing of the site.
            continue
        proven[site.rank] = follows(before, after, other, Fraction(other, site.batch_size))
    return proven


def _override(edit: Edit) -> Override:
    return Override(path=edit.path, start=edit.start, end=edit.end, old=edit.old, new=edit.new)


def another_size(site: Site) -> int:
    """A batch size unlike the one in force, and no larger where that can be had: it must fit in memory."""
    steps = site.batch_size // site.multiplier
    return site.multiplier * (steps // 2 if steps > 1 else 2)


def follows(before: BatchReport | None, after: BatchReport | None, size: int, factor: Fraction) -> bool:
    """Whether the batch changed as the value did: by `factor`, or to `size` where the value as it stands is none (-1,
    for a size that the program finds by itself). Where it is not known which dimension is the batch's, any will do.
    """
    if before is None or after is None:
        return False
    if before.batch_size is not None and after.batch_size is not None:
        return after.batch_size == before.batch_size * factor or after.batch_size == size != before.batch_size
    return any(
        new == old * factor or new == size != old
        for shapes in zip(before.shapes, after.shapes, strict=False)
        for old, new in zip(*shapes, strict=False)
    )


def _row(program: Program, site: Site, proven: bool | None) -> SiteRow:
    return SiteRow(
        path=program.project.files.relative(site.path),
        line=site.line,
        column=site.column,
        value=site.value,
        name=site.name,
        kind=site.kind.value,
        editable=site.editable,
        evaluation=site.evaluation,
        proven=proven,
        reason=site.reason,
    )


def _drawn(row: SiteRow) -> list[Text]:
    marks = [row.kind.replace("_", " ")]
    if row.evaluation:
        marks.append("evaluation")
    if not row.editable:
        marks.append("not editable")
    if row.proven is not None:
        marks.append("proven" if row.proven else "without effect")
    head = Text().append(f"{row.path}:{row.line}:{row.column}: ", style="bold")
    head.append(f"{printable(row.name)} = {row.value}  ({', '.join(marks)})")
    return [head, Text(f"    {printable(row.reason)}", style="dim")]
