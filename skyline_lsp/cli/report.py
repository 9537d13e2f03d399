"""`skyline-lsp report FILE`: a profile as files for other tools and people, and two of them compared."""

import argparse
import hashlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from skyline_lsp import __version__
from skyline_lsp.cli.comparison import compare_versions
from skyline_lsp.cli.failures import DONE, CommandError, UsageError
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.cli.worker import Runner, spec_for, with_worker
from skyline_lsp.protocol import Goal, Profile, RunResult
from skyline_lsp.reports import (
    NotAReport,
    Recognise,
    Report,
    read_json,
    recognise_comparison,
    recognise_html,
    recognise_json,
    recognise_tables,
    recognise_trace,
    to_html,
    to_json_text,
    to_trace,
    write_tables,
)
from skyline_lsp.server.project_files import ProjectFiles, find_root
from skyline_lsp.source import decode
from skyline_lsp.terminal import standard_consoles

STANDARD_OUTPUT = "-"
_HEAD_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file to write."""

    option: str
    path: str
    """Absolute, symbolic links followed; `STANDARD_OUTPUT` for none."""
    recognise: Recognise
    write: Callable[[Report, str], None]
    """Writes the report to a path."""


def run(arguments: argparse.Namespace) -> int:
    """Write each of the files asked for, from one run or from a report saved before; or compare."""
    if arguments.compare is not None:
        return _compare(arguments)
    if arguments.fail_above is not None or arguments.runs is not None:
        raise UsageError("report: --fail-above and --runs belong to --compare")
    outputs = _outputs(arguments)
    if arguments.file is None:
        raise UsageError("report: FILE is missing: the program to measure, or a report in JSON")
    if not outputs:
        raise UsageError("report: say what to write: --sqlite, --json, --trace or --html, or what to --compare")
    report = _report(arguments)
    if arguments.trace and not report.profile.segments:
        raise CommandError(f"{arguments.file}: it holds no traced iteration, so no trace can be made of it.")
    for output in outputs:
        _write(output, report)
    return DONE


def _compare(arguments: argparse.Namespace) -> int:
    for option, path in (("--sqlite", arguments.sqlite), ("--trace", arguments.trace), ("--html", arguments.html)):
        if path is not None:
            raise UsageError(f"{option} is not for --compare; --json is")
    target = None
    if arguments.json not in (None, STANDARD_OUTPUT):
        target = os.path.realpath(arguments.json)
        _check_target("--json", arguments.json, target, recognise_comparison, force=arguments.force)

    def write(text: str) -> None:
        if target is None:
            sys.stdout.write(text)
            return
        with _replaced(target) as path, open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)

    try:
        return compare_versions(
            arguments,
            measure=lambda program, label: measure(
                program, arguments.batch_size, verbose=arguments.verbose, segments=False, label=label
            ),
            saved=lambda path: saved_report(path, arguments.root),
            write=write if arguments.json is not None else None,
        )
    except OSError as error:
        raise CommandError(f"--compare: {error}") from error


def _outputs(arguments: argparse.Namespace) -> list[Output]:
    """What to write, checked before anything runs. Raises `UsageError`."""
    wanted = (
        ("--sqlite", arguments.sqlite, recognise_tables, _write_tables),
        ("--json", arguments.json, recognise_json, _text_writer(to_json_text)),
        ("--trace", arguments.trace, recognise_trace, _text_writer(to_trace)),
        ("--html", arguments.html, recognise_html, _text_writer(to_html)),
    )
    outputs: list[Output] = []
    for option, path, recognise, write in wanted:
        if path is None:
            continue
        target = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if any(target == other.path for other in outputs):
            raise UsageError(f"{option}: {path} is named twice")
        if target != STANDARD_OUTPUT:
            _check_target(option, path, target, recognise, force=arguments.force)
        elif option != "--json":
            raise UsageError(f"{option}: a file is expected")
        outputs.append(Output(option=option, path=target, recognise=recognise, write=write))
    return outputs


def _check_target(option: str, path: str, target: str, recognise: Recognise, *, force: bool) -> None:
    if not os.path.isdir(os.path.dirname(target)):
        raise UsageError(f"{option}: {path}: there is no such folder")
    if not os.path.lexists(target):
        return
    if not os.path.isfile(target):
        raise UsageError(f"{option}: {path} is not a file that can be replaced")
    try:
        with open(target, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"{option}: {path}: {error.strerror}") from error
    # An empty file holds nothing to lose: `mktemp` makes such.
    if head and not force and not recognise(head):
        raise UsageError(
            f"{option}: {path} is there already and is not such a report of skyline-lsp; give another name, or --force"
        )


def _report(arguments: argparse.Namespace) -> Report:
    """The report that FILE is, or the one that running it gives."""
    if _is_saved(arguments.file):
        return saved_report(arguments.file, arguments.root)
    program = open_program(arguments)
    return measure(program, arguments.batch_size, verbose=arguments.verbose, segments=True)


def _is_saved(path: str) -> bool:
    return path.lower().endswith(".json")


def saved_report(path: str, root: str | None) -> Report:
    """A report in JSON; sources that it lacks are taken from the project where they are unchanged."""
    try:
        with open(path, "rb") as file:
            report = read_json(file.read())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except NotAReport as error:
        raise UsageError(f"{path}: {error}") from error
    folder = os.path.realpath(root) if root else find_root(os.path.dirname(os.path.realpath(path)))
    return replace(report, sources={**_sources(ProjectFiles(folder), report.profile), **report.sources})


def measure(program: Program, batch_size: int | None, *, verbose: bool, segments: bool, label: str = "") -> Report:
    """Profile the program once. Raises `CommandError`."""
    spec = spec_for(program, Goal.PROFILE, batch_size)
    spec = replace(spec, measure=replace(spec.measure, record_segments=segments))

    async def once(runner: Runner) -> RunResult:
        return await runner.run(spec, label=label)

    profile = with_worker(program, once, verbose=verbose).profile
    if profile is None:
        raise CommandError("The worker sent no profile. This is a fault of skyline-lsp; please report it.")
    return Report(profile=profile, sources=_sources(program.project.files, profile))


def _sources(files: ProjectFiles, profile: Profile) -> dict[str, str]:
    """Text of the files that are still what they were when they were profiled."""
    sources = {}
    for path, digest in profile.files.items():
        absolute = os.path.join(files.root, *path.split("/"))
        # A report from elsewhere must not make us read outside the project.
        data = files.read_disk(absolute) if files.holds(os.path.realpath(absolute)) else None
        if data is not None and hashlib.sha256(data).hexdigest() == digest:
            sources[path] = decode(data).text
    return sources


def _write(output: Output, report: Report) -> None:
    if output.path == STANDARD_OUTPUT:
        sys.stdout.write(to_json_text(report))
        return
    try:
        with _replaced(output.path) as path:
            output.write(report, path)
    except (OSError, sqlite3.Error) as error:
        raise CommandError(f"{output.option}: {output.path}: {error}") from error
    _, console = standard_consoles()
    console.print(f"wrote {os.path.relpath(output.path)}", soft_wrap=True)


@contextmanager
def _replaced(path: str) -> Iterator[str]:
    """A path beside `path` to write to; takes its place at the end, and goes when writing fails."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        for left in (temporary, f"{temporary}-journal"):
            with suppress(OSError):
                os.remove(left)
        raise


def _write_tables(report: Report, path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        write_tables(connection, report, __version__)


def _text_writer(text_of: Callable[[Report], str]) -> Callable[[Report, str], None]:
    def write(report: Report, path: str) -> None:
        # "x", since a file of that name would be somebody else's.
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text_of(report))

    return write
