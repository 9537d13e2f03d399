"""A session's progress in the client: one bar at a time, cancellable, at a bearable rate."""

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from skyline_lsp.server.session import Activity

if TYPE_CHECKING:
    from skyline_lsp.server.app import Server

_log = logging.getLogger(__name__)

_ANSWER_S: Final = 5.0
_PAUSE_S: Final = 0.1
_tokens = itertools.count(1)


class ProgressBar:
    """Shows the latest activity; what came and went in between is not shown."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._latest: Activity | None = None
        self._news = asyncio.Event()
        self._driven = False
        self.token: str | None = None
        """Of the bar on show."""

    def show(self, activity: Activity | None) -> None:
        """Show an activity, or the end of all."""
        self._latest = activity
        self._news.set()
        if activity is not None and not self._driven:
            self._driven = True
            self._server.spawn(self._drive())

    async def _drive(self) -> None:
        try:
            while (activity := self._latest) is not None:
                await self._bar(activity.title)
        finally:
            self._driven = False

    async def _bar(self, title: str) -> None:
        """One bar, from its creation to its end or to an activity of another title."""
        progress = self._server.work_done_progress
        token = f"skyline-{next(_tokens)}"
        try:
            await asyncio.wait_for(progress.create_async(token), _ANSWER_S)
        except (asyncio.TimeoutError, JsonRpcException) as error:
            _log.info("the client shows no progress: %s", error or "no answer")
            self._latest = None
            return
        activity = self._latest
        if activity is None or activity.title != title:
            # Over already; a bar that was created must begin and end all the same.
            activity = Activity(title=title, message="")
        self.token = token
        percentage = activity.percentage or 0
        begin = types.WorkDoneProgressBegin(
            title=title, message=activity.message, percentage=percentage, cancellable=True
        )
        progress.begin(token, begin)
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                activity = self._latest
                if activity is None or activity.title != title:
                    break
                # A bar never goes back.
                percentage = max(percentage, activity.percentage or 0)
                report = types.WorkDoneProgressReport(message=activity.message, percentage=percentage, cancellable=True)
                progress.report(token, report)
                await asyncio.sleep(_PAUSE_S)
        finally:
            self.token = None
            progress.end(token, types.WorkDoneProgressEnd())
            progress.tokens.pop(token, None)
