"""`skyline-lsp profile FILE`: measure one training step, and print the source with what each line costs."""

import argparse
import json
from collections.abc import Sequence

from rich.text import Text

from skyline_lsp.cli.failures import DONE, CommandError
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.cli.worker import Runner, spec_for, with_worker
from skyline_lsp.features import (
    AnnotatedLine,
    Index,
    Options,
    State,
    annotated_lines,
    breakdown,
    files_by_cost,
    paragraph,
    snapshot,
)
from skyline_lsp.features.units import format_percent
from skyline_lsp.protocol import Goal, Profile, RunResult, to_json
from skyline_lsp.source import decode
from skyline_lsp.terminal import Note, annotated_source, print_lines, standard_consoles


def run(arguments: argparse.Namespace) -> int:
    """Profile the program once, at the batch size it has or at the one asked for."""
    program = open_program(arguments)
    spec = spec_for(program, Goal.PROFILE, arguments.batch_size)

    async def measure(runner: Runner) -> RunResult:
        return await runner.run(spec)

    profile = with_worker(program, measure, verbose=arguments.verbose).profile
    if profile is None:
        raise CommandError("The worker sent no profile. This is a fault of skyline-lsp; please report it.")
    if arguments.json:
        print(json.dumps(to_json(profile), indent=2))
    else:
        _print(program, profile)
    return DONE


def _print(program: Program, profile: Profile) -> None:
    console, _ = standard_consoles()
    width = console.width if console.is_terminal else None
    index = Index(profile, _texts(program, profile))
    tables = breakdown(index)
    where = Text(program.project.shown(program.path), style="bold")
    console.print(Text.assemble(where, ": ", paragraph(profile)), soft_wrap=width is None)
    for table in (tables.phases, tables.memory):
        if table.rows:
            print_lines(console, [Text(), *(Text(line) for line in table.plain().split("\n"))])
    # The program's own file comes first: it is what the user named.
    files = sorted(files_by_cost(index), key=lambda file: file.path != profile.workload.path)
    for file in files:
        lines = _annotated(program, index, file.path, width, colour=console.color_system is not None)
        if lines:
            shown = program.project.shown(program.project.files.absolute(file.path))
            share = f"  {format_percent(file.share_percent)} of the iteration"
            print_lines(console, [Text(), Text.assemble((shown, "bold"), (share, "dim")), *lines])
    disabled = program.project.settings.advice_disabled
    advice = [one for one in index.advice if one.code.value not in disabled]
    for one in advice:
        place = f"{program.project.shown(program.project.files.absolute(one.path))}:{one.line}"
        console.print(
            Text.assemble("\n", (f"{place}: ", "bold"), f"{one.message} [{one.code.value}]"), soft_wrap=width is None
        )
    if profile.warnings:
        print_lines(console, [Text(), *(Text(f"note: {warning}", style="yellow") for warning in profile.warnings)])


def _texts(program: Program, profile: Profile) -> dict[str, str]:
    """The files that ran, by path as in the profile."""
    files = program.project.files
    found = ((path, files.read(files.absolute(path))) for path in profile.files)
    return {path: decode(data).text for path, data in found if data is not None}


def _annotated(program: Program, index: Index, path: str, width: int | None, *, colour: bool) -> list[Text]:
    project = program.project
    absolute = project.files.absolute(path)
    data = project.files.read(absolute)
    if data is None:
        return []
    settings = project.settings
    lines = annotated_lines(
        snapshot(
            path=absolute,
            source=decode(data),
            root=project.root,
            state=State.READY,
            profile=index.profile,
            index=index,
            options=Options(threshold_percent=settings.hints_threshold_percent, show_memory=settings.hints_memory),
        )
    )
    rows = {line.line: _cells(line) for line in lines if any(_cells(line))}
    widths = [max(len(row[i]) for row in (_TITLES, *rows.values())) for i in range(len(_TITLES))]
    notes = {
        line.line: Note(text=_row(rows[line.line], widths), share=line.cost.self_percent / 100 if line.cost else None)
        for line in lines
        if line.line in rows
    }
    source = [line.source for line in lines]
    return annotated_source(source, notes, title=_row(_TITLES, widths), width=width, colour=colour)


_TITLES = ("forward", "backward", "share", "memory", "runs")


def _cells(line: AnnotatedLine) -> tuple[str, ...]:
    return (line.forward, line.backward, line.share, line.memory, line.invocations)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
