"""How a command ends other than well."""

import sys

DONE = 0
FAILED = 1
USAGE = 2
EXCEEDED = 3
"""A comparison came out worse than was allowed."""
INTERRUPTED = 130
"""128 and the number of SIGINT, as shells report it."""


class CommandError(Exception):
    """What was asked can't be had; the message says why, for the user."""

    code = FAILED

    def report(self) -> None:
        """Tell the user, on standard error."""
        print(f"skyline-lsp: {self}", file=sys.stderr)


class UsageError(CommandError):
    """The command line makes no sense; the message says what would."""

    code = USAGE
