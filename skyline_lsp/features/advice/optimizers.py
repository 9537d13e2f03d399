"""Advice on optimizers."""

from collections.abc import Iterator

from skyline_lsp.features.advice.advice import WORTH_PERCENT, Advice, AdviceCode, Case
from skyline_lsp.features.units import count, format_bytes, format_ms
from skyline_lsp.protocol import OptimizerUse

LEAST_PERCENT = 5.0
"""Of the iteration that the optimizer's line takes."""


def fused_optimizer(case: Case) -> Iterator[Advice]:
    """An optimizer updates its tensors by many operations, where one kernel would do."""
    for use in case.profile.optimizers:
        if use.fused or not use.can_fuse:
            continue
        cost = case.lines.get((use.path, use.line))
        spent_ms = case.self_ms(use.path, use.line)
        # Where another optimizer steps on the same line, whose the time is can't be told.
        alone = sum((other.path, other.line) == (use.path, use.line) for other in case.profile.optimizers) == 1
        if cost is None or not alone or cost.label is not None or case.percent(spent_ms) < LEAST_PERCENT:
            continue
        fused_bytes = _fused_bytes(use)
        saved_ms = spent_ms * (1 - fused_bytes / cost.self_bytes_moved) if cost.self_bytes_moved else 0.0
        if case.percent(saved_ms) < WORTH_PERCENT:
            continue
        path, line, change = use.path, use.line, None
        made = [
            (where, call)
            for where, source in case.sources.items()
            for call in source.calls
            if call.name.startswith("torch.optim.") and call.short_name == use.name
        ]
        if len(made) == 1:
            path, call = made[0]
            line = call.start.line
            given = call.argument("fused")
            if given is None and call.argument("foreach") is None and call.argument("differentiable") is None:
                change = case.add_keyword(path, call, "fused=True", f"Update all tensors in one kernel ({use.name})")
        yield Advice(
            code=AdviceCode.FUSED_OPTIMIZER,
            path=path,
            line=line,
            message=(
                f"{use.name} updates {count(use.parameters, 'tensor')} by {count(cost.self_operations, 'operation')} "
                f"that move at least {format_bytes(cost.self_bytes_moved)}: {format_ms(spent_ms)}, "
                f"{case.share(spent_ms)}. With `fused=True` one kernel moves {format_bytes(fused_bytes)}; by that, it "
                f"may save up to {case.share(saved_ms)}."
            ),
            change=change,
            worth_percent=case.percent(saved_ms),
        )


def _fused_bytes(use: OptimizerUse) -> int:
    """Parameters and state are read and written, gradients are read."""
    return use.steps * (3 * use.parameter_bytes + 2 * use.state_bytes)
