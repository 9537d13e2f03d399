"""Advice on gradients that nobody needs."""

from skyline_lsp.features.advice import AdviceCode, advise
from skyline_lsp.protocol import (
    LeafGradient,
)
from tests.features.advice.cases import followed, sole
from tests.features.building import profile_of


def test_gradients_that_are_filled_with_zeros() -> None:
    """`set_to_none=False` on a line that ran is told with the line's time, and becomes `True`."""
    text = "optimizer.zero_grad(set_to_none=False)\nother.zero_grad(set_to_none=False)\n"
    profile = profile_of("train.py:1 f 3 0")
    one = sole(profile, text)
    assert (one.code, one.line) == (AdviceCode.ZERO_GRAD, 1)
    assert "3.0 ms here (3 % of the iteration)" in one.message
    assert followed(profile, text, 1).startswith("optimizer.zero_grad(set_to_none=True)\n")


STRAY = (LeafGradient(path="train.py", line=1, shape=(16, 3), gradient_bytes=192),)


def test_a_gradient_that_nobody_reads() -> None:
    """A tensor that is no parameter and gets a gradient is told where no file reads any gradient."""
    one = sole(profile_of("train.py:1 f 3 0", leaf_gradients=STRAY), "loss(model(x)).backward()\n")
    assert one.code is AdviceCode.UNUSED_GRADIENT
    assert "a tensor (16 x 3)" in one.message
    assert "192 B" in one.message
    assert one.change is None


def test_a_gradient_that_may_be_read() -> None:
    """Where some file reads a gradient, or its text is not known, nothing is said."""
    profile = profile_of("train.py:1 f 3 0\nattack.py:1 g 1 0", leaf_gradients=STRAY)
    assert not advise(profile, {"train.py": "loss(model(x)).backward()\nx.grad.sign()\n", "attack.py": ""})
    assert not advise(profile, {"train.py": "x.register_hook(print)\nloss(model(x)).backward()\n", "attack.py": ""})
    assert not advise(profile, {"train.py": "loss(model(x)).backward()\n"})
