"""What `skyline-lsp` understands, and how it ends.

Exit codes: 0 done, 1 the user's program failed or what was asked can't be had, 2 usage, 3 a comparison came out worse
than `--fail-above` allows, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from skyline_lsp import __version__
from skyline_lsp.cli.failures import DONE, INTERRUPTED, USAGE, CommandError

_EPILOG = """\
Without a command, the language server is started on standard input and output, for an editor.
Profiling runs the program: only profile what you would run.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = parser().parse_args(_own(given))
    arguments.program_arguments = tuple(_programs(given))
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except CommandError as error:
        error.report()
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _run(arguments: argparse.Namespace) -> int:
    # Each branch imports its own command: asking for the version loads no language server.
    match arguments.command:
        case "profile":
            from skyline_lsp.cli import profile

            return profile.run(arguments)
        case "predict":
            from skyline_lsp.cli import predict

            return predict.run(arguments)
        case "retune":
            from skyline_lsp.cli import retune

            return retune.run(arguments)
        case "sites":
            from skyline_lsp.cli import sites

            return sites.run(arguments)
        case "report":
            from skyline_lsp.cli import report

            return report.run(arguments)
        case "doctor":
            from skyline_lsp.cli import doctor

            return doctor.run(arguments)
        case _:
            from skyline_lsp.cli import serve

            return serve.run(arguments)


def _own(argv: Sequence[str]) -> Sequence[str]:
    return argv[: argv.index("--")] if "--" in argv else argv


def _programs(argv: Sequence[str]) -> Sequence[str]:
    return argv[argv.index("--") + 1 :] if "--" in argv else ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Everything that may be given."""
    top = _Parser(
        prog="skyline-lsp",
        description="What each line of a PyTorch training step costs, next to the line.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"skyline-lsp {__version__}")
    _add_serve_options(top, None)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    serve = commands.add_parser("serve", help="start the language server", allow_abbrev=False)
    _add_serve_options(serve, argparse.SUPPRESS)

    profile = _program_command(commands, "profile", "measure one training step and show its cost line by line")
    _add_batch_size(profile)
    _add_json(profile)

    predict = _program_command(commands, "predict", "predict what other batch sizes cost")
    predict.add_argument(
        "--batch-size",
        type=_batch_sizes,
        required=True,
        metavar="N[,N...]",
        help="the batch sizes to predict",
    )
    predict.add_argument(
        "--device", metavar="NAME", help="predict for a device that isn't here, such as A100-40GB, or a size, 24GiB"
    )
    _add_json(predict)

    retune = _program_command(commands, "retune", "change the batch size in the source")
    wish = retune.add_mutually_exclusive_group(required=True)
    wish.add_argument("--batch-size", type=_batch_size, metavar="N", help="the batch size")
    wish.add_argument("--throughput", metavar="RATE", help="reach so many samples/s, such as 900")
    wish.add_argument("--memory", metavar="SIZE", help="stay within a size, 6GiB, or a share of the device's, 80%%")
    wish.add_argument("--max-throughput", action="store_true", help="reach 95 %% of the best throughput within reach")
    wish.add_argument("--fit", action="store_true", help="the largest that fits, with a margin")
    retune.add_argument("--write", action="store_true", help="change the file, instead of printing the difference")

    sites = _program_command(commands, "sites", "list where the batch size is written")
    sites.add_argument("--prove", action="store_true", help="run the program to see whether each place has an effect")
    _add_json(sites)

    _add_report(commands)

    doctor = commands.add_parser(
        "doctor", help="check the interpreter, torch, the device and the cache", allow_abbrev=False
    )
    doctor.add_argument("file", nargs="?", metavar="FILE", help="the program that is to be profiled")
    _add_common(doctor)
    _add_json(doctor)
    return top


def _program_command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        usage=f"skyline-lsp {name} [-m] FILE [options] [-- ARGUMENTS OF THE PROGRAM]",
        allow_abbrev=False,
    )
    command.add_argument("file", metavar="FILE", help="the file with the provider functions, or the training script")
    command.add_argument(
        "-m", dest="as_module", action="store_true", help="FILE is the name of a module, run as by python -m"
    )
    _add_common(command)
    return command


def _add_report(commands: Any) -> None:
    summary = "write a profile to files for other tools, or compare two"
    report: argparse.ArgumentParser = commands.add_parser(
        "report",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="With --fail-above, the exit code is 3 where B costs more than that.",
        usage="skyline-lsp report [FILE] [options] [-- ARGUMENTS OF THE PROGRAM]",
        allow_abbrev=False,
    )
    report.add_argument("file", nargs="?", metavar="FILE", help="the program to measure, or a report in JSON")
    _add_common(report)
    _add_batch_size(report)
    report.add_argument("--sqlite", metavar="OUT", help="write the tables of time and memory to an SQLite database")
    report.add_argument(
        "--json", nargs="?", const="-", metavar="OUT", help="write the report as JSON; to standard output without OUT"
    )
    report.add_argument("--trace", metavar="OUT", help="write a trace of one iteration, for Perfetto")
    report.add_argument("--html", metavar="OUT", help="write a page to read or to send: one file that needs no other")
    report.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="compare two reports in JSON, git revisions of FILE's project, or '.', its working tree",
    )
    report.add_argument(
        "--fail-above", type=_percent, metavar="PERCENT", help="exit with 3 where B is worse by more, such as 5%%"
    )
    report.add_argument("--runs", type=_runs, metavar="N", help="runs of each version to compare; 3 by default")
    report.add_argument("--force", action="store_true", help="replace files that are not reports, too")


def _add_serve_options(parser: argparse.ArgumentParser, default: Any) -> None:
    parser.add_argument("--stdio", action="store_true", default=default, help="serve on standard input and output")
    parser.add_argument(
        "--tcp",
        type=_address,
        metavar="HOST:PORT",
        default=default,
        help="serve on a TCP port instead; HOST is 127.0.0.1 where it is left out",
    )
    parser.add_argument("--log-file", metavar="FILE", default=default, help="write the log to FILE")
    parser.add_argument(
        "--log-level", choices=("error", "warning", "info", "debug"), default=default, help="how much is logged"
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PATH", help="interpreter to run the program with; found when not given")
    parser.add_argument("--root", metavar="DIR", help="the project's folder; found when not given")
    parser.add_argument("-v", "--verbose", action="store_true", help="show progress, and whole tracebacks")


def _add_batch_size(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    parser.add_argument("--batch-size", type=_batch_size, required=required, metavar="N", help="the batch size")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _percent(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"a percentage such as 5% is expected, not {text!r}")
    return value


def _runs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of runs is a whole number from 1 up, not {text!r}")
    return int(text)


def _batch_size(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a batch size is a whole number from 1 up, not {text!r}")
    return value


def _batch_sizes(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_batch_size(part) for part in text.split(",")))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"HOST:PORT is expected, such as 127.0.0.1:2087, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)
