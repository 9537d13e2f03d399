"""What the worker's process becomes, by its arguments: the host, or the fresh process of one run."""

import argparse
import os
from collections.abc import Sequence

from skyline_lsp.protocol import from_json
from skyline_lsp.protocol.rpc import Decoder
from skyline_lsp.worker import child, postmortem
from skyline_lsp.worker.channel import Channel
from skyline_lsp.worker.child import Job
from skyline_lsp.worker.host import Host, Options
from skyline_lsp.worker.processes import become_run_process

_DEFAULTS = Options()


def main(arguments: Sequence[str], requests: int, replies: int) -> None:
    """Serve, or run one job, through the two descriptors."""
    parser = argparse.ArgumentParser(prog="skyline-lsp worker")
    parser.add_argument("--fork", action=argparse.BooleanOptionalAction, default=_DEFAULTS.fork)
    parser.add_argument("--threads", action=argparse.BooleanOptionalAction, default=_DEFAULTS.threads)
    parser.add_argument("--idle-limit", type=float, default=_DEFAULTS.idle_limit_s, metavar="SECONDS")
    parser.add_argument("--run", action="store_true", help="run the one job that comes as the first message")
    parser.add_argument("--ask-by-pipe", action="store_true", help="with --run: be asked for the place by pipe")
    options = parser.parse_args(arguments)
    if options.run:
        _run(requests, replies, options.ask_by_pipe)
    Host(
        requests, replies, Options(fork=options.fork, threads=options.threads, idle_limit_s=options.idle_limit)
    ).serve()


def _run(requests: int, replies: int, ask_by_pipe: bool) -> None:
    become_run_process(None)
    decoder = Decoder()
    while data := os.read(requests, 65536):
        for message in decoder.feed(data):
            job = from_json(Job, message["params"])
            channel = Channel(replies, lambda: postmortem.exit_process(1))
            child.run(job, channel, requests if ask_by_pipe else None)
    # The host was gone before it could say what to run.
    postmortem.exit_process(1)
