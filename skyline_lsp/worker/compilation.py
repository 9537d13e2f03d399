"""What torch.compile did to the program: which lines stand for a compiled region, where graphs break or compile anew.

Private parts of torch used here: the names of Dynamo's compiled functions, `torch._dynamo.utils.graph_break_reasons`
and `get_compilation_metrics`. Where they are gone, there is less to tell, and nothing fails.
"""

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from skyline_lsp.protocol import Remark, RemarkKind

REGION_LABEL = "compiled region: torch.compile fuses its lines, the time is that of all of them"


def is_compiled(code: CodeType) -> bool:
    """Whether `code` is what Dynamo left of a function: a call of compiled functions."""
    return any(name.startswith("__compiled_fn") for name in code.co_names)


def in_use() -> bool:
    """Whether anything was compiled in this process."""
    return bool(_metrics())


def remarks(is_project: Callable[[str], bool], relative: Callable[[str], str]) -> tuple[Remark, ...]:
    """Graph breaks and recompilations at project lines, each once."""
    found: dict[Remark, None] = {}
    for reason in _graph_breaks():
        places = [frame for frame in reason.user_stack if is_project(frame.filename)]
        if places:
            found[
                Remark(
                    kind=RemarkKind.GRAPH_BREAK,
                    path=relative(places[-1].filename),
                    line=places[-1].lineno or 1,
                    message=f"torch.compile splits its graph here: {_first_sentence(reason.reason)}",
                )
            ] = None
    for metric in _metrics():
        reason = getattr(metric, "recompile_reason", None)
        if reason and metric.co_filename and is_project(metric.co_filename):
            found[
                Remark(
                    kind=RemarkKind.RECOMPILATION,
                    path=relative(metric.co_filename),
                    line=metric.co_firstlineno or 1,
                    message=f"torch.compile compiled `{metric.co_name}` again: {_first_sentence(str(reason))}",
                )
            ] = None
    return tuple(found)


def _utils() -> Any:
    # Looked up, not imported: a program that does not compile need not pay for Dynamo.
    return sys.modules.get("torch._dynamo.utils")


def _graph_breaks() -> list[Any]:
    return list(getattr(_utils(), "graph_break_reasons", ()))


def _metrics() -> list[Any]:
    get = getattr(_utils(), "get_compilation_metrics", None)
    return list(get()) if get is not None else []


def _first_sentence(text: str) -> str:
    return " ".join(text.strip().splitlines()[0].split()) if text.strip() else "no reason given"
