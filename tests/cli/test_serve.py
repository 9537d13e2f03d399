"""Starting the server from the command line."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from skyline_lsp.cli import main

LIMIT_S = 60


async def check_session(client: LanguageClient) -> None:
    """The server introduces itself and ends when told."""
    answer = await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    assert answer.server_info is not None
    assert answer.server_info.name == "skyline-lsp"
    client.initialized(types.InitializedParams())
    await client.shutdown_async(None)
    client.exit(None)


@pytest.mark.parametrize("arguments", [[], ["serve"], ["--stdio"], ["serve", "--stdio"]])
async def test_an_editor_starts_it_on_its_pipes(arguments: list[str]) -> None:
    """Without arguments, and with those that editors add, it serves on standard input and output."""
    client = LanguageClient("test", "1")
    await client.start_io(sys.executable, "-m", "skyline_lsp", *arguments)
    await asyncio.wait_for(check_session(client), LIMIT_S)
    await client.stop()


@pytest.mark.parametrize("arguments", [["--tcp", ":0"], ["serve", "--tcp", "127.0.0.1:0"]])
async def test_it_serves_on_a_tcp_port(arguments: list[str]) -> None:
    """It listens on loopback, says where, and ends with its client."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "skyline_lsp", *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert server.stderr is not None
    line = await asyncio.wait_for(server.stderr.readline(), LIMIT_S)
    found = re.search(rb"127\.0\.0\.1:(\d+)", line)
    assert found is not None
    client = LanguageClient("test", "1")
    await client.start_tcp("127.0.0.1", int(found[1]))
    await asyncio.wait_for(check_session(client), LIMIT_S)
    assert await asyncio.wait_for(server.wait(), LIMIT_S) == 0
    await client.stop()


async def test_the_log_goes_to_the_file(tmp_path: Path) -> None:
    """`--log-file` takes the log, at the level asked for, whatever the editor's settings say."""
    log = tmp_path / "server.log"
    client = LanguageClient("test", "1")
    await client.start_io(sys.executable, "-m", "skyline_lsp", "--log-file", str(log), "--log-level", "debug")
    await asyncio.wait_for(check_session(client), LIMIT_S)
    await client.stop()
    assert " DEBUG skyline_lsp." in log.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stdio", "--tcp", "127.0.0.1:0"], "exclude each other"),
        (["--log-file", "absent/server.log"], "--log-file: absent/server.log"),
    ],
)
def test_usage_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """What can't be served ends with code 2 before anything is read."""
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
