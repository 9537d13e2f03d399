"""Memory by line and by class against tensors of known size."""

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from skyline_lsp.protocol import Goal, Measure
from tests.worker.programs import by_line, expectations, measure_program, profile_program

KIB = 1024
HEAD = """\
import torch
from torch.utils.checkpoint import checkpoint
x = torch.randn(256)  # 1 KiB
w = torch.nn.Parameter(torch.randn(256))
"""


def check_saved(folder: Path, program: str) -> None:
    """Each line's own saved bytes are what its comment says, exactly."""
    program = HEAD + textwrap.dedent(program)
    profile = profile_program(folder, program)
    measured = by_line(profile, lambda line: line.self_activation_bytes)
    expected = {line: kib * KIB for line, kib in expectations(program, "saved").items()}
    assert {line: measured.get(line, 0) for line in expected} == expected


def test_each_storage_once(tmp_path: Path) -> None:
    """What two lines save is the first one's; parameters and inputs are no activations."""
    check_saved(
        tmp_path,
        """
        def iteration():
            a = x * w  # saved 0
            b = a.exp()  # saved 1
            c = b * a  # saved 1
            d = c.view(16, 16).t()  # saved 0
            e = d * 2  # saved 0
            f = e.sigmoid()  # saved 1
            f.sum().backward()
        """,
    )


def test_what_is_not_needed_is_not_saved(tmp_path: Path) -> None:
    """Without gradients nothing is saved."""
    check_saved(
        tmp_path,
        """
        def iteration():
            with torch.no_grad():
                a = (x * w).exp()  # saved 0
            b = x.exp()  # saved 0
            (x * w).sum().backward()
        """,
    )


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_saves_its_input_only(tmp_path: Path, reentrant: bool) -> None:
    """Inside a checkpoint nothing is saved, and what the recomputation saves is not counted again."""
    check_saved(
        tmp_path,
        f"""
        def block(x):
            x = x.exp()  # saved 0
            return x.sin()  # saved 0

        def iteration():
            y = x * w
            y = checkpoint(block, y, use_reentrant={reentrant})  # saved 1
            y.sum().backward()
        """,
    )


def test_composition_sums_to_the_peak(tmp_path: Path) -> None:
    """The classes add up to the peak, and each holds what is known to be alive then."""
    program = HEAD + textwrap.dedent(
        """
        big = torch.nn.Parameter(torch.randn(256, 256))
        optimizer = torch.optim.Adam([w, big])

        def iteration():
            optimizer.zero_grad()
            y = (x * w) @ big
            y.exp().sum().backward()
            optimizer.step()
        """
    )
    profile = profile_program(tmp_path, program)
    memory = profile.memory
    total = (
        memory.weights_bytes
        + memory.gradients_bytes
        + memory.optimizer_bytes
        + memory.activations_bytes
        + memory.other_bytes
    )
    assert total == profile.iteration.peak_bytes
    # Two moments of each parameter and a step count of four bytes each.
    assert memory.optimizer_bytes == 2 * (256 * 256 + 256) * 4 + 2 * 4
    assert sum(node.peak_bytes for node in profile.tree) <= profile.iteration.peak_bytes


def test_functional_gradients_go_on_without_hooks(tmp_path: Path) -> None:
    """torch.func.grad forbids hooks on saved tensors: the program runs on, and the profile says what is missing."""
    program = HEAD + textwrap.dedent(
        """
        def iteration():
            g = torch.func.grad(lambda v: v.exp().sum())(x)
            y = torch.func.vmap(lambda v: v.exp())((x * w).view(16, 16))  # saved 1
            z = y.exp()  # saved 1
            z.sum().backward()
        """
    )
    check_saved(tmp_path, program.removeprefix(HEAD))
    profile = profile_program(tmp_path, program)
    assert any("torch.func" in warning for warning in profile.warnings)


def test_timeline_reaches_the_peak(tmp_path: Path) -> None:
    """The time line's highest point is the peak."""
    program = HEAD + "def iteration():\n    ((x * w).exp() * w).sum().backward()\n"
    profile = profile_program(tmp_path, program)
    assert max(event.live_bytes for event in profile.timeline) == profile.iteration.peak_bytes


def test_a_loader_is_one_operation(tmp_path: Path) -> None:
    """The number of recorded operations does not depend on how many samples a loader puts into a batch."""

    def operations(batch_size: int) -> int:
        program = HEAD + textwrap.dedent(
            f"""
            from torch.utils.data import DataLoader, TensorDataset
            loader = DataLoader(TensorDataset(torch.randn(64, 256)), batch_size={batch_size})
            batches = iter([])

            def iteration():
                global batches
                batch = next(batches, None)
                if batch is None:
                    batches = iter(loader)
                    batch = next(batches)
                (batch[0] * w).sum().backward()
            """
        )
        measure = Measure(warm_up=1, min_iterations=1, max_iterations=1, record_live_bytes=True)
        _, sample, _ = measure_program(tmp_path, program, Goal.SAMPLE, measure).result()
        assert sample
        return len(sample.live_bytes)

    assert operations(2) == operations(16) > 0
