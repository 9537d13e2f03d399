"""Advice that depends on what the device was measured to do."""

from dataclasses import replace
from typing import Any

import pytest

from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.protocol import (
    Device,
    LayoutTrial,
    OptimizerUse,
    Peaks,
    Product,
    Profile,
)
from tests.features.advice.cases import CPU, H200, actions_of, advice_of, convolving, sole
from tests.features.building import PEAKS, profile_of

MODEL = "y = model(x)\nloss(y).backward()\noptimizer.step()\n"


def computing(**changes: Any) -> Profile:
    tree = """
    train.py:1 main 0 0
      net.py:5 Net.forward 30 40 flop=50000000000
    train.py:2 main 1 1
    train.py:3 main 5 0 operations=10
    """
    use = OptimizerUse(
        path="train.py",
        line=3,
        name="SGD",
        steps=1,
        parameters=2,
        parameter_bytes=1,
        state_bytes=0,
        fused=True,
        foreach=False,
        can_fuse=True,
    )
    return profile_of(tree, **({"peaks": PEAKS, "optimizers": (use,)} | changes))


def test_half_precision_where_the_device_gains() -> None:
    """Single precision where half precision has a much higher peak is told, as a bound, at the model's call."""
    one = sole(computing(), MODEL)
    assert (one.code, one.line) == (AdviceCode.MIXED_PRECISION, 1)
    assert "50 GFLOP in float32" in one.message
    assert "1.0 TFLOP/s of it, and 4.0 TFLOP/s of bfloat16" in one.message
    assert "(70 ms) may take up to 52 % of the iteration less" in one.message
    assert "no promise" in one.message
    assert one.change is None
    measure = actions_of(computing(), MODEL, 1)[0].command
    assert measure is not None
    assert (measure.name, measure.title) == ("skyline.measureAdvice", "Measure what bfloat16 gains")
    assert measure.arguments == ({"path": "/project/train.py", "code": "mixed-precision", "autocast": "bfloat16"},)


def test_half_precision_on_a_processor() -> None:
    """A CPU is advised on bfloat16 alone, and only where it is much quicker: its peaks are less certain."""

    def peaks(**given: float) -> Peaks:
        return Peaks(flop_per_second={"float32": 1e12, **given}, bytes_per_second=1e10, launch_ms=0.005)

    assert not advice_of(computing(peaks=peaks(bfloat16=2e12)), MODEL)
    assert not advice_of(computing(peaks=peaks(float16=8e12)), MODEL)
    assert advice_of(computing(peaks=peaks(bfloat16=3e12)), MODEL)
    assert advice_of(computing(peaks=peaks(bfloat16=2e12), device=H200), MODEL)


def test_half_precision_where_nothing_is_gained() -> None:
    """On a device that is no quicker, in a program that is mixed already or not compute-bound, nothing is said."""
    slow = Peaks(flop_per_second={"float32": 1e12, "bfloat16": 1.2e12}, bytes_per_second=1e10, launch_ms=0.005)
    assert not advice_of(computing(peaks=slow), MODEL)
    tree = computing().tree
    mixed = (*tree[:2], replace(tree[2], self_flop=10**10, flop_type="bfloat16"), tree[3])
    assert not advice_of(computing(tree=mixed), MODEL)
    quick = Peaks(flop_per_second={"float32": 1e13, "bfloat16": 4e13}, bytes_per_second=1e10, launch_ms=0.005)
    assert not advice_of(computing(peaks=quick), MODEL)


def trial(contiguous_ms: float, channels_last_ms: float, **changes: Any) -> LayoutTrial:
    fields: dict[str, Any] = {
        "input_shape": (16, 64, 56, 56),
        "weight_shape": (128, 64, 3, 3),
        "dtype": "float32",
        "count": 2,
        "contiguous_ms": contiguous_ms,
        "channels_last_ms": channels_last_ms,
        "rounds": 10,
        "rounds_won": 10,
    }
    return LayoutTrial(**(fields | changes))


def in_layouts(*trials: LayoutTrial) -> Profile:
    product = convolving(1).products[0]
    slow = Peaks(flop_per_second={"float32": 1e12}, bytes_per_second=1e10, launch_ms=0.005)
    return computing(layout_trials=trials, products=(replace(product, node=1),), peaks=slow, device=H200)


def test_channels_last_where_it_was_tried_and_won() -> None:
    """The layout is advised by what the program's own convolutions took in both, counted as often as they run."""
    one = sole(in_layouts(trial(12, 8), trial(4, 3)), MODEL)
    assert (one.code, one.line) == (AdviceCode.CHANNELS_LAST, 1)
    assert "3 x 3, 64 to 128 channels, float32) and 1 other took 22 ms" in one.message
    assert "32 ms as they are: up to 10 % of the iteration" in one.message


def test_channels_last_on_a_processor() -> None:
    """On a CPU convolutions alone do not tell, and nothing is said."""
    assert not advice_of(replace(in_layouts(trial(12, 8)), device=CPU), MODEL)


@pytest.mark.parametrize(
    "trials",
    [
        (trial(8, 12),),
        (trial(12, 11),),
        (trial(12, 8, rounds_won=8),),
        (trial(12, 8), trial(2, 3, rounds_won=0)),
        (trial(1.2, 0.8, count=1),),
        (trial(120, 80),),
    ],
    ids=["slower", "hardly", "by chance", "not all", "not worth it", "slower than in the iteration"],
)
def test_channels_last_where_it_did_not_win_clearly(trials: tuple[LayoutTrial, ...]) -> None:
    """Whatever is not clear is not advised."""
    assert not advice_of(in_layouts(*trials), MODEL)


def multiplying(weight: tuple[int, int], dtype: str = "bfloat16", device: Device = H200) -> Profile:
    product = Product(
        node=0,
        operation="addmm",
        shapes=((weight[1],), (1024, weight[0]), weight),
        result=(1024, weight[1]),
        dtype=dtype,
        channels_last=False,
        count=1,
        flop=4 * 10**9,
    )
    profile = profile_of("train.py:1 f 10 20 flop=12000000000", device=device, peaks=PEAKS, products=(product,))
    (node,), (line,) = profile.tree, profile.lines
    return replace(profile, tree=(replace(node, flop_type=dtype),), lines=(replace(line, flop_type=dtype),))


def test_sizes_that_matrix_units_do_not_like() -> None:
    """A product in half precision far from its peak, with a size that is no multiple of eight, is told the next one."""
    one = sole(multiplying((768, 50257)))
    assert one.code is AdviceCode.MATRIX_SIZES
    assert "10 % of what the device does of bfloat16 at best" in one.message
    assert "round 50257 to 50264" in one.message


def test_sizes_that_are_fine() -> None:
    """Multiples of eight, single precision, small matrices and the CPU are left alone."""
    assert not advice_of(multiplying((768, 50264)))
    assert not advice_of(multiplying((768, 10)))
    assert not advice_of(multiplying((768, 50257), dtype="float32"), code=AdviceCode.MATRIX_SIZES)
    assert not advice_of(multiplying((768, 50257), device=CPU))


def test_a_value_that_the_host_waits_for() -> None:
    """A line that reads an accelerator's value is told with what the host spends there; on a CPU it costs nothing."""
    tree = "train.py:1 f 80 0\ntrain.py:2 f 0.1 0 reads=1 host=14"
    profile = profile_of(tree, device=H200, slowdown=1.4)
    one = sole(profile)
    assert (one.code, one.line) == (AdviceCode.SYNCHRONIZATION, 2)
    assert "once an iteration" in one.message
    assert "10 ms on this line, 10 % of the iteration" in one.message
    assert not advice_of(replace(profile, device=CPU))
    assert not advice_of(profile_of(tree.replace("host=14", "host=1"), device=H200, slowdown=1.0))
