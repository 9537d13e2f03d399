"""What a layer's arguments do to its cost, foretold from one run and compared with another."""

import functools
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from skyline_lsp.prediction.layer_cost import layer_steps
from skyline_lsp.protocol import LineCost, Product
from tests.worker.programs import profile_program

IMAGE, TEXT, WORDS = "torch.randn(2, 6, 24, 24)", "torch.randn(9, 2, 48)", "torch.randint(50, (9, 40))"


@functools.cache
def run(folder: Path, layer: str, arguments: tuple[tuple[str, int], ...], x: str) -> tuple[LineCost, list[Product]]:
    """Cost and products of the line that runs a layer with these arguments, forward and backward."""
    written = ", ".join(f"{name}={value}" for name, value in arguments)
    x = x if "randint" in x else f"{x}.requires_grad_()"
    called = "layer(x, x, x)[0]" if layer == "MultiheadAttention" else "first(layer(x))"
    program = f"""
        import torch

        layer = torch.nn.{layer}({written})

        def first(result):
            return result[0] if isinstance(result, tuple) else result

        def iteration():
            layer.zero_grad()
            x = {x}
            y = {called}
            y.square().sum().backward()
    """
    profile = profile_program(folder, textwrap.dedent(program))
    line = next(n for n, text in enumerate(textwrap.dedent(program).splitlines(), 1) if text.strip().startswith("y = "))
    (cost,) = [cost for cost in profile.lines if cost.line == line]
    return cost, [product for product in profile.products if profile.tree[product.node].line == line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.mark.parametrize(
    ("layer", "arguments", "parameter", "x"),
    [
        ("Conv2d", {"in_channels": 6, "out_channels": 40, "kernel_size": 3, "padding": 1}, "out_channels", IMAGE),
        ("ConvTranspose2d", {"in_channels": 6, "out_channels": 40, "kernel_size": 3}, "out_channels", IMAGE),
        ("Linear", {"in_features": 48, "out_features": 64}, "out_features", TEXT),
        ("Linear", {"in_features": 48, "out_features": 64, "bias": False}, "out_features", TEXT),
        ("LSTM", {"input_size": 48, "hidden_size": 32, "num_layers": 2, "bidirectional": True}, "hidden_size", TEXT),
        ("LSTM", {"input_size": 48, "hidden_size": 32, "num_layers": 2}, "num_layers", TEXT),
        ("GRU", {"input_size": 48, "hidden_size": 32}, "hidden_size", TEXT),
        ("MultiheadAttention", {"embed_dim": 48, "num_heads": 4}, "num_heads", TEXT),
        ("Embedding", {"num_embeddings": 64, "embedding_dim": 40}, "num_embeddings", WORDS),
        ("Embedding", {"num_embeddings": 64, "embedding_dim": 40}, "embedding_dim", WORDS),
        ("MaxPool2d", {"kernel_size": 2}, "kernel_size", IMAGE),
        ("MaxPool2d", {"kernel_size": 3, "stride": 2, "padding": 1}, "stride", IMAGE),
        ("AvgPool2d", {"kernel_size": 2}, "kernel_size", IMAGE),
    ],
    ids=lambda value: value if isinstance(value, str) and not value.startswith("torch") else "",
)
def test_a_step_does_what_was_foretold(
    folder: Path, layer: str, arguments: dict[str, int], parameter: str, x: str
) -> None:
    """FLOP at the next value are exactly those foretold, and bytes within 3 %.

    A recurrent layer's first state needs no gradient, for which its FLOP may be off by a percent.
    """
    exact = 0.01 if layer in ("LSTM", "GRU") else 1e-9
    cost, products = run(folder, layer, tuple(arguments.items()), x)
    steps = layer_steps(layer, parameter, arguments, products, cost)
    assert len(steps) == 2
    for step in steps:
        assert step.value is not None
        there, _ = run(folder, layer, tuple({**arguments, parameter: step.value}.items()), x)
        assert cost.self_flop + step.flop_change == pytest.approx(there.self_flop, rel=exact)
        if step.bytes_change is not None:
            assert cost.self_bytes_moved + step.bytes_change == pytest.approx(there.self_bytes_moved, rel=0.03)


def test_arguments_that_change_what_comes_in(folder: Path) -> None:
    """The width of the input, and what goes with it, is foretold as well."""
    for layer, arguments, parameter, x, wider in (
        ("Conv2d", {"in_channels": 6, "out_channels": 40, "kernel_size": 3}, "in_channels", IMAGE, "(2, 7, 24, 24)"),
        ("Linear", {"in_features": 48, "out_features": 64}, "in_features", TEXT, "(9, 2, 56)"),
        ("LSTM", {"input_size": 48, "hidden_size": 32}, "input_size", TEXT, "(9, 2, 56)"),
        ("MultiheadAttention", {"embed_dim": 48, "num_heads": 4}, "embed_dim", TEXT, "(9, 2, 56)"),
        ("BatchNorm2d", {"num_features": 6}, "num_features", IMAGE, "(2, 7, 24, 24)"),
    ):
        cost, products = run(folder, layer, tuple(arguments.items()), x)
        step = layer_steps(layer, parameter, arguments, products, cost)[-1]
        assert step.value is not None
        there, _ = run(folder, layer, tuple({**arguments, parameter: step.value}.items()), f"torch.randn{wider}")
        assert cost.self_flop + step.flop_change == pytest.approx(there.self_flop, rel=0.01), layer
        if step.bytes_change is not None:
            assert cost.self_bytes_moved + step.bytes_change == pytest.approx(there.self_bytes_moved, rel=0.03), layer


def test_a_kernel_at_the_same_size_of_the_result(folder: Path) -> None:
    """A larger kernel is foretold as if padding kept the result's size."""
    arguments = {"in_channels": 6, "out_channels": 40, "kernel_size": 3, "padding": 1}
    cost, products = run(folder, "Conv2d", tuple(arguments.items()), IMAGE)
    step = layer_steps("Conv2d", "kernel_size", arguments, products, cost)[-1]
    assert step.value == 5
    there, _ = run(folder, "Conv2d", tuple({**arguments, "kernel_size": 5, "padding": 2}.items()), IMAGE)
    assert cost.self_flop + step.flop_change == pytest.approx(there.self_flop)
    assert step.bytes_change is not None
    assert cost.self_bytes_moved + step.bytes_change == pytest.approx(there.self_bytes_moved, rel=0.03)


def test_groups_and_odd_kernels_are_left_alone(folder: Path) -> None:
    """Where other channel counts may not be possible, nothing is foretold of them."""
    arguments = {"in_channels": 6, "out_channels": 12, "kernel_size": 3, "groups": 3}
    cost, products = run(folder, "Conv2d", tuple(arguments.items()), IMAGE)
    assert not layer_steps("Conv2d", "out_channels", arguments, products, cost)
    assert layer_steps("Conv2d", "kernel_size", arguments, products, cost)
