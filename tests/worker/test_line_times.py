"""Time by line against operations that sleep a known time."""

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.worker.programs import Silent, by_line, expectations, profile_program

HEAD = """\
import torch
from torch.utils.checkpoint import checkpoint
from tests.worker.naps import nap
x = torch.randn(4, 16)
w = torch.nn.Parameter(torch.randn(16, 16) / 4)
"""


def near(truth_ms: float) -> object:
    """Equal to what is within 10 % + 1 ms of `truth_ms`."""
    return pytest.approx(truth_ms, rel=0, abs=0.1 * truth_ms + 1)


def check_times(folder: Path, program: str) -> None:
    """Each line's own forward and backward time is what its comment says, within 10 % + 1 ms; the sum is whole.

    A busy machine lengthens a nap now and then: what is asked for must be seen in one of six tries.
    """
    program = HEAD + textwrap.dedent(program)
    for remaining in range(5, -1, -1):
        profile = profile_program(folder, program)
        tracked = sum(line.self_forward_ms + line.self_backward_ms for line in profile.lines)
        assert tracked + profile.untracked_ms == pytest.approx(profile.iteration.run_time_ms)
        forward = by_line(profile, lambda line: line.self_forward_ms)
        backward = by_line(profile, lambda line: line.self_backward_ms)
        wrong = [
            f"{name} of line {line} is {measured.get(line, 0.0):.2f} ms, not {truth}"
            for name, measured in (("fwd", forward), ("bwd", backward))
            for line, truth in expectations(program, name).items()
            if measured.get(line, 0.0) != near(truth)
        ]
        assert remaining or not wrong, "; ".join(wrong)
        if not wrong:
            return


def test_lines_at_several_depths(tmp_path: Path) -> None:
    """Time goes to the line that called the library, however deep in the project it stands."""
    check_times(
        tmp_path,
        """
        def leaf(x):
            return nap(x, 4, 9)  # fwd 4 bwd 9

        def middle(x):
            x = leaf(x)  # fwd 0 bwd 0
            return nap(x, 7, 3)  # fwd 7 bwd 3

        def iteration():
            y = middle(x @ w)  # fwd 0 bwd 0
            y = nap(y, 2, 12)  # fwd 2 bwd 12
            y.sum().backward()  # fwd 0 bwd 0
        """,
    )


def test_one_line_called_from_several(tmp_path: Path) -> None:
    """A line called twice has both costs."""
    check_times(
        tmp_path,
        """
        def leaf(x, forward_ms, backward_ms):
            return nap(x, forward_ms, backward_ms)  # fwd 9 bwd 14

        def iteration():
            y = leaf(x @ w, 5, 2)
            y = leaf(y, 4, 12)
            y.sum().backward()
        """,
    )


def test_two_backward_passes(tmp_path: Path) -> None:
    """Every backward pass of the iteration counts, also one started by torch.autograd.backward."""
    check_times(
        tmp_path,
        """
        def iteration():
            first = nap(x @ w, 3, 8)  # fwd 3 bwd 8
            first.sum().backward()
            second = nap(x @ w, 2, 5)  # fwd 2 bwd 5
            torch.autograd.backward(second.sum())
        """,
    )


def test_retained_graph(tmp_path: Path) -> None:
    """A graph that is run twice costs its lines twice."""
    check_times(
        tmp_path,
        """
        def iteration():
            y = nap(x @ w, 2, 6)  # fwd 2 bwd 12
            loss = y.sum()
            loss.backward(retain_graph=True)
            loss.backward()
        """,
    )


def test_gradient_by_name_imported_early(tmp_path: Path) -> None:
    """`from torch.autograd import grad`, bound before any measuring, is seen as well."""
    check_times(
        tmp_path,
        """
        from torch.autograd import grad

        def iteration():
            y = nap(x @ w, 2, 7)  # fwd 2 bwd 7
            (g,) = grad(y.sum(), w)
        """,
    )


def test_double_backward(tmp_path: Path) -> None:
    """A gradient penalty: nodes made by the first backward pass belong to the lines whose backward made them."""
    check_times(
        tmp_path,
        """
        def iteration():
            z = x.clone().requires_grad_()
            y = nap(z @ w, 3, 4).tanh()  # fwd 3
            (g,) = torch.autograd.grad(y.sum(), z, create_graph=True)
            penalty = nap(g, 2, 6).pow(2).sum()  # fwd 2 bwd 6
            penalty.backward()
        """,
    )


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(tmp_path: Path, reentrant: bool) -> None:
    """Under activation checkpointing the recomputed forward is backward time of the line that ran again."""
    program = f"""
        def block(x):
            x = nap(x, 5, 2)  # fwd 5 bwd 7
            return nap(x, 1, 9).relu()  # fwd 1 bwd 10

        def iteration():
            y = checkpoint(block, x @ w, use_reentrant={reentrant})
            y.sum().backward()
        """
    check_times(tmp_path, program)
    profile = profile_program(tmp_path, HEAD + textwrap.dedent(program))
    recomputed = sum(node.recompute_ms for node in profile.tree)
    assert recomputed == near(6)


def test_custom_function_in_the_project(tmp_path: Path) -> None:
    """The backward of a project's own Function is charged to its lines, and to the applying line inclusively."""
    program = """
        import time

        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                time.sleep(.004)  # fwd 4
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                time.sleep(.009)  # bwd 9
                return g

        def iteration():
            y = Own.apply(x @ w)  # fwd 0 bwd 0
            y.sum().backward()
        """
    check_times(tmp_path, program)
    profile = profile_program(tmp_path, HEAD + textwrap.dedent(program))
    (line,) = [
        line for line in profile.lines if "Own.apply" in (tmp_path / "step.py").read_text().splitlines()[line.line - 1]
    ]
    assert line.forward_ms == pytest.approx(4, rel=0.1, abs=1)
    assert line.backward_ms == pytest.approx(9, rel=0.1, abs=1)


def test_generators_and_exceptions(tmp_path: Path) -> None:
    """Lines of generators, and of functions that are left by an exception, keep the books balanced."""
    check_times(
        tmp_path,
        """
        def batches():
            for _ in range(2):
                yield nap(x @ w, 3, 2)  # fwd 6 bwd 4

        def fails(y):
            y = nap(y, 2, 0)  # fwd 4
            raise ValueError

        def iteration():
            for y in batches():
                try:
                    fails(y)
                except ValueError:
                    nap(y, 1, 0)  # fwd 2
                y.sum().backward()
        """,
    )


def test_partial_results(tmp_path: Path) -> None:
    """The iteration time is told before the lines, and the lines before the memory."""
    reporter = Silent()
    profile_program(tmp_path, HEAD + "def iteration():\n    nap(x @ w, 1, 1).sum().backward()\n", reporter=reporter)
    first, second = reporter.partials
    assert first.iteration.run_time_ms > 0
    assert not first.lines
    assert second.lines
    assert not second.iteration.peak_bytes


def test_invocations(tmp_path: Path) -> None:
    """A line tells how often it ran; a recomputation does not count."""
    program = HEAD + textwrap.dedent(
        """
        def block(x):
            return (x @ w).relu()  # runs 3

        def iteration():
            y = x
            for _ in range(3):
                y = checkpoint(block, y, use_reentrant=False)  # runs 3
            y.sum().backward()  # runs 1
        """
    )
    profile = profile_program(tmp_path, program)
    measured = by_line(profile, lambda line: line.invocations)
    for line, truth in expectations(program, "runs").items():
        assert measured[line] == truth
