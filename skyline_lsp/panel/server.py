"""The loopback server of one page: static files, and a web socket that carries the state there and wishes back.

The program that owns it gives it a `PanelHost`, calls `notify` when the host's state has changed, and closes it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import WSCloseCode, WSMsgType, web

from skyline_lsp.panel import wire
from skyline_lsp.panel.guard import EMBEDDERS, Guard
from skyline_lsp.panel.state import PanelHost, PanelState

_log = logging.getLogger(__name__)

_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    "index.html": "text/html",
    "panel.css": "text/css",
    "panel.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "THIRD_PARTY.md": "text/plain",
}
"""The files that are served, and no others."""

_LONGEST_MESSAGE: Final = 16 * 1024
_LARGEST_BATCH: Final = 2**31 - 1
_CLOSING_S: Final = 2.0
"""How long a page may take to say good-bye."""


class _BadRequestError(Exception):
    """The page asked for something that there is not; the message is for its console."""


class PanelServer:
    """Serves the page on 127.0.0.1, at a free port, to whoever has its address."""

    def __init__(self, host: PanelHost, *, embedders: tuple[str, ...] = tuple(EMBEDDERS)) -> None:
        """`embedders` are the sources that may show the page in a frame, as in a Content-Security-Policy."""
        self._host = host
        self._embedders = embedders
        self._guard: Guard | None = None
        self._runner: web.AppRunner | None = None
        self._starting = asyncio.Lock()
        self._pages: set[_Page] = set()
        self._parts = _Parts()

    @property
    def open_pages(self) -> int:
        """How many pages are connected."""
        return len(self._pages)

    async def start(self) -> str:
        """Listen, if it doesn't yet, and tell the page's address, which holds the secret. Raises `OSError`."""
        async with self._starting:
            if self._guard is None:
                # The rules need the port, and the port is known once it listens: nothing is answered in between, as
                # the handler takes the guard when a request comes.
                app = web.Application()
                app.router.add_route("*", "/{path:.*}", self._answer)
                runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_S)
                await runner.setup()
                try:
                    await web.TCPSite(runner, "127.0.0.1", 0).start()
                except BaseException:
                    await runner.cleanup()
                    raise
                self._guard = Guard(runner.addresses[0][1], embedders=self._embedders)
                self._runner = runner
            return self._guard.address()

    def notify(self) -> None:
        """The host's state has changed. Cheap, and may be called often: pages get the newest when they are ready."""
        for page in self._pages:
            page.wake()

    def highlight(self, path: str | None, line: int | None) -> None:
        """The editor's cursor is on this line of the profile (path relative to the root), or on none."""
        message = wire.encode(wire.highlight_message(path, line))
        for page in self._pages:
            page.highlight(message)

    async def close(self) -> None:
        """Say good-bye to the pages and stop listening. The address is good for nothing afterwards."""
        async with self._starting:
            pages = tuple(self._pages)
            if pages:
                await asyncio.wait([asyncio.ensure_future(page.close()) for page in pages], timeout=_CLOSING_S)
            runner, self._runner, self._guard = self._runner, None, None
            if runner is not None:
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        guard = self._guard
        if guard is None:
            return web.Response(status=503)
        web_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        refusal = guard.refusal(request.rel_url.raw_path, request.headers, web_socket=web_socket)
        if refusal is not None:
            return web.Response(status=403, text=refusal, headers=guard.headers())
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, headers={**guard.headers(), "Allow": "GET, HEAD"})
        name = request.rel_url.raw_path.split("/", 2)[2:]
        wanted = (name[0] if name else "") or "index.html"
        if web_socket:
            if wanted != "socket":
                return web.Response(status=404, headers=guard.headers())
            return await self._converse(request, guard.headers())
        if wanted not in _TYPES or not name:
            return web.Response(status=404, text="There is no such page.", headers=guard.headers())
        body = await asyncio.to_thread((_STATIC / wanted).read_bytes)
        return web.Response(body=body, content_type=_TYPES[wanted], charset="utf-8", headers=guard.headers())

    async def _converse(self, request: web.Request, headers: Mapping[str, str]) -> web.WebSocketResponse:
        # Pages behind a suspended laptop's lid are found gone by the heartbeat.
        socket = web.WebSocketResponse(heartbeat=30.0, max_msg_size=_LONGEST_MESSAGE, timeout=_CLOSING_S)
        socket.headers.update(headers)
        await socket.prepare(request)
        page = _Page(socket, self._host, self._parts)
        self._pages.add(page)
        try:
            await page.run()
        finally:
            self._pages.discard(page)
        return socket


@dataclass(eq=False, slots=True)
class _Part:
    """A message, and the values that it was made from, by whose identity it is known to be current."""

    made_from: tuple[object, ...]
    text: str


class _Parts:
    """The large messages, encoded once for all pages, in a thread so that the loop stays free."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._profile = _Part((object(),), "")
        self._predictions = _Part((object(),), "")

    async def current(self, state: PanelState) -> tuple[_Part, _Part]:
        """The profile's message and the predictions' for this state."""
        memory_bytes = state.profile.device.memory_bytes if state.profile is not None else None
        async with self._lock:
            self._profile = await _renew(
                self._profile,
                (state.profile, state.texts),
                lambda: wire.profile_message(state.profile, state.texts),
            )
            self._predictions = await _renew(
                self._predictions,
                # Small integers are one object each, but not the large ones: hence the model, and values beside it.
                (state.model, _Value(state.batch_size), _Value(memory_bytes)),
                lambda: wire.predictions_message(state.model, state.batch_size, memory_bytes),
            )
            return self._profile, self._predictions


@dataclass(frozen=True, slots=True)
class _Value:
    """Compares by value where the others compare by identity."""

    value: int | None


async def _renew(part: _Part, made_from: tuple[object, ...], make: Callable[[], wire.Message]) -> _Part:
    same = len(part.made_from) == len(made_from) and all(
        old == new if isinstance(new, _Value) else old is new
        for old, new in zip(part.made_from, made_from, strict=True)
    )
    if same:
        return part
    return _Part(made_from, await asyncio.to_thread(lambda: wire.encode(make())))


class _Page:
    """One connected page."""

    def __init__(self, socket: web.WebSocketResponse, host: PanelHost, parts: _Parts) -> None:
        self._socket = socket
        self._host = host
        self._parts = parts
        self._changed = asyncio.Event()
        self._changed.set()
        self._stale = True
        self._highlight: str | None = None
        self._replies: list[str] = []
        self._wishes: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """There is a newer state."""
        self._stale = True
        self._changed.set()

    def highlight(self, message: str) -> None:
        """Only the newest is sent: a page that is slow misses some."""
        self._highlight = message
        self._changed.set()

    async def close(self) -> None:
        """Tell the page that its server goes."""
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"closed")

    async def run(self) -> None:
        """Send states and hear wishes until the page goes."""
        sender = asyncio.ensure_future(self._send())
        try:
            async for message in self._socket:
                if message.type is WSMsgType.TEXT:
                    wish = asyncio.ensure_future(self._hear(message.data))
                    self._wishes.add(wish)
                    wish.add_done_callback(self._wishes.discard)
        finally:
            # What the page has asked for goes on in the editor; only the telling stops.
            sender.cancel()
            await asyncio.wait([sender])

    async def _send(self) -> None:
        sent: dict[str, str] = {}
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if self._stale:
                    self._stale = False
                    await self._send_state(sent)
                # Replies come after the state: an edit that is reported done is seen done.
                texts, self._replies = self._replies, []
                if self._highlight is not None:
                    texts.append(self._highlight)
                    self._highlight = None
                for text in texts:
                    await self._socket.send_str(text)
        except (ConnectionError, asyncio.CancelledError):
            return
        except Exception:
            _log.exception("the panel's state could not be sent")
            await self._socket.close(code=WSCloseCode.INTERNAL_ERROR)

    async def _send_state(self, sent: dict[str, str]) -> None:
        state = self._host.state()
        profile, predictions = await self._parts.current(state)
        # The state comes last: with it the page draws everything anew, once.
        for name, text in (
            ("profile", profile.text),
            ("predictions", predictions.text),
            ("state", wire.encode(wire.state_message(state))),
        ):
            if sent.get(name) != text:
                sent[name] = text
                await self._socket.send_str(text)

    async def _hear(self, text: str) -> None:
        try:
            wish = _parse(text)
        except _BadRequestError as error:
            _log.info("the panel's page sent what can't be read: %s", error)
            return
        reply: dict[str, Any] = {"type": "reply", "id": wish.identity, "error": None}
        try:
            reply.update(await _WISHES[wish.method](self._host, wish.parameters))
        except _BadRequestError as error:
            reply["error"] = str(error)
        except Exception:
            _log.exception("the panel's wish %r could not be fulfilled", wish.method)
            reply["error"] = "That went wrong; the language server's log says why."
        self._replies.append(wire.encode(reply))
        self._changed.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    identity: int
    method: str
    parameters: Mapping[str, Any]


def _parse(text: str) -> _Wish:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BadRequestError("not JSON") from error
    if not isinstance(message, dict):
        raise _BadRequestError("not an object")
    identity, method = message.get("id"), message.get("method")
    if type(identity) is not int or not isinstance(method, str) or method not in _WISHES:
        raise _BadRequestError("no such request")
    return _Wish(identity=identity, method=method, parameters=message)


async def _predict(host: PanelHost, parameters: Mapping[str, Any]) -> wire.Message:
    prediction = await host.predict(_batch_size(parameters))
    return {"prediction": None if prediction is None else wire.prediction_json(prediction)}


async def _apply(host: PanelHost, parameters: Mapping[str, Any]) -> wire.Message:
    return {"error": await host.apply(_batch_size(parameters))}


async def _reveal(host: PanelHost, parameters: Mapping[str, Any]) -> wire.Message:
    path, line = parameters.get("path"), parameters.get("line")
    if not isinstance(path, str) or type(line) is not int or line < 1:
        raise _BadRequestError("A path and a line are needed.")
    if path not in wire.known_places(host.state()):
        raise _BadRequestError("That file is no part of what is shown.")
    await host.reveal(path, line)
    return {}


async def _profile(host: PanelHost, parameters: Mapping[str, Any]) -> wire.Message:
    await host.profile()
    return {}


async def _cancel(host: PanelHost, parameters: Mapping[str, Any]) -> wire.Message:
    await host.cancel()
    return {}


def _batch_size(parameters: Mapping[str, Any]) -> int:
    value = parameters.get("batchSize")
    if type(value) is not int or not 1 <= value <= _LARGEST_BATCH:
        raise _BadRequestError("A batch size is a whole number, 1 or more.")
    return value


_WISHES: Final[Mapping[str, Callable[[PanelHost, Mapping[str, Any]], Awaitable[wire.Message]]]] = {
    "predict": _predict,
    "apply": _apply,
    "reveal": _reveal,
    "profile": _profile,
    "cancel": _cancel,
}
