"""How the work of a layer moves with its arguments: FLOP and bytes at other channel counts, widths and kernels.

From the products that the layer was seen to run, each with its shapes, and the closed forms of their FLOP and bytes:
a product of N x k by k x n has 2Nkn FLOP and moves Nk + kn + Nn elements; a convolution multiplies every output value's
window (Goodfellow, Bengio, Courville, "Deep Learning", 2016, section 9.1); a recurrent layer multiplies its input and
its state by one matrix for each gate; attention projects with four matrices of width by width, and multiplies queries,
keys and values over the sequence (Vaswani et al., "Attention is all you need", 2017, section 3.2).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skyline_lsp.protocol import LineCost, Product

_ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_INDEX_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStep:
    """What another value of an argument does to the line that runs the layer."""

    value: int | None
    """The other value; None where the line runs the layer in several sizes, each of which is then scaled."""
    factor: float
    """The argument's, to what it is now."""
    flop_change: float
    """Of the line's FLOP in an iteration."""
    bytes_change: float | None
    """Of the bytes that the line moves; None where not known."""


def layer_steps(
    layer: str, parameter: str, arguments: Mapping[str, int], products: Sequence[Product], cost: LineCost
) -> tuple[LayerStep, ...]:
    """A step down and a step up of an argument, as far as they exist; empty where its effect is not known.

    `layer` is the class's name, such as "Conv2d"; `arguments` are its arguments as far as they are written as
    integers; `products` are those of the line, and `cost` is the line's; the line must run no other such layer.
    """
    if layer.startswith("Conv"):
        return tuple(_convolution(layer, parameter, products))
    if layer == "Linear":
        return tuple(_linear(parameter, products))
    if layer in ("RNN", "LSTM", "GRU"):
        return tuple(_recurrent(parameter, arguments, cost))
    if layer == "MultiheadAttention":
        return tuple(_attention(parameter, arguments, products))
    return tuple(_moving(layer, parameter, arguments, cost))


# -- convolutions ------------------------------------------------------------------------------------------------------


def _convolution(layer: str, parameter: str, products: Sequence[Product]) -> Iterator[LayerStep]:
    found = [product for product in products if product.operation in ("convolution", "convolution_backward")]
    weights = {_operands(product)[1] for product in found}
    position = {"in_channels": 1, "out_channels": 0, "kernel_size": 2}.get(parameter)
    if not weights or position is None:
        return
    transposed = layer.startswith("ConvTranspose")
    if transposed and position < 2:
        position = 1 - position
    if position < 2 and any(_grouped(product, transposed) for product in found):
        return  # how many channels are possible depends on the groups
    if position == 2 and any(len(set(weight[2:])) != 1 for weight in weights):
        return
    dimensions = len(next(iter(weights))) - 2
    present = {weight[position] for weight in weights}
    for value, factor in _steps(present, 2 if position == 2 else None):
        flop = sum(product.flop * (factor**dimensions if position == 2 else factor) for product in found)
        moved = sum(
            _convolution_bytes(product, parameter, factor, dimensions) - _convolution_bytes(product, "", 1.0, 0)
            for product in found
        )
        yield LayerStep(
            value=value,
            factor=factor,
            flop_change=flop - sum(product.flop for product in found),
            bytes_change=moved,
        )


def _operands(product: Product) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of the image, the weight and the result."""
    if product.operation == "convolution":
        return product.shapes[0], product.shapes[1], product.result
    return product.shapes[1], product.shapes[2], product.shapes[0]


def _grouped(product: Product, transposed: bool) -> bool:
    source, weight, result = _operands(product)
    return weight[:2] != ((source[1], result[1]) if transposed else (result[1], source[1]))


def _convolution_bytes(product: Product, parameter: str, factor: float, dimensions: int) -> float:
    source, weight, result = (float(math.prod(shape)) for shape in _operands(product))
    if parameter == "in_channels":
        source, weight = source * factor, weight * factor
    elif parameter == "out_channels":
        weight, result = weight * factor, result * factor
    elif parameter == "kernel_size":
        weight *= factor**dimensions
    elements = source + weight + result
    if product.operation == "convolution_backward":
        # Its results are the gradients of the weight and, where something needs it, of the image.
        elements += weight + (source if product.result == product.shapes[1] else 0.0)
    return elements * product.count * _ITEM_BYTES.get(product.dtype, 4)


# -- products ----------------------------------------------------------------------------------------------------------


def _linear(parameter: str, products: Sequence[Product]) -> Iterator[LayerStep]:
    if parameter not in ("in_features", "out_features"):
        return
    forward = [product for product in products if product.operation == "addmm"]
    if not forward:
        # Without a bias, forward and backward are products alike: they must be those of one layer.
        forward = [product for product in products if product.operation == "mm"][:1]
        if forward and any(_sides(product) != _sides(forward[0]) for product in products):
            return
    layers = {_sides(product): product.shapes[-1] for product in forward if len(product.shapes[-1]) == 2}
    found = [(product, layers[_sides(product)]) for product in products if _sides(product) in layers]
    position = 0 if parameter == "in_features" else 1
    present = {weight[position] for weight in layers.values()}
    for value, factor in _steps(present):
        flop = bytes_change = 0.0
        for product, (wide, high) in found:
            flop += product.flop * (factor - 1)
            rows = math.prod(_sides(product)) / (wide * high)
            grows = (wide if position == 0 else high) * (rows + (high if position == 0 else wide))
            bytes_change += grows * (factor - 1) * product.count * _ITEM_BYTES.get(product.dtype, 4)
        yield LayerStep(value=value, factor=factor, flop_change=flop, bytes_change=bytes_change)


def _sides(product: Product) -> tuple[int, ...]:
    """Rows, common side and columns of a matrix product, sorted: those of a layer are the same in every pass."""
    if product.operation not in ("mm", "addmm") or len(product.shapes) < 2:
        return ()
    left, right = product.shapes[-2:]
    return tuple(sorted((*left, *right[1:]))) if len(left) == len(right) == 2 else ()


def _attention(parameter: str, arguments: Mapping[str, int], products: Sequence[Product]) -> Iterator[LayerStep]:
    projections = sum(product.flop for product in products if product.operation in ("mm", "addmm"))
    scores = sum(product.flop for product in products) - projections
    heads, width = arguments.get("num_heads"), arguments.get("embed_dim")
    if not projections:
        return
    if parameter == "embed_dim":
        present = {width} if width is not None else set()
        step = None if width is None or heads is None else heads * math.ceil(_stride(width) / heads)
        for value, factor in _steps(present, step):
            flop = projections * factor**2 + scores * factor - projections - scores
            yield LayerStep(value=value, factor=factor, flop_change=flop, bytes_change=None)
    elif parameter == "num_heads" and heads is not None:
        for value in (heads // 2, heads * 2):
            if value and heads % 2 in (0, value % 2) and (width is None or width % value == 0):
                yield LayerStep(value=value, factor=value / heads, flop_change=0.0, bytes_change=None)


def _recurrent(parameter: str, arguments: Mapping[str, int], cost: LineCost) -> Iterator[LayerStep]:
    source, hidden = arguments.get("input_size"), arguments.get("hidden_size")
    if source is None or hidden is None or "proj_size" in arguments:
        return
    sizes = {"input_size": source, "hidden_size": hidden, "num_layers": arguments.get("num_layers", 1)}
    directions = 2 if arguments.get("bidirectional") else 1
    if parameter not in sizes:
        return
    before = _recurrent_work(**sizes, directions=directions)
    for value, factor in _steps({sizes[parameter]}, 1 if parameter == "num_layers" else None):
        if value is not None:
            after = _recurrent_work(**{**sizes, parameter: value}, directions=directions)
            flop = cost.self_flop * (after / before - 1)
            yield LayerStep(value=value, factor=factor, flop_change=flop, bytes_change=None)


def _recurrent_work(*, input_size: int, hidden_size: int, num_layers: int, directions: int) -> int:
    """Proportional to the FLOP of a step: of each layer, its input and its state times the matrix of a gate."""
    later = hidden_size * (directions * hidden_size + hidden_size)
    return hidden_size * (input_size + hidden_size) + (num_layers - 1) * later


# -- layers without products -------------------------------------------------------------------------------------------


def _moving(layer: str, parameter: str, arguments: Mapping[str, int], cost: LineCost) -> Iterator[LayerStep]:
    present = arguments.get(parameter)
    if (layer.startswith("BatchNorm") and parameter == "num_features") or (
        layer == "Embedding" and parameter == "embedding_dim"
    ):
        for value, factor in _steps({present} if present is not None else set()):
            change = cost.self_bytes_moved * (factor - 1)
            yield LayerStep(value=value, factor=factor, flop_change=0.0, bytes_change=change)
    elif layer == "Embedding" and parameter == "num_embeddings" and present is not None:
        width = arguments.get("embedding_dim")
        if width is not None and not arguments.get("sparse") and cost.self_backward_ms > 0:
            for value, factor in _steps({present}):
                # Rows are looked up in the table, but its gradient has all of them.
                change = 4.0 * width * present * (factor - 1)
                yield LayerStep(value=value, factor=factor, flop_change=0.0, bytes_change=change)
    elif layer[:-2] in ("MaxPool", "AvgPool") and parameter in ("kernel_size", "stride") and present is not None:
        yield from _pooling(layer, parameter, arguments, present, cost)


def _pooling(
    layer: str, parameter: str, arguments: Mapping[str, int], present: int, cost: LineCost
) -> Iterator[LayerStep]:
    """An input of n values and a result of n / stride^d: each is read and written as forward and backward need it."""
    moves_result = parameter == "stride" or "stride" not in arguments
    dimensions = int(layer[-2])
    item = _ITEM_BYTES["float32"]
    per_input = 3 * item
    per_result = 2 * item + (2 * _INDEX_BYTES if layer.startswith("MaxPool") else 0)
    stride = arguments.get("stride", arguments.get("kernel_size", present))

    def moved(by: int) -> float:
        return per_input + per_result / math.pow(by, dimensions)

    for value, factor in _steps({present}, 1):
        if value is not None:
            after = moved(value) / moved(stride) - 1 if moves_result else 0.0
            change = cost.self_bytes_moved * after
            yield LayerStep(value=value, factor=factor, flop_change=0.0, bytes_change=change)


# -- steps -------------------------------------------------------------------------------------------------------------


def _steps(present: set[int], step: int | None = None) -> Iterator[tuple[int | None, float]]:
    """A step down and up from the present value: about an eighth, from 32 on in multiples of 8; a tenth of several."""
    if len(present) != 1:
        yield from ((None, 0.9), (None, 1.1))
        return
    (value,) = present
    by = step or _stride(value)
    for other in (value - by, value + by):
        if other > 0:
            yield other, other / value


def _stride(value: int) -> int:
    return max(1, value // 8) if value < 32 else max(8, 8 * round(value / 64))
