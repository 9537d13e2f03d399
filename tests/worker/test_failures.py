"""From an exception to a failure: its kind, the user's lines, what to do."""

import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.worker.failures import failure_of, internal_failure
from skyline_lsp.worker.project import Project


def fail(folder: Path, source: str) -> Failure:
    """Run a program that raises, as the project's `train.py`."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return failure_of(error, Project(str(folder)))
    raise AssertionError("the program did not raise")


def lines(failure: Failure) -> list[int]:
    return [frame.line for frame in failure.frames]


def test_project_lines_only(tmp_path: Path) -> None:
    """Frames are the user's lines, outermost first; the traceback has the library's too."""
    failure = fail(
        tmp_path,
        """\
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.nn.functional.linear(x, torch.zeros(3, 3))
        Net()(torch.zeros(2, 2))
        """,
    )
    assert failure.kind is FailureKind.EXCEPTION
    assert lines(failure) == [5, 4]
    if sys.version_info >= (3, 11):
        assert failure.frames[-1].function == "Net.forward"
    assert "torch/nn/modules/module.py" in failure.traceback.replace("\\", "/")


def test_chained_exceptions(tmp_path: Path) -> None:
    """The place is that of the exception that reached the top; the traceback tells its cause."""
    failure = fail(
        tmp_path,
        """\
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("no key") from error
        """,
    )
    assert lines(failure) == [4]
    assert "KeyError" in failure.traceback


@pytest.mark.parametrize(
    "statement",
    [
        "import torch; torch.empty(1 << 48)",
        "bytearray(1 << 60)",
        "import torch; raise torch.cuda.OutOfMemoryError('CUDA out of memory.')",
        "import numpy; numpy.zeros(1 << 50)",
    ],
)
def test_out_of_memory(tmp_path: Path, statement: str) -> None:
    """Whoever runs out of memory, the failure is of that kind, also when it is the cause of another exception."""
    if "numpy" in statement:
        pytest.importorskip("numpy")
    assert fail(tmp_path, statement).kind is FailureKind.OUT_OF_MEMORY
    wrapped = (
        f"try:\n    {statement}\nexcept BaseException as error:\n    raise RuntimeError('step failed') from error\n"
    )
    assert fail(tmp_path, wrapped).kind is FailureKind.OUT_OF_MEMORY


def test_words_about_memory(tmp_path: Path) -> None:
    """An exception that only speaks of memory is not of that kind."""
    assert fail(tmp_path, "raise RuntimeError('CUDA out of memory')").kind is FailureKind.EXCEPTION


def test_missing_module(tmp_path: Path) -> None:
    """A module that is not installed: which, and where to install it."""
    failure = fail(tmp_path, "\nimport surely_no_such_package.part\n")
    assert "surely_no_such_package" in failure.message
    assert f"{sys.executable} -m pip install" in failure.message
    assert lines(failure) == [2]


def test_missing_module_of_the_project(tmp_path: Path) -> None:
    """A module of the project that the path does not reach is not to be installed."""
    (tmp_path / "surely_ours").mkdir()
    failure = fail(tmp_path, "import surely_ours.part\n")
    assert "pip install" not in failure.message
    assert "PYTHONPATH" in failure.message


def test_missing_name(tmp_path: Path) -> None:
    """A name that a module lacks, or a module below one that is there, is not a matter of installing."""
    assert "pip" not in fail(tmp_path, "from os import surely_no_such_name\n").message
    assert "pip" not in fail(tmp_path, "import os.surely_no_such_module\n").message


def test_syntax_error_elsewhere(tmp_path: Path) -> None:
    """A syntax error in text that is no project file belongs to the line that had it compiled."""
    failure = fail(tmp_path, "\neval('1 +')\n")
    assert failure.kind is FailureKind.EXCEPTION
    assert lines(failure) == [2]


def test_exit(tmp_path: Path) -> None:
    """An exit is told with its code or message."""
    assert "code 0" in fail(tmp_path, "import sys; sys.exit()").message
    failure = fail(tmp_path, "import sys; sys.exit('no data in data/')")
    assert failure.kind is FailureKind.EXITED
    assert "no data in data/" in failure.message


def test_without_project_lines(tmp_path: Path) -> None:
    """Without a line of the user's, the failure is where the caller says."""
    instead = Frame(path="train.py", line=1, function="<module>")
    assert failure_of(ValueError("x"), Project(str(tmp_path)), instead).frames == (instead,)


def test_long_message(tmp_path: Path) -> None:
    """A message that fills a screen is cut."""
    assert len(fail(tmp_path, "raise ValueError('x' * 100_000)").message) < 2000


def test_fault_of_the_profiler(tmp_path: Path) -> None:
    """A fault of the profiler is told apart, unless memory ran out."""
    project = Project(str(tmp_path))
    assert internal_failure(KeyError("node"), project).kind is FailureKind.INTERNAL
    assert internal_failure(MemoryError(), project).kind is FailureKind.OUT_OF_MEMORY
