"""Why a run failed, where the user is, and the summary of a profile."""

from typing import Any

from skyline_lsp.features import Diagnostic, Options, Preview, Severity, State, diagnostics
from skyline_lsp.protocol import Failure, FailureKind, Frame, Remark, RemarkKind
from tests.features.building import PROVIDERS, prediction_of, profile_of, snapshot_of

FAILURE = Failure(
    kind=FailureKind.EXCEPTION,
    message="ValueError: the sizes differ",
    frames=(
        Frame(path="/project/train.py", line=9, function="skyline_iteration_provider"),
        Frame(path="/project/lib/net.py", line=40, function="Net.forward"),
    ),
)


def failed(failure: Failure = FAILURE, text: str = PROVIDERS, **given: Any) -> tuple[Diagnostic, ...]:
    return diagnostics(snapshot_of(text, state=State.FAILED, failure=failure, **given))


def test_failure_is_at_the_line_that_failed() -> None:
    """The error stands at the innermost line of the project, and says by its code what kind it is."""
    error = failed()[0]
    assert (error.path, error.line, error.severity) == ("/project/lib/net.py", 40, Severity.ERROR)
    assert error.code == "exception"
    assert error.message == "ValueError: the sizes differ"
    assert [(related.path, related.line) for related in error.related] == [("/project/train.py", 9)]


def test_failure_elsewhere_is_pointed_to_from_the_profiled_file() -> None:
    """Who looks at the profiled file learns there why it has no numbers, and where to look."""
    pointer = failed()[1]
    assert (pointer.path, pointer.line, pointer.severity) == ("/project/train.py", 9, Severity.INFORMATION)
    assert "lib/net.py:40" in pointer.message
    assert pointer.related[0].path == "/project/lib/net.py"


def test_failure_in_the_profiled_file_is_said_once() -> None:
    """One failure in the open file is one diagnostic, over the text of its line."""
    failure = Failure(
        kind=FailureKind.BAD_PROVIDER,
        message="`batch_size` has no default",
        frames=(Frame(path="/project/train.py", line=4, function="skyline_model_provider"),),
    )
    (error,) = failed(failure)
    assert (error.line, error.column, error.end_column) == (4, 4, 16)


def test_failure_without_a_line_is_at_the_entry() -> None:
    """A failure that no line of the project caused stands where the profile would."""
    (error,) = failed(Failure(kind=FailureKind.CRASHED, message="the process died: SIGABRT"))
    assert (error.path, error.line) == ("/project/train.py", 9)


def test_failure_follows_its_line() -> None:
    """The error moves with its line, and stays near where it was while that line is edited."""
    failure = Failure(
        kind=FailureKind.EXCEPTION,
        message="no",
        frames=(Frame(path="/project/train.py", line=3, function="f"),),
    )
    (moved,) = failed(failure, failure_line_of={1: 1, 2: 4, 3: 5})
    (edited,) = failed(failure, failure_line_of={1: 1, 2: 4})
    assert moved.line == 5
    assert edited.line == 5


def test_failure_beyond_the_file_is_inside_it() -> None:
    """A line that is gone can't take its message out of the file."""
    failure = Failure(
        kind=FailureKind.EXCEPTION, message="no", frames=(Frame(path="/project/train.py", line=999, function="f"),)
    )
    (error,) = failed(failure)
    assert error.line == len(PROVIDERS.splitlines()) + 1


def test_failure_goes_with_its_state() -> None:
    """Once another run is under way, the old failure is no news."""
    assert diagnostics(snapshot_of(PROVIDERS, state=State.RUNNING, failure=FAILURE)) == ()


def test_missing_provider_is_said_before_a_run() -> None:
    """A provider file that lacks a function is told which, before anything is run."""
    (warning,) = diagnostics(snapshot_of("def skyline_model_provider():\n    return Net()\n"))
    assert (warning.line, warning.severity, warning.code) == (1, Severity.WARNING, "missing_provider")
    assert "`skyline_input_provider(batch_size=32)` and `skyline_iteration_provider(model)`" in warning.message


def test_summary_is_at_the_entry() -> None:
    """A finished profile says its figures and its hottest lines in a diagnostic, which every editor shows."""
    profile = profile_of("train.py:9 step 1 2\n  lib/net.py:40 forward 30 42\n  lib/net.py:41 forward 0.1 0")
    (summary,) = diagnostics(snapshot_of(PROVIDERS, state=State.READY, profile=profile))
    assert (summary.path, summary.line, summary.severity) == ("/project/train.py", 9, Severity.INFORMATION)
    assert summary.message == (
        "100 ms/iteration (+-2), 160 samples/s, peak 1 GiB of 8 GiB (12 %); "
        "hottest lines: lib/net.py:40 72 %, train.py:9 3 %"
    )


def test_stale_is_no_diagnostic() -> None:
    """A changed source makes the summary a thing of the past; it is no message of its own."""
    (summary,) = diagnostics(snapshot_of(PROVIDERS, state=State.STALE, profile=profile_of("train.py:9 step 1 2")))
    assert summary.code == "profile"
    assert summary.message.startswith("Before the last changes: 100 ms/iteration")


def test_preview_is_said_to_be_one() -> None:
    """A predicted summary can't be taken for a measured one."""
    (summary,) = diagnostics(
        snapshot_of(
            PROVIDERS,
            state=State.READY,
            profile=profile_of("train.py:9 step 0 0"),
            preview=Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=2**31)),
        )
    )
    assert summary.message == (
        "Predicted for batch size 32: 180 ms/iteration (162 to 198 ms), 178 samples/s, peak 2 GiB of 8 GiB (25 %)"
    )


def test_remarks_are_hints() -> None:
    """How far to trust the numbers is told without raising an alarm."""
    profile = profile_of("train.py:9 step 1 2", warnings=("The times vary by 40 %.",))
    found = diagnostics(
        snapshot_of(PROVIDERS, state=State.READY, profile=profile, options=Options(summary_diagnostic=False))
    )
    assert [(item.severity, item.message) for item in found] == [(Severity.HINT, "The times vary by 40 %.")]


def test_remarks_on_lines_are_at_their_lines() -> None:
    """What was seen at a line is said there, moves with it, and goes when the line is edited."""
    remarks = (
        Remark(kind=RemarkKind.GRAPH_BREAK, path="train.py", line=11, message="The graph breaks here."),
        Remark(kind=RemarkKind.RECOMPILATION, path="train.py", line=12, message="Compiled again."),
        Remark(kind=RemarkKind.GRAPH_BREAK, path="lib/net.py", line=3, message="And here."),
    )
    found = diagnostics(
        snapshot_of(
            PROVIDERS,
            state=State.STALE,
            profile=profile_of("train.py:11 step 1 2", remarks=remarks),
            line_of={11: 13},
            options=Options(summary_diagnostic=False),
        )
    )
    assert [(item.path, item.line, item.severity.value, item.code) for item in found] == [
        ("/project/train.py", 13, "information", "graph-break"),
        ("/project/lib/net.py", 3, "information", "graph-break"),
    ]


def test_nothing_to_say() -> None:
    """An idle file with nothing wrong has no diagnostic."""
    assert diagnostics(snapshot_of(PROVIDERS)) == ()
