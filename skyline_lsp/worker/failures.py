"""From what went wrong in the user's program to `protocol.Failure`: the kind, the user's lines, the way out."""

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from types import CodeType, TracebackType

import torch

from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.worker.project import Project

OUT_OF_MEMORY_ERRORS: tuple[type[BaseException], ...] = (
    MemoryError,
    # torch 2.4 has the class under `torch.cuda` only.
    getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError),
)

_CPU_ALLOCATOR = "DefaultCPUAllocator: "
"""The allocator of the CPU raises a bare RuntimeError (up to torch 2.13 at least): only its own name tells."""

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MESSAGE_CHARACTERS = 1000
_WORKER_FRAME = re.compile(r'^ *File "(?P<path>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)


class Refused(Exception):
    """The run can't go on; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ProfilerFault(Exception):
    """The profiler failed with `error`; told apart from what the program raises."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def failure_of(error: BaseException, project: Project, instead: Frame | None = None) -> Failure:
    """The failure that an exception is. `instead` is where it belongs when it passed through no project line."""
    if isinstance(error, Refused):
        return error.failure
    frames = frames_of(error.__traceback__, project)
    kind = FailureKind.EXCEPTION
    message = _summary(error)
    if isinstance(error, SyntaxError) and error.filename is not None and project.is_project(error.filename):
        kind = FailureKind.SYNTAX_ERROR
        frames = (*frames, Frame(path=error.filename, line=error.lineno or 1, function="<module>"))
    elif is_out_of_memory(error):
        kind = FailureKind.OUT_OF_MEMORY
        message = f"Out of memory. A smaller batch needs less. {message}"
    elif isinstance(error, SystemExit):
        kind = FailureKind.EXITED
        message = _exit_message(error)
    elif isinstance(error, ModuleNotFoundError):
        message += _missing_module_advice(error, project)
    elif worker_frames := _data_loader_frames(error, project):
        frames = (*frames, *worker_frames)
        message = _text(error).strip().splitlines()[-1]
    return Failure(
        kind=kind,
        message=message if len(message) <= _MESSAGE_CHARACTERS else message[:_MESSAGE_CHARACTERS] + "...",
        frames=frames or ((instead,) if instead is not None else ()),
        traceback=format_traceback(error),
    )


def internal_failure(error: BaseException, project: Project) -> Failure:
    """A fault of the profiler itself; an out-of-memory error is the program's even there."""
    if is_out_of_memory(error):
        return failure_of(error, project)
    return Failure(
        kind=FailureKind.INTERNAL,
        message=f"The profiler failed: {_summary(error)} Please report it, with the traceback.",
        frames=frames_of(error.__traceback__, project),
        traceback="".join(traceback.format_exception(error)),
    )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether the error, or the one it was raised from, says that no memory was left."""
    while error is not None:
        if isinstance(error, OUT_OF_MEMORY_ERRORS):
            return True
        if type(error) is RuntimeError and _CPU_ALLOCATOR in _text(error):
            return True
        error = error.__cause__
    return False


def frames_of(trace: TracebackType | None, project: Project) -> tuple[Frame, ...]:
    """The project lines that a traceback passes through, outermost first."""
    return tuple(
        Frame(path=os.path.abspath(code.co_filename), line=line, function=function_name(code))
        for code, line in _walk(trace)
        if project.is_project(code.co_filename)
    )


def function_name(code: CodeType) -> str:
    """The function's qualified name; before Python 3.11 code objects know the plain one only."""
    return str(getattr(code, "co_qualname", code.co_name))


def format_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, without the frames of this package and of the import machinery."""
    whole = traceback.TracebackException.from_exception(error)
    pending: list[traceback.TracebackException | None] = [whole]
    while pending:
        part = pending.pop()
        if part is not None:
            part.stack = traceback.StackSummary.from_list(frame for frame in part.stack if not _hidden(frame.filename))
            pending += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]
    return "".join(whole.format())


def _walk(trace: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next


def _hidden(filename: str) -> bool:
    return filename.startswith((_OWN_FOLDER, "<frozen importlib", "<frozen runpy"))


def _summary(error: BaseException) -> str:
    lines: Iterable[str] = traceback.format_exception_only(type(error), error)
    if isinstance(error, SyntaxError):
        # The lines before show the source, which the editor does anyway.
        lines = list(lines)[-1:]
    return "".join(lines).strip()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a class of the user's may fail at that too
        return ""


def _exit_message(error: SystemExit) -> str:
    code = error.code
    if code is None or isinstance(code, int):
        what = f"with code {code or 0}"
    else:
        what = f"with the message: {str(code).strip()}"
    return f"The program exited {what} before enough iterations were seen."


def _missing_module_advice(error: ModuleNotFoundError, project: Project) -> str:
    top = (error.name or "").partition(".")[0]
    if not top or top in sys.modules or top in sys.stdlib_module_names:
        return ""
    own = os.path.join(project.root, top)
    if os.path.isdir(own) or os.path.isfile(own + ".py"):
        return f". `{top}` is in the project's root: run from there as a module, or add the root to PYTHONPATH."
    return (
        f". Install it for {sys.executable} (`{sys.executable} -m pip install ...`), or choose the project's own "
        "interpreter with the setting `python`."
    )


def _data_loader_frames(error: BaseException, project: Project) -> tuple[Frame, ...]:
    """Project lines inside a data loader's worker process: torch hands over that traceback as the message's text."""
    text = _text(error)
    if not text.startswith("Caught ") or "Original Traceback" not in text:
        return ()
    return tuple(
        Frame(path=match["path"], line=int(match["line"]), function=match["function"])
        for match in _WORKER_FRAME.finditer(text)
        if project.is_project(match["path"])
    )
