"""The interactive page's owner: the page's state from a session, and the page's wishes to the session and the editor.

`skyline_lsp.panel.server` is imported when a page is asked for: its HTTP server takes a while to load.
"""

import os
from typing import TYPE_CHECKING

from lsprotocol import types

from skyline_lsp.features import State
from skyline_lsp.panel import Advice, HistoryEntry, PanelFailure, PanelSite, PanelState, line_texts
from skyline_lsp.prediction import Prediction
from skyline_lsp.protocol import Profile
from skyline_lsp.server.session import Refused, Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skyline_lsp.panel.server import PanelServer
    from skyline_lsp.server.app import Server


class PanelOwner:
    """The `PanelHost` of one session."""

    def __init__(self, server: "Server", session: Session, path: str | None) -> None:
        self._server = server
        self._session = session
        self.path = path
        """The file whose program the page shows; None means the one last looked at."""
        self._page: PanelServer | None = None
        self._texts: tuple[Profile | None, Mapping[str, Mapping[int, str]]] = (None, {})

    async def open(self, embedders: tuple[str, ...]) -> str:
        """Serve the page, if it isn't served yet; its address."""
        if self._page is None:
            from skyline_lsp.panel.server import PanelServer

            self._page = PanelServer(self, embedders=embedders)
        return await self._page.start()

    def notify(self) -> None:
        """There may be something else to show."""
        if self._page is not None:
            self._page.notify()

    def highlight(self, path: str, line: int) -> None:
        """The editor's cursor is on a line, as the file is now."""
        if self._page is not None:
            relative = self._session.files.relative(path)
            self._page.highlight(relative, self._then(path, line))

    async def close(self) -> None:
        """End the page."""
        if self._page is not None:
            await self._page.close()
            self._page = None

    # What the page asks.

    def state(self) -> PanelState:
        """What there is to show now."""
        session, relative = self._session, self._session.files.relative
        results = session.results(self.path)
        status = session.status(self.path)
        workload = status["workload"]
        name = os.path.basename(session.root)
        if results is None or workload is None:
            return PanelState(project=name)
        found = session.known_sites(results.path)
        shot = session.snapshot(results.path)
        failure = results.failure
        frame = failure.frames[-1] if failure is not None and failure.frames else None
        return PanelState(
            project=name,
            workload=workload["path"],
            state=State(status["state"]),
            progress=status["progress"],
            failure=PanelFailure(
                message=failure.message,
                path=relative(frame.path) if frame is not None else None,
                line=frame.line if frame is not None else None,
            )
            if failure is not None
            else None,
            profile=results.profile,
            outdated=shot.outdated,
            texts=self._line_texts(results.profile),
            model=results.sampling.model,
            batch_size=found.best.batch_size if found.best is not None else None,
            sites=tuple(
                PanelSite(
                    path=relative(site.path),
                    line=site.line,
                    name=site.name,
                    value=site.batch_size,
                    editable=site.editable,
                    reason=site.reason,
                )
                for site in found.sites
            ),
            no_site_reason=found.reason,
            history=tuple(
                HistoryEntry(
                    measured_at=row.saved_at,
                    batch_size=row.batch_size,
                    run_time_ms=row.run_time_ms,
                    spread_ms=row.spread_ms,
                    samples_per_second=row.samples_per_second,
                    peak_bytes=row.peak_bytes,
                    device_name=row.device_name,
                    predicted=row.predicted,
                )
                for row in results.history
            ),
            advice=tuple(
                Advice(code=one.code.value, message=one.message, path=one.path, line=one.line) for one in shot.advice()
            ),
        )

    async def predict(self, batch_size: int) -> Prediction | None:
        """What a batch size would do; measures what is missing."""
        try:
            return await self._session.predict(self.path, batch_size)
        except Refused as refusal:
            self._server.notice(str(refusal))
            return None

    async def apply(self, batch_size: int) -> str | None:
        """Write a batch size through the editor; None when done, else why not."""
        try:
            edit = await self._session.batch_size_edit(self.path, batch_size, None)
        except Refused as refusal:
            return str(refusal)
        problem = None
        if edit.new != edit.old:
            problem = await self._server.apply(self._session, edit, f"Set batch size to {batch_size}")
        self.notify()
        return problem

    async def reveal(self, path: str, line: int) -> None:
        """Show a line of the profile in the editor, where it is now."""
        absolute = self._session.files.absolute(path)
        now = self._session.snapshot(absolute).line_now(path, line) or line
        await self._server.reveal(absolute, now, take_focus=False)

    async def profile(self) -> None:
        """Profile again."""
        try:
            await self._session.profile(self.path)
        except Refused as refusal:
            self._server.show(str(refusal), types.MessageType.Warning)

    async def cancel(self) -> None:
        """End the run under way."""
        await self._session.cancel()

    def _then(self, path: str, line: int) -> int:
        """The line when it was profiled."""
        results = self._session.results(self.path)
        moved = results.line_of(path) if results is not None else None
        if moved is None:
            return line
        return next((then for then, now in moved.items() if now == line), line)

    def _line_texts(self, profile: Profile | None) -> "Mapping[str, Mapping[int, str]]":
        known, texts = self._texts
        if known is not profile:
            results = self._session.results(self.path)
            texts = line_texts(profile, results.lines_then) if profile is not None and results is not None else {}
            self._texts = (profile, texts)
        return texts
