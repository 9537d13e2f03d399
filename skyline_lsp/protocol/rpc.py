"""JSON-RPC 2.0 over a byte stream, one message a line.

JSON text never holds a raw line feed, so a line is a frame and a broken message loses itself only.
"""

import json
from collections.abc import Iterator
from typing import Any

MAX_MESSAGE_BYTES = 256 * 1024 * 1024

Message = dict[str, Any]


class RpcError(Exception):
    """A frame that is not a JSON-RPC message, or an error reply."""

    def __init__(self, message: str, code: int = -32603, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def request(identity: int, method: str, params: Any) -> Message:
    """A message that is owed one reply."""
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def notification(method: str, params: Any) -> Message:
    """A message that is owed no reply."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(identity: int, result: Any) -> Message:
    """The successful reply to request `identity`."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def reply_error(identity: int | None, error: RpcError) -> Message:
    """The failed reply to request `identity`."""
    return {
        "jsonrpc": "2.0",
        "id": identity,
        "error": {"code": error.code, "message": str(error), "data": error.data},
    }


def encode(message: Message) -> bytes:
    """One message as bytes, its line feed included."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode("ascii") + b"\n"


class Decoder:
    """Turns bytes, cut anywhere, into messages."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield each message that `data` completes. Raises `RpcError` on a line that is none; later lines survive."""
        self._pending += data
        if len(self._pending) > MAX_MESSAGE_BYTES:
            self._pending.clear()
            raise RpcError(f"a message is longer than {MAX_MESSAGE_BYTES} bytes")
        while (end := self._pending.find(b"\n")) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            if line.strip():
                yield _parse(line)


def _parse(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise RpcError(f"not JSON: {line[:200]!r}", code=-32700) from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(f"not a JSON-RPC message: {line[:200]!r}", code=-32600)
    return message
