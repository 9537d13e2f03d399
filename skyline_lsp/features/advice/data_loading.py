"""Advice on how batches come to the step."""

import math
from collections.abc import Iterator

from skyline_lsp.features.advice.advice import WORTH_PERCENT, Advice, AdviceCode, Case, Change
from skyline_lsp.features.units import format_bytes, format_ms
from skyline_lsp.protocol import LoaderUse
from skyline_lsp.source.torch_calls import TorchCall

LOADER = "torch.utils.data.DataLoader"
LEAST_PERCENT = 5.0
"""Of the iteration: worker processes cost something themselves, so less is not worth them."""
MOST_WORKERS = 16
PINS = ("cuda", "xpu")
"""Devices that copy from pinned memory by themselves."""


def data_loading(case: Case) -> Iterator[Advice]:
    """The step waits for its batches."""
    for use in case.profile.loaders:
        if case.percent(use.run_time_ms) < LEAST_PERCENT or use.processors < 2:
            continue
        wanted = _workers(use, case.run_time_ms)
        waits = f"The step waits {format_ms(use.run_time_ms)} for its batch, {case.share(use.run_time_ms)}"
        if use.workers == 0:
            message = (
                f"{waits}, which this program loads by itself. With `num_workers={wanted}`, processes of their own "
                "load the next batches meanwhile and may take all of that away"
            )
            if not case.accelerated:
                message += f", as far as the {use.processors} processors have time for both"
        elif wanted > use.workers:
            loaded = "one process can't keep up" if use.workers == 1 else f"{use.workers} processes can't keep up"
            message = f"{waits}: {loaded}. At this pace {wanted} could (`num_workers`)"
        else:
            message = (
                f"{waits}, although {use.workers} processes load for {use.processors} processors: to load a batch has "
                "to become cheaper"
            )
        call = _constructed(case, use)
        change = _change(case, use, call, wanted) if call is not None else None
        yield Advice(
            code=AdviceCode.DATA_LOADING,
            path=use.path,
            line=use.line if call is None else call.start.line,
            message=message + ".",
            change=change,
            worth_percent=case.percent(use.run_time_ms),
        )


def pinned_memory(case: Case) -> Iterator[Advice]:
    """Batches are copied to the accelerator out of memory that it can't read by itself."""
    if case.profile.device.kind not in PINS:
        return
    loaders = [use for use in case.profile.loaders if not use.pinned]
    for (path, line), nodes in case.nodes.items():
        copied = sum(node.self_pageable_bytes for node in nodes)
        spent_ms = case.self_ms(path, line)
        use = next((use for use in loaders if use.path == path), None)
        if not copied or use is None or case.percent(spent_ms) < WORTH_PERCENT:
            continue
        call = _constructed(case, use)
        change = None
        if call is not None and call.argument("pin_memory") is None:
            change = case.add_keyword(path, call, "pin_memory=True", "Load batches into pinned memory")
        yield Advice(
            code=AdviceCode.PINNED_MEMORY,
            path=path,
            line=line if call is None else call.start.line,
            message=(
                f"Line {line} copies {format_bytes(copied)} an iteration to the device, out of memory that is not "
                f"pinned, and takes {format_ms(spent_ms)}, {case.share(spent_ms)}. With `pin_memory=True` here, and "
                "`non_blocking=True` there, the device copies by itself while the host goes on."
            ),
            change=change,
            worth_percent=case.percent(spent_ms),
        )


def _workers(use: LoaderUse, run_time_ms: float) -> int:
    """How many processes load a batch in the time that the rest of the step takes."""
    rest_ms = max(run_time_ms - use.run_time_ms, run_time_ms / 100)
    # Workers that are waited for take the whole iteration for a batch each.
    needed = (
        math.ceil(use.run_time_ms / rest_ms) if use.workers == 0 else math.ceil(use.workers * run_time_ms / rest_ms)
    )
    return max(1, min(max(2, needed), use.processors, MOST_WORKERS))


def _constructed(case: Case, use: LoaderUse) -> TorchCall | None:
    """The call that makes the loader, where the loop is over a variable that is assigned once in the file."""
    source = case.sources.get(use.path)
    if source is None:
        return None
    names = [name for name, lines in source.loops.items() if use.line in lines]
    calls = [call for call in source.calls if call.name == LOADER and call.variable in names]
    return calls[0] if len(calls) == 1 else None


def _change(case: Case, use: LoaderUse, call: TorchCall, wanted: int) -> Change | None:
    """Where processes are started anew, they import the program's file: it must not train when it is imported."""
    source = case.sources[use.path]
    if use.path != case.profile.workload.path or not source.has_main_guard or wanted == use.workers:
        return None
    # What is to be sent to another process needs a name there.
    if any("lambda" in argument.text for argument in call.arguments):
        return None
    title = f"Load data in {wanted} processes"
    given = call.argument("num_workers")
    if given is None:
        return case.add_keyword(use.path, call, f"num_workers={wanted}", title)
    if given.value is None or given.value_start.line != given.end.line:
        return None
    return Change(
        title=title,
        line=given.end.line,
        start_column=given.value_start.column,
        end_column=given.end.column,
        old=given.text,
        new=str(wanted),
        first_line=call.start.line,
        last_line=call.end.line,
    )
