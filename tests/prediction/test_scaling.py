"""Time on another device: bounded by its roofline, with the host's share kept and the unknown told."""

from collections.abc import Sequence

import pytest

from skyline_lsp.prediction import DeviceSpec, LineWork, Refusal, ScaledTime, parse_device, scale_time


def device(name: str) -> DeviceSpec:
    found = parse_device(name)
    assert isinstance(found, DeviceSpec)
    return found


def check_scaled(
    lines: Sequence[LineWork], host_ms: float = 0.0, here: str = "T4", there: str = "V100 SXM 16"
) -> ScaledTime:
    scaled = scale_time(lines, host_ms, device(here), device(there))
    assert isinstance(scaled, ScaledTime)
    time = scaled.run_time_ms
    assert 0 < time.low <= time.value < time.high
    assert scaled.compute_share + scaled.bandwidth_share + scaled.host_share == pytest.approx(1)
    return scaled


def test_computing_scales_with_the_peak_rate() -> None:
    """A line that computes at half the T4's 8.1 TFLOP/s does so at half the V100's 15.7."""
    scaled = check_scaled([LineWork(run_time_ms=20.0, flops=81e9, bytes=1e6)])
    assert scaled.run_time_ms.value == pytest.approx(20 * 8.1 / 15.7)
    assert scaled.compute_share == pytest.approx(1)


def test_moving_bytes_scales_with_the_bandwidth() -> None:
    """A line that only moves bytes gains what the bandwidth does: 320 to 900 GB/s."""
    scaled = check_scaled([LineWork(run_time_ms=20.0, flops=0, bytes=3.2e9)])
    assert scaled.run_time_ms.value == pytest.approx(20 * 320 / 900)
    assert scaled.bandwidth_share == pytest.approx(1)


def test_what_limits_a_line_may_change() -> None:
    """A line that computing limits here may be limited by bandwidth there."""
    line = LineWork(run_time_ms=10.0, flops=65e12 * 0.01, bytes=2e9, data_type="float16")
    scaled = check_scaled([line], here="T4", there="L4")
    assert scaled.bandwidth_share == pytest.approx(1)
    assert scaled.run_time_ms.low >= 1000 * 2e9 / 300e9


def test_the_host_takes_its_time_there_too() -> None:
    """Neither the rest of the iteration nor lines without device work get faster, and a large share is told."""
    lines = [LineWork(run_time_ms=20.0, flops=81e9, bytes=1e6), LineWork(run_time_ms=5.0, flops=0, bytes=0)]
    scaled = check_scaled(lines, host_ms=7.0)
    assert scaled.run_time_ms.value == pytest.approx(12 + 20 * 8.1 / 15.7)
    assert scaled.run_time_ms.low > 12
    assert any("is the host's" in caveat for caveat in scaled.caveats)


def test_no_line_is_faster_than_its_roofline() -> None:
    """However well a line does here, its lower bound is the other device's peak."""
    scaled = check_scaled([LineWork(run_time_ms=10.0, flops=81e9, bytes=1e6)])
    assert scaled.run_time_ms.low == pytest.approx(1000 * 81e9 / 15.7e12)


def test_a_processor_tells_nothing_of_an_accelerator() -> None:
    """From a CPU only the roofline is known: the interval is several times wide, and the reason is told."""
    here = DeviceSpec(
        name="a laptop's processor",
        memory_bytes=2**34,
        flop_per_second={"float32": 1e11},
        bytes_per_second=2e10,
        source="measured",
    )
    line = LineWork(run_time_ms=900.0, flops=8e10, bytes=1e8)
    scaled = scale_time([line], 0.0, here, device("A100 40"), here_is_accelerator=False)
    assert isinstance(scaled, ScaledTime)
    assert scaled.run_time_ms.low >= 1000 * 8e10 / 19.5e12
    assert scaled.run_time_ms.high / scaled.run_time_ms.low > 4
    assert any("tells nothing" in caveat for caveat in scaled.caveats)


@pytest.mark.parametrize(
    ("lines", "there", "reason"),
    [
        ([LineWork(run_time_ms=1.0, flops=0, bytes=0)], "A100 40", "nothing can be scaled"),
        ([LineWork(run_time_ms=1.0, flops=1e9, bytes=1e6)], "24GiB", "memory bandwidth"),
        (
            [LineWork(run_time_ms=1.0, flops=1e9, bytes=1e6, data_type="bfloat16")],
            "V100 SXM 16",
            "for bfloat16 is not known",
        ),
    ],
)
def test_what_is_not_known_is_refused(lines: list[LineWork], there: str, reason: str) -> None:
    """No work, no bandwidth, or no units for the data type: no number."""
    refusal = scale_time(lines, 0.0, device("A100 80GB SXM"), device(there))
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
