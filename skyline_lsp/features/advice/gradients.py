"""Advice on gradients that nobody needs."""

from collections import defaultdict
from collections.abc import Iterator

from skyline_lsp.features.advice.advice import Advice, AdviceCode, Case, Change
from skyline_lsp.features.units import format_bytes, format_ms

_READS_GRADIENTS = {"grad", "register_hook", "register_post_accumulate_grad_hook"}
"""Attributes by which a program gets at gradients."""


def zero_grad(case: Case) -> Iterator[Advice]:
    """Gradients are filled with zeros instead of being let go."""
    for path, source in case.sources.items():
        for fill in source.zero_fills:
            if (path, fill.line) not in case.lines:
                continue
            spent_ms = case.self_ms(path, fill.line)
            literal = fill.literal
            change = Change(
                title="Let gradients go instead of filling them with zeros",
                line=literal.end.line,
                start_column=literal.value_start.column,
                end_column=literal.end.column,
                old=literal.text,
                new="True",
                first_line=fill.line,
                last_line=literal.end.line,
            )
            yield Advice(
                code=AdviceCode.ZERO_GRAD,
                path=path,
                line=fill.line,
                message=(
                    f"Filling gradients with zeros takes {format_ms(spent_ms)} here ({case.share(spent_ms)}) and keeps "
                    "their memory through the forward pass. With `set_to_none=True`, torch's default, they are let go."
                ),
                change=change,
                worth_percent=None,
            )


def unused_gradient(case: Case) -> Iterator[Advice]:
    """A backward pass works out the gradient of a tensor that is no parameter, and nothing reads it."""
    profile = case.profile
    # A file whose text is not known might read it.
    if any(path not in case.texts for path in profile.files if path.endswith((".py", ".pyw"))):
        return
    if any(source.reads & _READS_GRADIENTS for source in case.sources.values()):
        return
    by_line: dict[tuple[str, int], list[int]] = defaultdict(list)
    shapes: dict[tuple[str, int], tuple[int, ...]] = {}
    for leaf in profile.leaf_gradients:
        by_line[leaf.path, leaf.line].append(leaf.gradient_bytes)
        shapes.setdefault((leaf.path, leaf.line), leaf.shape)
    for (path, line), sizes in by_line.items():
        shape = " x ".join(map(str, shapes[path, line])) or "a single number"
        tensors = f"a tensor ({shape}) that requires a gradient and is no parameter"
        if len(sizes) > 1:
            tensors = f"{len(sizes)} tensors (one is {shape}) that require a gradient and are no parameters"
        yield Advice(
            code=AdviceCode.UNUSED_GRADIENT,
            path=path,
            line=line,
            message=(
                f"This line uses {tensors}: backward works out {format_bytes(sum(sizes))} that no file of this program "
                "reads. Without `requires_grad` it need not."
            ),
            worth_percent=None,
        )
