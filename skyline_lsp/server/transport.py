"""From bytes to handlers: pygls' protocol with its gaps closed, over stdio or TCP.

What differs from pygls, and why: documents are kept by us (see `documents`); `exit` without `shutdown` ends with code
1; commands are tasks, so that `$/cancelRequest` reaches them; a request before `initialize` gets the error that the
protocol has for it; and standard output is out of reach of everything but the protocol.
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, Protocol

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import RPCNotification, RPCRequest
from pygls.protocol.language_server import lsp_method

_log = logging.getLogger(__name__)

_SWITCH_S: Final = 0.0005


class Host(Protocol):
    """What the protocol needs of the server."""

    exit_code: int | None
    stopping: threading.Event

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None: ...

    def did_change(self, params: types.DidChangeTextDocumentParams) -> None: ...

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None: ...

    async def execute(self, command: str, arguments: list[Any]) -> Any: ...

    async def close(self) -> None:
        """End all that was started."""
        ...


class SkylineProtocol(LanguageServerProtocol):
    """pygls' language server protocol with its gaps closed."""

    @property
    def _host(self) -> Host:
        host: Any = self._server
        return host  # type: ignore[no-any-return]

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Give JSON its type. A request that has none is answered here: it would wait for ever otherwise."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            identity = data.get("id")
            if identity is None:
                raise
            if "method" in data:
                refusal = JsonRpcInvalidParams(f"The parameters of `{data['method']}` do not fit.")
                self._send_response(identity, error=refusal.to_response_error())
            elif (future := self._request_futures.pop(identity, None)) is not None and not future.done():
                future.set_exception(error)
            return None

    def handle_message(self, message: Any) -> None:
        """Delegate a message, if it may come at this time."""
        if message is None:
            return
        method = getattr(message, "method", None)
        refusal: JsonRpcException | None = None
        if self._shutdown and method != types.EXIT:
            refusal = JsonRpcInvalidRequest("The server is shutting down.")
        elif self._workspace is None and method not in (None, types.INITIALIZE, types.EXIT):
            refusal = JsonRpcServerNotInitialized("`initialize` must come first.")
        elif self._workspace is not None and method == types.INITIALIZE:
            refusal = JsonRpcInvalidRequest("The server is initialized already.")
        if refusal is None:
            super().handle_message(message)
        elif isinstance(message, RPCRequest):
            self._send_response(message.id, error=refusal.to_response_error())
        elif isinstance(message, RPCNotification):
            _log.debug("%s comes at the wrong time and is dropped", method)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._host.did_open(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self._host.did_change(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._host.did_close(params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # pygls takes coroutines as well
        self, params: types.ExecuteCommandParams
    ) -> Any:
        return await self._host.execute(params.command, list(params.arguments or ()))

    @lsp_method(types.SHUTDOWN)
    async def lsp_shutdown(self, *_: Any) -> None:  # type: ignore[override]  # pygls takes coroutines as well
        self._shutdown = True
        current = self.msg_id
        # Cancelling a future may take it out of the dictionary at once.
        for identity, future in list(self._request_futures.items()):
            if identity != current and not future.done():
                future.cancel()
        await self._host.close()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]  # pygls takes plain functions as well
        self._host.exit_code = 0 if self._shutdown else 1
        self._host.stopping.set()

    async def serve(self, reader: Any, writer: Any) -> int:
        """Handle messages until `exit` or the end of input; the exit code."""
        host = self._host
        # A thread that follows a program holds the interpreter for this long each time a handler has let go of it, as
        # it does for every file it looks at.
        sys.setswitchinterval(_SWITCH_S)
        self.set_writer(writer)
        try:
            await run_async(
                stop_event=host.stopping,
                reader=reader,
                protocol=self,
                logger=_log,
                error_handler=self._server._report_server_error,
            )
        except (ConnectionError, asyncio.IncompleteReadError):
            _log.info("the connection to the client is lost")
        finally:
            await host.close()
        if host.exit_code is not None:
            return host.exit_code
        return 0 if self._shutdown else 1


class _NoAnswers(logging.Filter):
    """Errors that are a request's answer are told to the client; pygls logs them with a traceback besides."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, JsonRpcException) or isinstance(error, JsonRpcInternalError)


logging.getLogger("pygls.protocol.json_rpc").addFilter(_NoAnswers())


def serve_stdio(make_protocol: Callable[[], SkylineProtocol]) -> int:
    """Serve on standard input and output; the exit code.

    From here on descriptor 1 is standard error, and descriptor 0 is empty: nothing that prints, here or in a child
    process, can break into the protocol.
    """
    stdin, stdout = _take_standard_streams()

    interrupted = False

    async def serve() -> int:
        nonlocal interrupted
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stdin")
        serving = asyncio.ensure_future(make_protocol().serve(StdinAsyncReader(stdin, pool), StdoutWriter(stdout)))
        with _ended_by_signals(serving):
            try:
                return await serving
            except asyncio.CancelledError:
                interrupted = True
                return 1
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    code = asyncio.run(serve())
    if interrupted:
        # The thread that waits for input would keep the interpreter alive until there is some.
        logging.shutdown()
        os._exit(code)
    return code


def serve_tcp(host: str, port: int, make_protocol: Callable[[], SkylineProtocol]) -> int:
    """Serve on a TCP port, each connection a session of its own, until a client says `exit`; the exit code."""
    if not _is_loopback(host):
        _log.warning("listening on %s: whoever reaches this port can run programs as this user", host)

    async def serve() -> int:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            protocol = make_protocol()
            try:
                code = await protocol.serve(reader, _StreamWriter(writer))
            finally:
                writer.close()
            if protocol._host.exit_code is not None and not ended.done():
                ended.set_result(code)

        server = await asyncio.start_server(connected, host, port)
        for socket in server.sockets:
            address = socket.getsockname()
            print(f"skyline-lsp listens on {address[0]}:{address[1]}", file=sys.stderr, flush=True)
        async with server:
            with _ended_by_signals(ended):
                try:
                    return await ended
                except asyncio.CancelledError:
                    return 1

    return asyncio.run(serve())


class _StreamWriter:
    """An asyncio stream as pygls writes to it: without waiting, in order."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private duplicates of descriptors 0 and 1, which then lead nowhere and to standard error."""
    sys.stdout.flush()
    taken_in, taken_out = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(taken_in, os.O_BINARY)
        msvcrt.setmode(taken_out, os.O_BINARY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(taken_in, "rb"), os.fdopen(taken_out, "wb")


@contextlib.contextmanager
def _ended_by_signals(future: "asyncio.Future[Any]") -> Any:
    """Cancel a future on SIGTERM and SIGINT, so that workers are ended in good order."""
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGTERM, signal.SIGINT):
        # Event loops on Windows have no signal handlers; there the process just ends.
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, future.cancel)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
