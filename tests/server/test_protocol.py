"""The server keeps the language server protocol, whoever is at the other end."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from skyline_lsp.server.uris import uri_of
from tests.server.conftest import StartEditor
from tests.server.editor import LIMIT_S, SERVE, Editor, client_names

HOVER = {"textDocument": {"uri": "file:///x.py"}, "position": {"line": 99, "character": 99}}


class Wire:
    """The bare protocol: bytes to a server and messages from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def receive(self) -> Any:
        header = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), LIMIT_S)
        (length,) = [int(line[15:]) for line in header.split(b"\r\n") if line.startswith(b"Content-Length:")]
        return json.loads(await asyncio.wait_for(self._reader.readexactly(length), LIMIT_S))

    async def ask(self, identity: int, method: str, params: Any = None) -> Any:
        self.send(id=identity, method=method, params=params)
        while (message := await self.receive()).get("id") != identity or "method" in message:
            pass
        return message

    async def greet(self) -> None:
        await self.ask(0, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        self.send(method="initialized", params={})

    def close(self) -> None:
        self._writer.close()


async def start(program: tuple[str, ...] = SERVE) -> tuple[asyncio.subprocess.Process, Wire]:
    process = await asyncio.create_subprocess_exec(
        *program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return process, Wire(process.stdout, process.stdin)


async def check_exit(process: asyncio.subprocess.Process, expected: int) -> bytes:
    _, stderr = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode == expected, stderr.decode()
    assert b"Traceback" not in stderr
    return stderr


async def test_exit_after_shutdown_is_a_success() -> None:
    """And what comes in between is refused."""
    process, wire = await start()
    await wire.greet()
    assert (await wire.ask(1, "shutdown"))["result"] is None
    assert (await wire.ask(2, "textDocument/hover", HOVER))["error"]["code"] == types.ErrorCodes.InvalidRequest
    wire.send(method="exit")
    await check_exit(process, 0)


async def test_exit_without_shutdown_is_a_failure() -> None:
    """As the protocol has it."""
    process, wire = await start()
    await wire.greet()
    wire.send(method="exit")
    await check_exit(process, 1)


async def test_the_server_ends_with_its_input() -> None:
    """An editor that crashed leaves no server behind."""
    process, wire = await start()
    await wire.greet()
    wire.close()
    await check_exit(process, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
async def test_the_server_ends_by_a_signal() -> None:
    """Though it waits for input."""
    process, wire = await start()
    await wire.greet()
    process.terminate()
    await check_exit(process, 1)


async def test_nothing_is_answered_before_initialize() -> None:
    """But with the error for that; notifications are dropped."""
    process, wire = await start()
    wire.send(method="textDocument/didSave", params={"textDocument": {"uri": "file:///x.py"}})
    answer = await wire.ask(1, "textDocument/hover", HOVER)
    assert answer["error"]["code"] == types.ErrorCodes.ServerNotInitialized
    await wire.greet()
    answer = await wire.ask(2, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    assert answer["error"]["code"] == types.ErrorCodes.InvalidRequest
    wire.send(method="exit")
    await check_exit(process, 1)


async def test_a_client_that_declares_nothing_is_asked_nothing(project: Path) -> None:
    """No request comes from the server, and features work."""
    process, wire = await start()
    await wire.greet()
    uri = uri_of(str(project / "train.py"))
    text = (project / "train.py").read_text()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    wire.send(method="textDocument/didOpen", params={"textDocument": document})
    wire.send(id=1, method="textDocument/codeLens", params={"textDocument": {"uri": uri}})
    while (message := await wire.receive()).get("id") != 1:
        assert "id" not in message
    assert message["result"]
    wire.send(method="exit")
    await check_exit(process, 1)


async def test_what_prints_in_the_server_can_not_break_the_protocol() -> None:
    """Python's print, descriptor 1 and children's output all go to standard error."""
    noise = (
        "import os, subprocess, sys, skyline_lsp.server.app as app\n"
        "from skyline_lsp.server import serve_stdio\n"
        "before = app.Server.start\n"
        "def start(self, params):\n"
        "    print('from print'); os.write(1, b'from descriptor'); subprocess.run(['echo', 'from child'])\n"
        "    before(self, params)\n"
        "app.Server.start = start\n"
        "sys.exit(serve_stdio())\n"
    )
    process, wire = await start((sys.executable, "-c", noise))
    await wire.greet()
    await wire.ask(1, "shutdown")
    wire.send(method="exit")
    stderr = await check_exit(process, 0)
    for source in (b"from print", b"from descriptor", b"from child"):
        assert source in stderr


async def test_broken_messages_do_not_end_the_server() -> None:
    """Unknown methods, wrong parameters, changes of documents that are not open."""
    process, wire = await start()
    await wire.greet()
    for wrong in ({}, {"textDocument": 3}, [1], "text"):
        assert (await wire.ask(9, "textDocument/hover", wrong))["error"]["code"] == types.ErrorCodes.InvalidParams
    assert (await wire.ask(1, "skyline/unknown"))["error"]["code"] == types.ErrorCodes.MethodNotFound
    nowhere = {"textDocument": {"uri": "file:///nowhere.py", "version": 3}, "contentChanges": [{"text": "x"}]}
    wire.send(method="textDocument/didChange", params=nowhere)
    wire.send(method="textDocument/didClose", params={"textDocument": {"uri": "file:///nowhere.py"}})
    wire.send(method="textDocument/didChange", params={"nonsense": True})
    untitled = {"uri": "untitled:Untitled-1", "languageId": "python", "version": 1, "text": "x"}
    wire.send(method="textDocument/didOpen", params={"textDocument": untitled})
    position = {"textDocument": {"uri": "untitled:Untitled-1"}, "position": {"line": 99, "character": 99}}
    assert (await wire.ask(2, "textDocument/hover", position))["result"] is None
    await wire.ask(3, "shutdown")
    wire.send(method="exit")
    await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode == 0


async def test_tcp_serves_one_client_after_the_other(project: Path) -> None:
    """A lost connection is no end; `exit` is."""
    program = (sys.executable, "-c", "import sys; from skyline_lsp.server import serve_tcp; sys.exit(serve_tcp())")
    process = await asyncio.create_subprocess_exec(*program, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), LIMIT_S)).decode()
    host, _, port = line.rsplit(" ", 1)[1].strip().rpartition(":")
    assert host == "127.0.0.1"
    first = Wire(*await asyncio.open_connection(host, int(port)))
    await first.greet()
    first.close()
    second = Wire(*await asyncio.open_connection(host, int(port)))
    await second.greet()
    await second.ask(1, "shutdown")
    second.send(method="exit")
    assert await asyncio.wait_for(process.wait(), LIMIT_S) == 0


@pytest.mark.parametrize("client", client_names())
async def test_only_what_a_client_declares_is_asked_of_it(client: str, start_editor: StartEditor) -> None:
    """Refreshes and registrations; after a profile each refresh comes, and not at each key stroke."""
    editor = await start_editor(client)
    workspace = editor.declared.workspace
    assert workspace is not None
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    hints = bool(workspace.inlay_hint and workspace.inlay_hint.refresh_support)
    lenses = bool(workspace.code_lens and workspace.code_lens.refresh_support)
    if hints:
        await editor.until(lambda: "hints" in editor.refreshed)
    if lenses:
        await editor.until(lambda: "lenses" in editor.refreshed)
    assert lenses or "lenses" not in editor.refreshed
    assert hints or "hints" not in editor.refreshed or editor.client_info.name == "Eglot"
    configuration = workspace.did_change_configuration
    watched = workspace.did_change_watched_files
    expected = {
        method
        for method, declared in (
            ("workspace/didChangeConfiguration", configuration and configuration.dynamic_registration),
            ("workspace/didChangeWatchedFiles", watched and watched.dynamic_registration),
        )
        if declared
    }
    assert set(editor.registered) == expected


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("skyline.predict", [], "`batchSize` is missing"),
        ("skyline.predict", [{"batchSize": 0}], "`batchSize` is 0; give a whole number from 1"),
        ("skyline.predict", [{"batchSize": True}], "`batchSize` is True"),
        ("skyline.setBatchSize", [{}], "`batchSize` is missing"),
        ("skyline.setBatchSize", [{"batchSize": 8, "site": 3}], "`site` must be an object"),
        ("skyline.setBatchSize", [{"batchSize": 8, "site": {"path": "/x.py"}}], "`line` is None"),
        ("skyline.profile", [{"uri": 3}], "`uri` is 3"),
        ("skyline.profile", [{"uri": "untitled:x"}], "the URI of a file is expected"),
        ("skyline.profile", [{"path": "relative.py"}], "an absolute path is expected"),
        ("skyline.profile", ["train.py"], "at most one argument"),
        ("skyline.profile", [{}, {}], "at most one argument"),
        ("skyline.show", [{"line": 3}], "`uri` is missing"),
        ("skyline.nothing", [], "no command `skyline.nothing`"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_odd_arguments_are_named(shared_editor: Editor, command: str, arguments: list[Any], message: str) -> None:
    """With what is expected instead; not as an internal error."""
    with pytest.raises(JsonRpcException) as raised:
        await shared_editor.command(command, *arguments)
    assert raised.value.code == types.ErrorCodes.InvalidParams
    assert message in raised.value.message


async def test_a_request_that_names_no_file_goes_to_the_last_one(start_editor: StartEditor) -> None:
    """As commands from a palette do."""
    editor = await start_editor()
    uri = editor.open("train.py")
    status = await editor.command("skyline.status")
    assert status["workload"]["path"] == "train.py"
    await editor.command("skyline.profile")
    await editor.profiled(uri)


async def test_code_actions_come_in_the_kinds_asked_for(start_editor: StartEditor) -> None:
    """A kind includes its sub-kinds."""
    editor = await start_editor()
    uri = editor.open("train.py")
    kinds = {action.kind for action in await editor.actions(uri, 8)}
    assert kinds == {"refactor.rewrite", "source"}
    assert {action.kind for action in await editor.actions(uri, 8, ["refactor"])} == {"refactor.rewrite"}
    assert await editor.actions(uri, 8, ["quickfix"]) == []


async def test_the_trace_raises_the_log_level(start_editor: StartEditor) -> None:
    """And lowers it again."""
    editor = await start_editor(settings={"logLevel": "error"})
    uri = editor.open("train.py")
    editor.set_trace(types.SetTraceParams(value=types.TraceValue.Verbose))
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    await editor.until(lambda: editor.logged("running programs with"))
