"""The command line: `skyline-lsp` serves editors, its commands do the same work in a terminal."""

from skyline_lsp.cli.command_line import main

__all__ = ["main"]
