"""Torch's classes as source text calls them."""

import ast
import textwrap

import pytest

from skyline_lsp.source.text import split_lines
from skyline_lsp.source.torch_calls import TorchCall, TorchSource, insertion, torch_source


def read(text: str) -> TorchSource:
    return torch_source(textwrap.dedent(text))


def only_call(text: str) -> TorchCall:
    (call,) = read(text).calls
    return call


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.nn.Conv2d(3, 8, 3)",
        "from torch import nn\nnn.Conv2d(3, 8, 3)",
        "import torch.nn as layers\nlayers.Conv2d(3, 8, 3)",
        "import torch.nn\ntorch.nn.Conv2d(3, 8, 3)",
        "from torch.nn import Conv2d as C\nC(3, 8, 3)",
    ],
)
def test_a_class_by_any_import(text: str) -> None:
    """However torch is imported, its class is known, and positional arguments by their parameters' names."""
    call = only_call(text)
    assert call.name == "torch.nn.Conv2d"
    assert [(argument.name, argument.value) for argument in call.arguments] == [
        ("in_channels", 3),
        ("out_channels", 8),
        ("kernel_size", 3),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from mine import nn\nnn.Conv2d(3, 8, 3)",
        "from torch import nn\nnn = mine\nnn.Conv2d(3, 8, 3)",
        "from torch import nn\ndef f(nn):\n    nn.Conv2d(3, 8, 3)",
        "from .torch import nn\nnn.Conv2d(3, 8, 3)",
        "import torch\ntorch.nn.Conv2d(3,",
    ],
)
def test_what_may_be_another_class(text: str) -> None:
    """A name of another package, or one that is bound a second time, is none of torch's; broken source says nothing."""
    assert not read(text).calls


def test_arguments_know_where_they_are() -> None:
    """A keyword argument holds its name and its value; columns are code points."""
    text = "from torch import nn\nx = 'äö', nn.Linear(4, out_features=width * 2)"
    call = only_call(text)
    argument = call.argument("out_features")
    assert argument is not None
    line = text.splitlines()[1]
    assert line[argument.start.column : argument.end.column] == "out_features=width * 2"
    assert line[argument.value_start.column : argument.end.column] == argument.text == "width * 2"
    assert argument.value is None
    assert argument.holds(2, line.index("width"))
    assert not argument.holds(2, line.index("4"))


NET = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.norm = nn.BatchNorm2d(8)
            self.body = nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))

        def forward(self, x):
            {forward}
"""


def net(forward: str) -> TorchSource:
    return read(textwrap.dedent(NET).replace("{forward}", textwrap.indent(textwrap.dedent(forward), " " * 8).strip()))


def test_layers_by_attribute_and_by_place_in_a_sequential() -> None:
    """A layer is known by the attribute that it becomes, or by its place among a Sequential's arguments."""
    calls = {(call.short_name, call.attribute, call.sequence) for call in net("return x").calls}
    assert calls == {
        ("Conv2d", "conv", None),
        ("BatchNorm2d", "norm", None),
        ("Sequential", "body", None),
        ("Conv2d", None, (0, 0)),
        ("BatchNorm2d", None, (0, 1)),
    }


def test_an_attribute_that_is_set_twice_is_not_known() -> None:
    """Which of two layers an attribute is can't be told."""
    text = textwrap.dedent(NET).replace("{forward}", "return x") + "        self.conv = nn.Conv2d(3, 8, 5)\n"
    assert not [call for call in read(text).calls if call.attribute == "conv"]


def test_lines_that_use_a_layer() -> None:
    """The lines that call a layer are told, once for each call."""
    assert net("return self.norm(self.conv(x)) + self.norm(x)").uses["Net", "norm"] == (12, 12)


@pytest.mark.parametrize(
    "forward",
    [
        "return self.norm(self.conv(x))",
        "x = self.conv(x)\nx = self.norm(x)\nreturn x",
        "y = self.conv(x)\nreturn self.norm(y).relu() + x",
        "x = self.conv(x)\nx = self.norm(x).relu()\nreturn x",
        "for _ in range(2):\n    x = self.conv(x)\n    x = self.norm(x)\nreturn x",
    ],
)
def test_a_layer_that_feeds_another(forward: str) -> None:
    """One layer feeds another where all that it gives goes there and nowhere else."""
    assert net(forward).feeds["Net", "conv"] == "norm"


@pytest.mark.parametrize(
    "forward",
    [
        "return self.conv(x)",
        "return self.norm(self.conv(x).relu())",
        "y = self.conv(x)\nz = self.norm(y)\nreturn y + z",
        "x = self.conv(x)\nx = self.norm(x) + x\nreturn x",
        "x = self.conv(x)\nx = x.relu()\nx = self.norm(x)\nreturn x",
        "return self.norm(self.conv(x)) + self.conv(x)",
        "self.conv.weight.data.zero_()\nreturn self.norm(self.conv(x))",
        "x = self.conv(x)\nif x is None:\n    x = self.norm(x)\nreturn x",
        "x = [self.conv(x)]\nx = self.norm(x[0])\nreturn x",
        "return self.norm(self.conv(x), 2)",
    ],
)
def test_a_layer_that_may_feed_something_else(forward: str) -> None:
    """Where a result may be used otherwise, or the layer is, nothing is claimed."""
    assert "conv" not in {first for _, first in net(forward).feeds}


def test_a_class_with_another_base_is_not_judged() -> None:
    """A base of the project's may use the layer in ways of its own."""
    text = textwrap.dedent(NET).replace("{forward}", "return self.norm(self.conv(x))").replace("nn.Module", "Base")
    assert not read(text).feeds


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.Linear(4, 8)", "nn.Linear(4, 8, bias=False)"),
        ("nn.Linear(\n    4,\n    8,  # wide (very)\n)", "nn.Linear(\n    4,\n    8, bias=False,  # wide (very)\n)"),
        ("nn.Linear()", "nn.Linear(bias=False)"),
        ("nn.Linear(4, out_features=f(8))", "nn.Linear(4, out_features=f(8), bias=False)"),
        ("nn.Linear(4, (8))", None),
        ("nn.Linear(*sizes)", None),
        ("nn.Linear(4, 8, **more)", None),
        ("nn.Linear(\n)", None),
    ],
)
def test_another_keyword(before: str, after: str | None) -> None:
    """A keyword argument is added behind the last one, whatever the layout; where it can't be told how, none is."""
    text = f"from torch import nn\n{before}"
    lines = list(split_lines(text))
    (call,) = torch_source(text).calls
    place = insertion(call, "bias=False", lines)
    if after is None:
        assert place is None
        return
    assert place is not None
    at, added = place
    line = lines[at.line - 1]
    lines[at.line - 1] = line[: at.column] + added + line[at.column :]
    edited = "\n".join(lines)
    assert edited == f"from torch import nn\n{after}"
    ast.parse(edited)


def test_gradients_filled_with_zeros() -> None:
    """Calls that say `set_to_none=False` are found, by name or position; others are not."""
    found = read(
        """
        optimizer.zero_grad(set_to_none=False)
        model.zero_grad(False)
        optimizer.zero_grad()
        optimizer.zero_grad(set_to_none=True)
        optimizer.zero_grad(set_to_none=flag)
        """
    ).zero_fills
    assert [(fill.line, fill.literal.text) for fill in found] == [(2, "False"), (3, "False")]


def test_loops_over_a_variable() -> None:
    """A loop over a loader is found through what usually wraps it."""
    loops = read(
        """
        for batch in loader:
            pass
        for i, batch in enumerate(tqdm(loader)):
            pass
        for batch in other():
            pass
        """
    ).loops
    assert loops == {"loader": (2, 4)}
