"""The sending end of a pipe of protocol messages, and the news of a run that goes through it."""

import os
from collections.abc import Callable
from typing import Any, NoReturn

from skyline_lsp import protocol
from skyline_lsp.protocol import Method, Partial, Profile, Progress, Stage, encode, notification, to_json


class Channel:
    """Sends messages through a descriptor. Only the process that made it sends: a forked one keeps silent.

    `closed` is called where nobody reads any more; without it, `OSError` is raised.
    """

    def __init__(self, descriptor: int, closed: Callable[[], NoReturn] | None = None) -> None:
        self._descriptor = descriptor
        self._closed = closed
        self._owner = os.getpid()

    def send(self, message: protocol.rpc.Message) -> None:
        """Send one message, waiting until the pipe has taken it."""
        if os.getpid() != self._owner:
            return
        data = memoryview(encode(message))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            if self._closed is None:
                raise
            self._closed()

    def notify(self, method: str, params: Any) -> None:
        """Send a notification; `params` may be a dataclass of the protocol."""
        self.send(notification(method, to_json(params)))


class PipeReporter:
    """Tells the server, by way of the host, how a run goes."""

    def __init__(self, channel: Channel, run_id: int) -> None:
        self._channel = channel
        self._run_id = run_id

    def progress(self, stage: Stage, message: str, fraction: float | None = None) -> None:
        """Tell how far the run is."""
        progress = Progress(run_id=self._run_id, stage=stage, message=message, fraction=fraction)
        self._channel.notify(Method.PROGRESS.value, progress)

    def partial(self, profile: Profile) -> None:
        """Hand over what is known so far."""
        self._channel.notify(Method.PARTIAL.value, Partial(run_id=self._run_id, profile=profile))
