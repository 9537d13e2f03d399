"""What the worker's host waits for, and in which order it hears of it."""

import os
import sys

import pytest

from skyline_lsp.worker.events import SelectEvents, Source

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows can't select on pipes")


def test_the_process_comes_before_requests() -> None:
    """When a process ends just as a request arrives, its end is told first: the request may start the next one."""
    events = SelectEvents()
    requests, requests_end = os.pipe()
    messages, messages_end = os.pipe()
    try:
        events.watch(Source.REQUESTS, requests)
        events.watch(Source.MESSAGES, messages)
        os.write(requests_end, b"request")
        os.write(messages_end, b"message")
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        events.watch_process(pid, None)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        heard = [(event.source, event.code) for event in events.wait(None)]
    finally:
        events.close()
        for descriptor in (requests, requests_end, messages, messages_end):
            os.close(descriptor)
    assert heard == [(Source.MESSAGES, 0), (Source.ENDED, 3), (Source.REQUESTS, 0)]
