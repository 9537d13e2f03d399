"""Runs scripts and reports what their models were fed and when their optimizers stepped; a program of its own.

Reads a JSON list of runs from standard input, each {"path", "module", "arguments", "directory"}, and writes a JSON list
of reports, each {"events", "ends"}; an event is ["forward", dimension], ["backward"] or ["step", optimizer]. torch is
imported once; each script runs in a fork of this process, so that forty of them take seconds.
"""

import contextlib
import json
import os
import runpy
import sys
import tempfile

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

MAX_EVENTS = 60


class Enough(BaseException):
    """Stops a script that has shown enough."""


def main() -> None:
    """Run every script that standard input names."""
    torch.set_num_threads(1)
    torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)  # the first optimizer takes seconds to construct
    reports = [observe(run) for run in json.load(sys.stdin)]
    json.dump(reports, sys.stdout)


def observe(run: dict) -> dict:
    """Run one script in a fork."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                result = follow(run)
                with open(report.name, "w", encoding="utf-8") as out:
                    json.dump(result, out)
                status = 0
            finally:
                os._exit(status)
        os.waitpid(child, 0)
        text = report.read()
    return json.loads(text) if text else {"events": [], "ends": "crashes"}


def follow(run: dict) -> dict:
    """Run one script in this process, watching."""
    silence = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(silence, descriptor)
    os.chdir(run["directory"])
    sys.argv = [run["path"], *run["arguments"]]
    sys.path[0] = run["directory"] if run["module"] else os.path.dirname(run["path"])
    torch.manual_seed(0)
    events: list[list] = []
    watch(events)
    ends = "returns"
    try:
        if run["module"]:
            runpy.run_module(run["module"], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(run["path"], run_name="__main__")
    except Enough:
        pass
    except SystemExit:
        ends = "exits"
    except Exception:
        ends = "raises"
    return {"events": events, "ends": ends}


def watch(events: list[list]) -> None:
    """Record forwards of outermost modules, backward passes, and optimizer steps."""
    depth = 0
    names: dict[int, int] = {}

    def enter(module: nn.Module, inputs: tuple) -> None:
        nonlocal depth
        depth += 1
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        if depth == 1 and torch.is_grad_enabled() and tensors and not isinstance(module, nn.modules.loss._Loss):
            record(["forward", tensors[0].shape[0] if tensors[0].dim() else 0])

    def leave(module: nn.Module, inputs: tuple, output: object) -> None:
        nonlocal depth
        depth -= 1

    def record(event: list) -> None:
        events.append(event)
        if len(events) >= MAX_EVENTS:
            raise Enough

    nn.modules.module.register_module_forward_pre_hook(enter)
    nn.modules.module.register_module_forward_hook(leave)
    original = torch.Tensor.backward

    def backward(self: torch.Tensor, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        record(["backward"])

    torch.Tensor.backward = backward  # type: ignore[method-assign]
    register_optimizer_step_post_hook(
        lambda optimizer, args, kwargs: record(["step", names.setdefault(id(optimizer), len(names))])
    )


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
