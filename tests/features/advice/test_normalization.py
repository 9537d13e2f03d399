"""Advice on biases that a normalisation takes away again."""

from dataclasses import replace

import pytest

from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.protocol import (
    Product,
    Profile,
)
from tests.features.advice.cases import advice_of, convolving, followed, sole
from tests.features.building import profile_of

SEQUENTIAL = """\
from torch import nn
net = nn.Sequential(
    nn.Conv2d(3, 8, 3),
    nn.BatchNorm2d(8),
    nn.Conv2d(8, 8, 3),
    nn.ReLU(),
    nn.BatchNorm2d(8),
)
"""
ATTRIBUTES = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x))
"""


def test_a_bias_before_batch_norm_in_a_sequential() -> None:
    """A convolution right before a BatchNorm in the same Sequential needs no bias; one before something else does."""
    profile = convolving(3, 5)
    one = sole(profile, SEQUENTIAL)
    assert (one.code, one.line) == (AdviceCode.BIAS_BEFORE_NORM, 3)
    assert "8 values" in one.message
    assert "nn.Conv2d(3, 8, 3, bias=False),\n    nn.BatchNorm2d(8)" in followed(profile, SEQUENTIAL, 3)


def test_a_bias_before_batch_norm_in_a_class() -> None:
    """Attributes count where all that the convolution gives goes to the BatchNorm."""
    one = sole(convolving(10), ATTRIBUTES)
    assert one.line == 6
    assert not advice_of(convolving(10), ATTRIBUTES.replace("self.norm(self.conv(x))", "self.norm(self.conv(x) + 1)"))


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        (SEQUENTIAL.replace("3, 8, 3)", "3, 8, 3, bias=False)"), convolving(3)),
        (SEQUENTIAL.replace("3, 8, 3)", "3, 8, 3, bias=bias)"), convolving(3)),
        (SEQUENTIAL, convolving(3, bias=False)),
        (SEQUENTIAL, convolving(5)),
        (SEQUENTIAL.replace("BatchNorm2d", "GroupNorm"), convolving(3)),
        (SEQUENTIAL.replace("BatchNorm2d", "BatchNorm3d"), convolving(3)),
        (SEQUENTIAL, replace(convolving(3), frozen_norms=1)),
        (ATTRIBUTES + "\nclass Mine(Net):\n    pass\n", convolving(10)),
        (ATTRIBUTES + "\nNet().conv(1)\n", convolving(10)),
        (ATTRIBUTES.replace("self.conv = ", "self.conv = wrap or "), convolving(10)),
    ],
    ids=[
        "off",
        "an expression",
        "none ran",
        "did not run",
        "other norm",
        "other dimensions",
        "frozen",
        "derived",
        "used",
        "maybe",
    ],
)
def test_a_bias_that_may_matter(text: str, profile: Profile) -> None:
    """Whatever can't be proven from the source and the run is left alone."""
    assert not advice_of(profile, text, AdviceCode.BIAS_BEFORE_NORM)


def test_a_bias_that_the_program_reads_is_not_removed_for_it() -> None:
    """Where a bias of something is read, such as to initialise it, there is advice without a fix."""
    text = SEQUENTIAL + "nn.init.zeros_(net[0].bias)\n"
    assert sole(convolving(3), text).change is None


def test_a_linear_layer_before_batch_norm() -> None:
    """A linear layer counts where its input had no dimensions but batch and features."""
    text = "from torch import nn\nnet = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))\n"
    product = Product(
        node=0,
        operation="addmm",
        shapes=((8,), (16, 4), (4, 8)),
        result=(16, 8),
        dtype="float32",
        channels_last=False,
        count=1,
        flop=1,
    )
    profile = profile_of("train.py:2 f 1 1", products=(product,))
    assert sole(profile, text).code is AdviceCode.BIAS_BEFORE_NORM
    flattened = replace(product, shapes=((8,), (16 * 5, 4), (4, 8)), result=(16 * 5, 8))
    assert not advice_of(replace(profile, products=(flattened,)), text)
