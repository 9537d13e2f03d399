"""`skyline-lsp` and `skyline-lsp serve`: the language server, on standard input and output or on a TCP port."""

import argparse
import logging
import sys

from skyline_lsp.cli.failures import CommandError, UsageError

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor says that it is done; 0 where it ended in good order."""
    if arguments.stdio and arguments.tcp is not None:
        raise UsageError("--stdio and --tcp exclude each other")
    _start_log(arguments.log_file, arguments.log_level)
    from skyline_lsp.server import serve_stdio, serve_tcp

    if arguments.tcp is None:
        if sys.stdin.isatty():
            print("skyline-lsp: waiting for an editor on standard input; see --help for commands", file=sys.stderr)
        return serve_stdio()
    host, port = arguments.tcp
    try:
        return serve_tcp(host, port)
    except OSError as error:
        raise CommandError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


def _start_log(path: str | None, level: str | None) -> None:
    """Log to a file, or else to standard error, where editors keep a server's remarks."""
    wished = getattr(logging, (level or ("info" if path is not None else "warning")).upper())
    try:
        handler = logging.FileHandler(path, encoding="utf-8") if path is not None else logging.StreamHandler()
    except OSError as error:
        raise UsageError(f"--log-file: {path}: {error.strerror or error}") from error
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.setLevel(wished)
    # Of libraries, warnings only: pygls logs each message that it sends, with all it holds, at the level "info".
    logging.getLogger().addHandler(handler)
    logger = logging.getLogger("skyline_lsp")
    logger.addHandler(handler)
    logger.setLevel(wished)
    logger.propagate = False
