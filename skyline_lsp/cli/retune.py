"""`skyline-lsp retune FILE --batch-size N`: change the batch size in the source, or show what would change."""

import argparse
import os
import shutil
import sys
import tempfile

from rich.text import Text

from skyline_lsp.cli.failures import DONE, CommandError
from skyline_lsp.cli.project import open_program
from skyline_lsp.cli.worker import batch_size_site
from skyline_lsp.source import EditConflict, EditRefused, apply, decode, set_batch_size, unified_diff
from skyline_lsp.terminal import print_lines, printable, standard_consoles


def run(arguments: argparse.Namespace) -> int:
    """Print the difference, or make it with `--write`."""
    program = open_program(arguments)
    site = batch_size_site(program)
    shown = program.project.shown(site.path)
    if site.batch_size == arguments.batch_size:
        print(f"{shown}:{site.line}: the batch size is {site.batch_size} already", file=sys.stderr)
        return DONE
    before = program.project.files.read(site.path) or b""
    try:
        edit = set_batch_size(site, arguments.batch_size)
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
