"""What a program writes reaches the client's log at a bearable rate."""

import asyncio
import logging

from lsprotocol import types

from skyline_lsp.server.output_log import ClientLogHandler, OutputLog


async def test_output_is_sent_in_whole_lines() -> None:
    """A line that is still being written waits for its end."""
    sent: list[str] = []
    log = OutputLog(sent.append)
    for text in ("one\ntw", "o\nthr"):
        log.write(text)
    log.flush()
    assert sent == ["one\ntwo"]
    log.write("ee\n")
    log.flush()
    assert sent == ["one\ntwo", "three"]


async def test_a_line_without_an_end_is_sent_at_last() -> None:
    """A prompt, say."""
    sent: list[str] = []
    log = OutputLog(sent.append)
    log.write("prompt> ")
    log.flush()
    assert sent == ["prompt> "]


async def test_a_flood_is_cut_and_the_cut_is_told() -> None:
    """Neither the editor nor the server's memory is to drown."""
    sent: list[str] = []
    log = OutputLog(sent.append)
    for _ in range(1000):
        log.write("x" * 1000)
    log.flush()
    (text,) = sent
    assert len(text) < 20_000
    assert "983616 characters of output left out" in text


async def test_records_come_with_their_level() -> None:
    """As the protocol names it."""
    sent: list[tuple[types.MessageType, str]] = []
    handler = ClientLogHandler(lambda kind, text: sent.append((kind, text)))
    for level in (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG):
        handler.handle(logging.LogRecord("skyline_lsp", level, "", 0, "%s", ("text",), None))
    await asyncio.sleep(0)
    kinds = types.MessageType
    assert sent == [(kind, "text") for kind in (kinds.Error, kinds.Warning, kinds.Info, kinds.Log)]


def test_a_record_from_another_thread_is_left_to_other_handlers() -> None:
    """The client can be spoken to from the event loop alone."""
    sent: list[str] = []
    handler = ClientLogHandler(lambda _, text: sent.append(text))
    handler.handle(logging.LogRecord("skyline_lsp", logging.ERROR, "", 0, "text", (), None))
    assert sent == []
