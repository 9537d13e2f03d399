"""`skyline-lsp report --compare A B`: two reports, or two versions of a program that are measured in turn."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from skyline_lsp.cli.failures import DONE, EXCEEDED, CommandError, UsageError
from skyline_lsp.cli.project import Program, open_program
from skyline_lsp.reports import Report, compare, comparison_json, comparison_text, excesses
from skyline_lsp.terminal import printable

WORKING_TREE = "."
DEFAULT_RUNS = 3
"""The fewest by which two sides of a few percent difference can be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One side: a report that is there, or how to get another run of a program."""

    name: str
    saved: Report | None = None
    run: Callable[[str], Report] | None = None
    """Takes what to call the run while it is under way."""


Measure = Callable[[Program, str], Report]
Saved = Callable[[str], Report]


def compare_versions(
    arguments: argparse.Namespace, *, measure: Measure, saved: Saved, write: Callable[[str], None] | None
) -> int:
    """Compare, print or `write` the outcome; returns the exit code. Raises `CommandError`."""
    with ExitStack() as stack:
        versions = [_version(arguments, name, stack, measure, saved) for name in arguments.compare]
        before, after = _reports(versions, arguments.runs or DEFAULT_RUNS)
    comparison = compare(before, after)
    if write is not None:
        write(comparison_json(comparison))
    else:
        text = comparison_text(comparison, versions[0].name, versions[1].name)
        sys.stdout.write("".join(f"{printable(line)}\n" for line in text.splitlines()))
    if arguments.fail_above is None:
        return DONE
    worse = excesses(comparison, arguments.fail_above)
    for what in worse:
        print(f"skyline-lsp: {what} is worse by more than {arguments.fail_above:g} %", file=sys.stderr)
    return EXCEEDED if worse else DONE


def _reports(versions: Sequence[Version], runs: int) -> tuple[list[Report], list[Report]]:
    """Runs of both sides, in turn: what the machine does meanwhile falls on both alike (A B, B A, A B ...)."""
    found: tuple[list[Report], list[Report]] = ([], [])
    for turn in range(runs):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            version = versions[side]
            if version.run is not None:
                found[side].append(version.run(f"{version.name}, run {turn + 1} of {runs}"))
            elif version.saved is not None and turn == 0:
                found[side].append(version.saved)
    return found


def _version(arguments: argparse.Namespace, name: str, stack: ExitStack, measure: Measure, saved: Saved) -> Version:
    if name.lower().endswith(".json"):
        return Version(name=os.path.basename(name), saved=saved(name))
    if arguments.file is None:
        raise UsageError(f"--compare: {name} is no report in JSON; to run a version of a program, give its FILE")
    program = open_program(arguments)
    if name != WORKING_TREE:
        program = _checked_out(arguments, program, name, stack)
    return Version(name="working tree" if name == WORKING_TREE else name, run=lambda label: measure(program, label))


def _checked_out(arguments: argparse.Namespace, program: Program, revision: str, stack: ExitStack) -> Program:
    """The program as it was, in a folder of its own, run by the interpreter that runs it now."""
    root = program.project.root
    top = os.path.realpath(_git(root, "rev-parse", "--show-toplevel").strip())
    # A revision may look like an option, or be a name that git would take for a path.
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", what=revision)
    folder = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="skyline-lsp-")))
    index = stack.enter_context(tempfile.TemporaryDirectory(prefix="skyline-lsp-"))
    # An index of its own: neither the repository's index nor its files, nor its list of worktrees, change.
    environment = {**os.environ, "GIT_INDEX_FILE": os.path.join(index, "index")}
    _git(top, "read-tree", commit.strip(), environment=environment)
    _git(top, "checkout-index", "--all", f"--prefix={folder}{os.sep}", environment=environment)
    path = os.path.join(folder, os.path.relpath(program.path, top))
    if not os.path.isfile(path):
        raise UsageError(f"--compare: {revision} has no {os.path.relpath(program.path, top)}")
    then = argparse.Namespace(**vars(arguments))
    then.file = path
    then.root = os.path.join(folder, os.path.relpath(root, top))
    then.python = program.project.interpreter.path
    return open_program(then)


def _git(folder: str, *words: str, environment: dict[str, str] | None = None, what: str | None = None) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError("git is not installed; compare two reports in JSON instead.") from error
    if done.returncode != 0:
        if what is not None:
            raise UsageError(f"--compare: {what} is neither a report in JSON nor a revision of {folder}")
        raise CommandError(f"git {words[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
