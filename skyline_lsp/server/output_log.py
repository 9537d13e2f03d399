"""What goes to the client's log: the user's program's output, and our own messages."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from lsprotocol import types

_PAUSE_S: Final = 0.1
_MOST_CHARACTERS: Final = 16_384
"""In one message, one of which is sent in `_PAUSE_S`: a program that prints without end must not drown the editor."""

_KINDS: Final = (
    (logging.ERROR, types.MessageType.Error),
    (logging.WARNING, types.MessageType.Warning),
    (logging.INFO, types.MessageType.Info),
)


class OutputLog:
    """Gathers text and passes it on at a bearable rate, in whole lines where there are some."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._pending: list[str] = []
        self._length = 0
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, text: str) -> None:
        """Take text in; it is sent soon."""
        room = max(0, _MOST_CHARACTERS - self._length)
        self._dropped += len(text) - len(text[:room])
        self._pending.append(text[:room])
        self._length += len(text[:room])
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self.flush)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = "".join(self._pending)
        rest = ""
        if self._dropped:
            text += f"\n[{self._dropped} characters of output left out]"
        elif "\n" in text and len(text) < _MOST_CHARACTERS:
            text, _, rest = text.rpartition("\n")
        self._pending, self._length, self._dropped = [], 0, 0
        if text.strip():
            self._send(text.rstrip("\n"))
        if rest:
            self.write(rest)


class ClientLogHandler(logging.Handler):
    """Sends log records to the client."""

    def __init__(self, send: Callable[[types.MessageType, str], None]) -> None:
        super().__init__()
        self._client = send
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; a fault in sending must not be logged here again."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # From another thread, or after the end: the client can't be spoken to from there.
            return
        kind = next((kind for level, kind in _KINDS if record.levelno >= level), types.MessageType.Log)
        try:
            loop.call_soon(self._client, kind, self.format(record))
        except Exception:
            self.handleError(record)
