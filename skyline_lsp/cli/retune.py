"""`skyline-lsp retune FILE --batch-size N`: change the batch size in the source, or show what would change.

With a wish instead of a number, such as `--throughput 900`, other batch sizes are measured to find the one for it.
"""

import argparse
import os
import shutil
import sys
import tempfile

from rich.text import Text

from skyline_lsp.cli.failures import DONE, CommandError, UsageError
from skyline_lsp.cli.predict import measure
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.cli.worker import batch_size_site
from skyline_lsp.features.units import format_bytes, format_range, format_rate
from skyline_lsp.prediction import Refusal
from skyline_lsp.prediction.wish import Goal, Wish, fulfil, parse_wish
from skyline_lsp.source import EditConflict, EditRefused, Site, apply, decode, set_batch_size, unified_diff
from skyline_lsp.terminal import print_lines, printable, standard_consoles


def run(arguments: argparse.Namespace) -> int:
    """Print the difference, or make it with `--write`."""
    wish = _wish(arguments)
    program = open_program(arguments)
    site = batch_size_site(program)
    shown = program.project.shown(site.path)
    wanted = arguments.batch_size if wish is None else _wished(program, site, wish, arguments.verbose)
    if site.batch_size == wanted:
        print(f"{shown}:{site.line}: the batch size is {site.batch_size} already", file=sys.stderr)
        return DONE
    before = program.project.files.read(site.path) or b""
    try:
        edit = set_batch_size(site, wanted)
        after = apply(before, edit)
    except (EditRefused, EditConflict) as error:
        raise CommandError(f"{shown}:{site.line}: {error}") from error
    if arguments.write:
        try:
            _replace(site.path, after)
        except OSError as error:
            raise CommandError(f"{shown} can't be written: {error.strerror or error}") from error
        print(f"{shown}:{site.line}: {site.name}: {edit.old} -> {edit.new}", file=sys.stderr)
        return DONE
    console, _ = standard_consoles()
    difference = unified_diff(program.project.files.relative(site.path), before, after)
    if console.is_terminal:
        print_lines(console, [Text(printable(line), style=_style(line)) for line in difference.splitlines()])
    else:
        # In the file's own encoding and with its own line ends, so that `git apply` finds what it looks for.
        sys.stdout.flush()
        sys.stdout.buffer.write(difference.encode(decode(before).encoding, "surrogateescape"))
    return DONE


def _wish(arguments: argparse.Namespace) -> Wish | None:
    """What is wished for in place of a number. Raises `UsageError`."""
    if arguments.batch_size is not None:
        return None
    if arguments.max_throughput:
        return Wish(goal=Goal.MAX_THROUGHPUT)
    if arguments.fit:
        return Wish(goal=Goal.FIT)
    goal, value = ("memory", arguments.memory) if arguments.memory is not None else ("throughput", arguments.throughput)
    wish = parse_wish(goal, value)
    if isinstance(wish, Refusal):
        raise UsageError(f"--{goal}: {wish.reason}")
    return wish


def _wished(program: Program, site: Site, wish: Wish, verbose: bool) -> int:
    """The batch size that fulfils the wish, told on standard error. Raises `CommandError`."""
    measured = measure(program, (site.batch_size,), verbose=verbose)
    found = fulfil(measured.model, wish, measured.profile.device.memory_bytes, site.maximum)
    if isinstance(found, Refusal):
        raise CommandError(found.reason)
    told = found.prediction
    rate = told.samples_per_second
    parts = [f"{format_rate(rate.value)} samples/s ({format_range(rate.low, rate.high, format_rate)})"]
    if told.peak_bytes is not None:
        low, high = told.peak_bytes.low, told.peak_bytes.high
        parts.append(f"peak {format_bytes(told.peak_bytes.value)} ({format_range(low, high, format_bytes)})")
    print(f"{found.reason}\n{'measured' if told.measured else 'predicted'}: {', '.join(parts)}", file=sys.stderr)
    return found.batch_size


def _style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _replace(path: str, data: bytes) -> None:
    """Write a file whole or not at all, with its mode kept."""
    target = os.path.realpath(path)
    descriptor, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".skyline-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
