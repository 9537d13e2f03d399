"""What bounds a line and a step, on constructed costs."""

import pytest

from skyline_lsp.prediction.roofline import Bound, StepBound, line_roofline, ridge_intensity, step_roofline
from skyline_lsp.protocol import CallNode, Device, Iteration, Memory, Peaks, Phase, PhaseKind, Profile, Workload
from skyline_lsp.protocol import line_costs as costs_of

PEAKS = Peaks(flop_per_second={"float32": 1e9, "bfloat16": 4e9}, bytes_per_second=1e8, launch_ms=0.01)
"""In a millisecond: a million FLOP, a hundred thousand bytes, a hundred launches. The ridge is at 10 FLOP a byte."""


def node(
    line: int = 1,
    *,
    ms: float = 10.0,
    flop: int = 0,
    moved: int = 0,
    operations: int = 1,
    dtype: str | None = "float32",
    label: str | None = None,
) -> CallNode:
    return CallNode(
        parent=-1,
        path="net.py",
        line=line,
        function="f",
        self_forward_ms=ms / 4,
        self_backward_ms=3 * ms / 4,
        self_flop=flop,
        self_bytes_moved=moved,
        self_operations=operations,
        flop_type=dtype if flop else None,
        label=label,
    )


def profile_of(*nodes: CallNode, run_time_ms: float, loading_ms: float = 0.0, peaks: Peaks | None = PEAKS) -> Profile:
    return Profile(
        device=Device(kind="cpu", name="Test", memory_bytes=None),
        workload=Workload(kind="provider", path="net.py"),
        batch_size=1,
        iteration=Iteration(
            run_time_ms=run_time_ms, spread_ms=0, iterations=5, samples_per_second=1000 / run_time_ms, peak_bytes=1
        ),
        untracked_ms=0,
        memory=Memory(weights_bytes=1, gradients_bytes=0, optimizer_bytes=0, activations_bytes=0, other_bytes=0),
        phases=(Phase(kind=PhaseKind.DATA_LOADING, run_time_ms=loading_ms),) if loading_ms else (),
        lines=costs_of(nodes),
        tree=nodes,
        peaks=peaks,
        torch_version="2.13.0",
        python_version="3.11.2",
        files={},
    )


def check_line(of: CallNode, bound: Bound, *words: str) -> None:
    (cost,) = costs_of([of])
    roofline = line_roofline(cost, PEAKS)
    assert roofline is not None
    assert roofline.bound is bound, roofline.reason
    for word in words:
        assert word in roofline.reason


def test_rates_and_shares_of_the_peaks() -> None:
    """Rates are amounts by the line's own time, shares are rates by the device's peaks."""
    (cost,) = costs_of([node(ms=10, flop=6_000_000, moved=200_000, operations=50)])
    roofline = line_roofline(cost, PEAKS)
    assert roofline is not None
    assert roofline.intensity == 30
    assert roofline.flop_per_second == 6e8
    assert roofline.bytes_per_second == 2e7
    assert roofline.utilisation == pytest.approx(0.6)
    assert roofline.bandwidth_share == pytest.approx(0.2)
    assert roofline.launch_share == pytest.approx(0.05)


def test_utilisation_is_of_the_peak_of_the_lines_own_data_type() -> None:
    """The same FLOP in a type that the device does four times as quickly are a quarter of the utilisation."""
    (cost,) = costs_of([node(ms=10, flop=6_000_000, dtype="bfloat16")])
    roofline = line_roofline(cost, PEAKS)
    assert roofline is not None
    assert roofline.utilisation == pytest.approx(0.15)


def test_the_highest_floor_names_the_bound() -> None:
    """FLOP, bytes or launches: which of them takes longest at the device's best; the reason tells all that matter."""
    check_line(node(flop=6_000_000, moved=400_000), Bound.COMPUTE, "6 ms for its FLOP", "4 ms for its bytes", "10 ms")
    check_line(node(flop=3_000_000, moved=400_000), Bound.MEMORY, "4 ms for its bytes", "3 ms for its FLOP")
    check_line(node(flop=100_000, moved=10_000, operations=400), Bound.LAUNCH, "4 ms to launch its operations")


def test_a_floor_far_below_the_time_names_nothing() -> None:
    """Where the highest floor is less than a fifth of the time, the bound is not known, and the numbers say why."""
    check_line(node(flop=2_000_000), Bound.COMPUTE)
    check_line(node(flop=1_900_000), Bound.UNKNOWN, "1.9 ms for its FLOP", "10 ms")


def test_caches_may_serve_more_than_the_bandwidth() -> None:
    """More bytes than the memory could have moved in the time are not an error: caches served a part."""
    check_line(node(moved=2_000_000), Bound.MEMORY, "20 ms for its bytes", "caches")


def test_a_compiled_region_is_judged_by_its_flop_alone() -> None:
    """The compiler saves bytes and launches, so those counted without it bound nothing; FLOP stay what they are."""
    check_line(node(flop=5_000_000, moved=9_000_000, label="compiled"), Bound.COMPUTE)
    check_line(node(moved=900_000, label="compiled"), Bound.UNKNOWN, "compiled region")


def test_a_data_type_without_a_measured_peak() -> None:
    """Nothing is claimed of arithmetic whose peak was not measured."""
    check_line(node(flop=5_000_000, dtype="float64"), Bound.UNKNOWN, "float64")


def test_lines_that_were_not_counted_have_no_roofline() -> None:
    """A line without time, and one at which no operation was seen, have none."""
    for of in (node(ms=0, flop=5), node(operations=0)):
        (cost,) = costs_of([of])
        assert line_roofline(cost, PEAKS) is None


def test_the_step_is_bound_by_what_takes_most_of_it() -> None:
    """Lines are added up by their bounds; the largest part names the step's."""
    compute = node(1, ms=60, flop=30_000_000)
    memory = node(2, ms=20, moved=1_000_000)
    launches = node(3, ms=10, operations=500)
    step = step_roofline(profile_of(compute, memory, launches, run_time_ms=100))
    assert step is not None
    assert step.bound is StepBound.DEVICE
    assert (step.compute_ms, step.memory_ms, step.launch_ms, step.unexplained_ms) == (60, 20, 10, 10)
    assert step.utilisation == pytest.approx(0.3)
    assert "60 % in compute-bound lines, 20 % in memory-bound lines, 10 % in launch-bound lines" in step.reason
    step = step_roofline(profile_of(compute, node(3, ms=100, operations=5000), run_time_ms=160))
    assert step is not None
    assert step.bound is StepBound.HOST


def test_the_step_is_bound_by_its_data() -> None:
    """Time in data loaders counts once, though it is a line's time as well."""
    loading = node(4, ms=70, operations=1)
    step = step_roofline(profile_of(node(1, ms=30, flop=20_000_000), loading, run_time_ms=100, loading_ms=65))
    assert step is not None
    assert step.bound is StepBound.DATA
    assert (step.loading_ms, step.unexplained_ms, step.compute_ms) == (65, 5, 30)


def test_utilisation_of_mixed_types_adds_up_their_floors() -> None:
    """Each type's FLOP count against its own peak; without one of the peaks the whole is not known."""
    mixed = (node(1, flop=20_000_000), node(2, flop=40_000_000, dtype="bfloat16"))
    step = step_roofline(profile_of(*mixed, run_time_ms=100))
    assert step is not None
    assert step.utilisation == pytest.approx(0.3)
    step = step_roofline(profile_of(*mixed, node(3, flop=1, dtype="float64"), run_time_ms=100))
    assert step is not None
    assert step.utilisation is None


def test_without_peaks_there_is_no_roofline() -> None:
    """A profile whose device was not measured has no verdict."""
    assert step_roofline(profile_of(node(1, flop=1), run_time_ms=100, peaks=None)) is None


def test_the_ridge() -> None:
    """From the ridge on, arithmetic sets the floor."""
    assert ridge_intensity(PEAKS, "float32") == 10
    assert ridge_intensity(PEAKS, "float64") is None
