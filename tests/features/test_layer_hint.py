"""What is told of a layer's argument."""

from typing import Any

import pytest

from skyline_lsp.features import State, hover
from skyline_lsp.protocol import Product, Profile
from tests.features.building import PEAKS, profile_of, snapshot_of

NET = """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(16, 64, 3)
        self.linear = nn.Linear(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.twice = nn.Linear(4, 4)
        self.later = nn.Linear(4, 4)

    def forward(self, x):
        x = self.conv(x)
        x = self.linear(x)
        x = self.pool(x)
        return self.later(self.twice(x))
"""
TREE = """
net.py:13 Net.forward 10 10 flop=10000000000 operations=2
net.py:14 Net.forward 5 5 flop=3000000000 moved=10MiB operations=3
net.py:15 Net.forward 2 2 moved=20MiB operations=2
net.py:16 Net.forward 2 2 flop=1000 operations=2
"""


def product(node: int, operation: str, *shapes: tuple[int, ...], result: tuple[int, ...], flop: int) -> Product:
    return Product(
        node=node,
        operation=operation,
        shapes=shapes,
        result=result,
        dtype="float32",
        channels_last=False,
        count=1,
        flop=flop,
    )


def measured(**changes: Any) -> Profile:
    products = (
        product(0, "convolution", (8, 16, 34, 34), (64, 16, 3, 3), (64,), result=(8, 64, 32, 32), flop=10**10),
        product(1, "addmm", (96,), (100, 48), (48, 96), result=(100, 96), flop=10**9),
        product(1, "mm", (100, 96), (96, 48), result=(100, 48), flop=10**9),
        product(1, "mm", (96, 100), (100, 48), result=(96, 48), flop=10**9),
        product(3, "addmm", (4,), (100, 4), (4, 4), result=(100, 4), flop=1000),
    )
    return profile_of(TREE, **({"peaks": PEAKS, "products": products} | changes))


def told(word: str, line: int, text: str = NET, **given: Any) -> str:
    """The plain hover at a word of a line, without its columns; empty where there is none."""
    given.setdefault("profile", measured())
    shot = snapshot_of(text, path="/project/net.py", state=State.READY, entry=None, sites=(), **given)
    shown = hover(shot, line, text.splitlines()[line - 1].index(word))
    return "" if shown is None else "\n".join(" ".join(row.split()) for row in shown.plain.splitlines())


def test_a_number_up_and_down() -> None:
    """A step of a layer's argument tells what FLOP, bytes and the iteration do, of the line that runs the layer."""
    shown = told("64", 6)
    assert shown.startswith("out_channels of this Conv2d")
    # The line is compute-bound and 20 % of the iteration.
    assert "72 +12 %" in shown
    assert "about +2.5 %" in shown
    assert "56 -12 %" in shown
    assert "Of line 13, which runs it." in shown


def test_an_expression_by_the_sizes_that_ran() -> None:
    """Where the source has no number, the product's shape has it."""
    shown = told("2 * width", 7)
    assert "out_features of this Linear" in shown
    assert "112 +17 %" in shown
    assert "about +1.7 %" in shown


def test_bytes_of_a_line_without_flop() -> None:
    """A layer that computes nothing that counts is told by the bytes it moves."""
    shown = told("2)", 8)
    assert "kernel_size of this MaxPool2d" in shown
    assert "3 -19 % about -0.74 %" in shown
    assert "bytes" in shown


def test_several_sizes_are_scaled_together() -> None:
    """A line that runs the layer in several sizes tells what a tenth more or less of each does."""
    products = measured().products
    other = product(
        0, "convolution", (8, 32, 34, 34), (128, 32, 3, 3), (128,), result=(8, 128, 32, 32), flop=4 * 10**10
    )
    shown = told("64", 6, profile=measured(products=(*products, other)))
    assert "+10 % " in shown
    assert "-10 % " in shown


def test_two_layers_on_one_line_are_not_told_apart() -> None:
    """Where a line runs two such layers, nothing is claimed of either."""
    assert told("4,", 9) == ""


def test_only_the_argument_itself() -> None:
    """Beside an argument there is no such hover."""
    assert told("self", 6) == ""


@pytest.mark.parametrize(
    ("line_of", "expected"), [({n: n for n in range(1, 20) if n != 6}, False), ({n: n for n in range(1, 20)}, True)]
)
def test_a_layer_that_was_edited_since(line_of: dict[int, int], expected: bool) -> None:
    """What was measured of another layer says nothing of this one."""
    assert bool(told("64", 6, line_of=line_of)) == expected


def test_children_of_a_sequential() -> None:
    """A Sequential's child has its cost at its own line, so the hint needs no other line."""
    text = "from torch import nn\nnet = nn.Sequential(\n    nn.Conv2d(16, 64, 3),\n)\n"
    profile = profile_of(
        "net.py:3 <module> 10 10 flop=10000000000 operations=2", peaks=PEAKS, products=measured().products[:1]
    )
    shown = told("64", 3, text, profile=profile)
    assert "72 +12 %" in shown
    assert "which runs it" not in shown


def test_a_bound_that_is_not_known_is_said() -> None:
    """Without peaks the iteration's change is a guess by FLOP, and is called so."""
    shown = told("64", 6, profile=measured(peaks=None))
    assert "about +2.5 %" in shown
    assert "What bounds the line is not known; its time is taken to move with its FLOP." in shown
