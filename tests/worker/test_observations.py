"""What is seen of a program beside its costs: products, loaders, optimizers, stray gradients, values that are read."""

import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp import protocol
from skyline_lsp.worker.device import Cpu
from skyline_lsp.worker.layout import try_layouts
from skyline_lsp.worker.work import WorkCounter
from tests.worker.programs import profile_program


class Nowhere:
    """A place to charge."""

    node = 1
    loading_data = recomputing = False


def observe(folder: Path, program: str) -> tuple[protocol.Profile, dict[str, int]]:
    """The profile of a program, and the lines of its marks: `# name` at the end of a line."""
    text = textwrap.dedent(program)
    marks = {
        line.rpartition("# ")[2].strip(): number for number, line in enumerate(text.splitlines(), 1) if "# " in line
    }
    return profile_program(folder, text), marks


def test_a_value_read_in_the_loop(tmp_path: Path) -> None:
    """`.item()`, a printed tensor and a condition on one are each found at their line, and nowhere else."""
    profile, at = observe(
        tmp_path,
        """
        import torch

        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.Adam(net.parameters())

        def iteration():
            loss = net(torch.ones(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()  # item
            if loss > 1e9:  # condition
                raise ValueError
            text = f"{loss}"  # text
        """,
    )
    reads = {node.line: node.self_host_reads for node in profile.tree if node.self_host_reads}
    assert reads.keys() == {at["item"], at["condition"], at["text"]}
    assert reads[at["item"]] == reads[at["condition"]] == 1


def test_values_that_an_optimizer_or_a_scaler_needs(tmp_path: Path) -> None:
    """What torch's own optimizers and gradient scaler read is no fault of the program's."""
    profile, _ = observe(
        tmp_path,
        """
        import torch

        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.NAdam(net.parameters())
        scaler = torch.amp.GradScaler("cpu")

        def iteration():
            loss = net(torch.ones(4, 8)).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )
    assert not [node.line for node in profile.tree if node.self_host_reads]


def test_products_have_their_shapes(tmp_path: Path) -> None:
    """Each product is told at its line, with its shapes, its data type, how often it ran and its FLOP."""
    profile, at = observe(
        tmp_path,
        """
        import torch

        net = torch.nn.Linear(24, 40, bias=False)

        def iteration():
            for _ in range(2):
                y = net(torch.ones(4, 24))  # product
            y.sum().backward()
        """,
    )
    of_line = [product for product in profile.products if profile.tree[product.node].line == at["product"]]
    (forward,) = [product for product in of_line if product.result == (4, 40)]
    assert (forward.shapes, forward.dtype, forward.count) == (((4, 24), (24, 40)), "float32", 2)
    assert forward.flop == 2 * (2 * 4 * 24 * 40)
    assert sum(product.flop for product in of_line) == sum(line.self_flop for line in profile.lines)


def test_an_embedding_reads_the_rows_it_gives() -> None:
    """Looking up a few rows of a large table moves these rows, not the table."""

    table, rows = torch.zeros(1000, 16), torch.arange(4)
    counter = WorkCounter(Nowhere())
    with counter:
        torch.nn.functional.embedding(rows, table)
    assert counter.by_node[1].bytes_moved == 2 * (4 * 16 * 4) + 4 * 8


def test_copies_from_memory_that_is_not_pinned() -> None:
    """What goes from ordinary memory to another device is counted in bytes; what stays is not."""
    counter = WorkCounter(Nowhere(), "meta")
    with counter:
        torch.ones(8).to("meta")
        torch.empty(4, device="meta").copy_(torch.ones(4))
        torch.ones(16).to(torch.float64)
    assert counter.by_node[1].pageable_bytes == 8 * 4 + 4 * 4


def test_a_loader_and_its_workers(tmp_path: Path) -> None:
    """The line that takes batches is told with the loader's workers and memory, and with how long it waited."""
    profile, at = observe(
        tmp_path,
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        net = torch.nn.Linear(8, 8)
        loader = DataLoader(TensorDataset(torch.ones(8, 8)), batch_size=4)

        def iteration():
            for (x,) in loader:  # batches
                net(x).sum().backward()
        """,
    )
    (use,) = profile.loaders
    assert (use.path, use.line, use.workers, use.pinned) == ("step.py", at["batches"], 0, False)
    assert use.run_time_ms > 0
    assert use.processors >= 1


def test_optimizers_and_whether_they_can_be_fused(tmp_path: Path) -> None:
    """Each optimizer that steps is told with what it updates; one that is idle is not."""
    profile, at = observe(
        tmp_path,
        """
        import torch

        class Mine(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {})

            def step(self):
                pass

        net = torch.nn.Linear(8, 4)
        adam = torch.optim.AdamW(net.parameters())
        fused = torch.optim.SGD(net.parameters(), fused=True)
        mine = Mine(net.parameters())
        idle = torch.optim.SGD(net.parameters())

        def iteration():
            net(torch.ones(2, 8)).sum().backward()
            adam.step()  # adam
            fused.step()  # fused
            mine.step()  # mine
        """,
    )
    found = {use.line: use for use in profile.optimizers}
    assert found.keys() == {at["adam"], at["fused"], at["mine"]}
    adam = found[at["adam"]]
    assert (adam.name, adam.parameters, adam.parameter_bytes, adam.state_bytes) == ("AdamW", 2, 4 * 36, 2 * 4 * 36)
    assert (adam.fused, adam.can_fuse, adam.steps) == (False, True, 1)
    assert (found[at["fused"]].fused, found[at["mine"]].can_fuse) == (True, False)
    assert found[at["mine"]].name == "step.Mine"


def test_gradients_of_tensors_that_are_no_parameters(tmp_path: Path) -> None:
    """An input that is given a gradient is told at the line that used it; what an optimizer owns, and what
    `autograd.grad` asks for, is not."""
    profile, at = observe(
        tmp_path,
        """
        import torch

        net = torch.nn.Linear(8, 4)
        image = torch.zeros(2, 8, requires_grad=True)
        optimizer = torch.optim.SGD([image])

        def iteration():
            x = torch.ones(2, 8, requires_grad=True)
            y = net(x)  # used
            y.sum().backward()
            net(image).sum().backward()
            z = torch.ones(2, 8, requires_grad=True)
            torch.autograd.grad(net(z).sum(), z)
            optimizer.step()
        """,
    )
    (leaf,) = profile.leaf_gradients
    assert (leaf.path, leaf.line, leaf.shape, leaf.gradient_bytes) == ("step.py", at["used"], (2, 8), 64)


def test_a_convolution_is_tried_in_both_layouts() -> None:
    """A convolution with the channels first is run in both layouts; one with the channels last already is not."""

    def trials(layout: "torch.memory_format") -> list[tuple[int, ...]]:
        counter = WorkCounter(Nowhere())
        image = torch.ones(2, 4, 9, 9).contiguous(memory_format=layout)
        with counter:
            torch.nn.functional.conv2d(image, torch.ones(6, 2, 3, 3), stride=2, padding=1, groups=2)
        return [trial.input_shape for trial in try_layouts(Cpu(), counter.by_node.values()) if trial.rounds >= 5]

    assert trials(torch.contiguous_format) == [(2, 4, 9, 9)]
    assert trials(torch.channels_last) == []


@pytest.mark.parametrize(("mode", "frozen"), [("train", 0), ("eval", 1)])
def test_a_norm_with_fixed_statistics(tmp_path: Path, mode: str, frozen: int) -> None:
    """A batch normalisation that does not take the batch's own mean is counted."""
    profile, _ = observe(
        tmp_path,
        f"""
        import torch

        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).{mode}()

        def iteration():
            net(torch.ones(2, 3, 8, 8)).sum().backward()
        """,
    )
    assert profile.frozen_norms == frozen
