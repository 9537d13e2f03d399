"""Advice on biases that a normalisation takes away again."""

import re
from collections.abc import Iterator, Mapping

from skyline_lsp.features.advice.advice import Advice, AdviceCode, Case, Change
from skyline_lsp.source.torch_calls import TorchCall

_LAYER = re.compile(r"torch\.nn\.(?:Conv|ConvTranspose)(?P<dimensions>[123])d|torch\.nn\.Linear")
_NORM = re.compile(r"torch\.nn\.BatchNorm(?P<dimensions>[123])d")


def bias_before_norm(case: Case) -> Iterator[Advice]:
    """A layer's bias goes into a batch normalisation, which subtracts the mean and with it the bias."""
    # Where the mean is a constant, the bias before it is a parameter like any other.
    if case.profile.frozen_norms:
        return
    derived = {base for source in case.sources.values() for base in source.bases}
    for path, source in case.sources.items():
        by_attribute = {(call.class_name, call.attribute): call for call in source.calls if call.attribute is not None}
        by_place = {call.sequence: call for call in source.calls if call.sequence is not None}
        for call in source.calls:
            norm = _norm_behind(case, path, call, by_attribute, by_place, derived)
            if norm is None or not _fits(call, norm):
                continue
            values = _bias_that_ran(case, path, call)
            if values is None:
                continue
            yield Advice(
                code=AdviceCode.BIAS_BEFORE_NORM,
                path=path,
                line=call.start.line,
                message=(
                    f"`{norm.short_name}` subtracts the mean of what this `{call.short_name}` gives, and with it the "
                    f"bias: {values} values here, each with a gradient and an optimizer's state, change nothing. "
                    "`bias=False` leaves them out; checkpoints that hold them then load with `strict=False` only."
                ),
                change=_change(case, path, call),
                worth_percent=None,
            )


def _norm_behind(
    case: Case,
    path: str,
    call: TorchCall,
    by_attribute: Mapping[tuple[str | None, str], TorchCall],
    by_place: Mapping[tuple[int, int], TorchCall],
    derived: set[str],
) -> TorchCall | None:
    """The call that makes the only layer which gets what the layer of `call` gives."""
    if call.sequence is not None:
        number, position = call.sequence
        return by_place.get((number, position + 1))
    if call.attribute is None or call.class_name is None or call.class_name in derived:
        return None
    # From outside of its class the layer might be used otherwise.
    if any(call.attribute in source.attributes for source in case.sources.values()):
        return None
    second = case.sources[path].feeds.get((call.class_name, call.attribute))
    return by_attribute.get((call.class_name, second)) if second is not None else None


def _fits(call: TorchCall, norm: TorchCall) -> bool:
    layer, behind = _LAYER.fullmatch(call.name), _NORM.fullmatch(norm.name)
    if layer is None or behind is None or not call.complete:
        return False
    bias = call.argument("bias")
    # A linear layer's features are the last dimension, which only without others is the one that is normalised.
    dimensions = layer["dimensions"] or "1"
    return dimensions == behind["dimensions"] and (bias is None or bias.value is True)


def _bias_that_ran(case: Case, path: str, call: TorchCall) -> int | None:
    """How many values the layer's bias was seen to have; None where no such product ran."""
    for line in case.cost_lines(path, call):
        for product in case.products.get((path, line), ()):
            if call.short_name == "Linear":
                # With as many rows as the batch has samples, its input has no further dimension.
                if (
                    product.operation == "addmm"
                    and len(product.shapes[0]) == 1
                    and len(product.shapes) == 3
                    and product.result[0] == case.profile.batch_size
                ):
                    return product.shapes[0][0]
            elif product.operation == "convolution" and len(product.shapes) == 3 and len(product.shapes[2]) == 1:
                return product.shapes[2][0]
    return None


def _change(case: Case, path: str, call: TorchCall) -> Change | None:
    """None where the program reads a bias of something, such as to initialise it: it may be this layer's."""
    if any("bias" in source.reads for source in case.sources.values()):
        return None
    title = f"Leave out the bias of this {call.short_name}"
    given = call.argument("bias")
    if given is None:
        return case.add_keyword(path, call, "bias=False", title)
    if given.value_start.line != given.end.line:
        return None
    return Change(
        title=title,
        line=given.end.line,
        start_column=given.value_start.column,
        end_column=given.end.column,
        old=given.text,
        new="False",
        first_line=call.start.line,
        last_line=call.end.line,
    )
