"""The model of time: which curves it finds, what it makes of few or bad samples, and what it refuses."""

import json
import re
from collections.abc import Sequence

import pytest

from skyline_lsp.prediction.run_time import RunTimeModel, Shape, fit_run_time
from skyline_lsp.protocol import Sample, from_json, to_json
from tests.prediction.curves import CURVES, NOISES, Curve, Machine, exact, sample


def check_model(samples: Sequence[Sample]) -> RunTimeModel:
    model, _ = fit_run_time(samples)
    assert model is not None
    return model


def check_follows(curve: Curve, measured: Sequence[int], asked: Sequence[int], within: float) -> RunTimeModel:
    """A noise-free curve is predicted within a relative error, and its interval holds it."""
    model = check_model(exact(curve, measured))
    for size, estimate in zip(asked, model.predict_many(asked), strict=True):
        assert estimate.value == pytest.approx(curve(size), rel=within), size
        assert estimate.low <= curve(size) <= estimate.high, size
    return model


def check_in_words(curve: Curve, measured: Sequence[int], words: str) -> None:
    assert check_model(exact(curve, measured)).in_words == words


def check_refused(samples: Sequence[Sample], reason: str) -> None:
    model, problems = fit_run_time(samples)
    assert model is None
    assert len(problems) == 1
    assert reason in problems[0]


# -- curves ------------------------------------------------------------------------------------------------------------


def test_a_line_is_found() -> None:
    """A fixed part and a part per sample: predictions are right at other sizes, up to four times the largest."""
    model = check_follows(CURVES["line"], [2, 8, 23, 32, 64], [1, 4, 16, 48, 100, 256], within=0.01)
    assert model.components[0].shape is Shape.LINE


def test_a_floor_is_found() -> None:
    """Below some size something other than the batch takes the time; both sides of the corner are predicted."""
    curve: Curve = lambda b: max(40.0, 1.25 * b)  # noqa: E731 - beside its use it is clearest
    model = check_follows(curve, [1, 4, 16, 48, 64, 128], [2, 8, 24, 32, 96, 256, 512], within=0.03)
    assert model.components[0].shape is Shape.FLOOR


def test_steps_are_found_once_a_size_breaks_them() -> None:
    """A device that works in blocks takes as long for 33 samples as for 48."""
    model = check_follows(CURVES["steps of 16"], [8, 23, 32, 41, 64, 128], [33, 48, 49, 100, 256], within=0.03)
    assert model.components[0].shape is Shape.STEPS


def test_saturation_is_followed() -> None:
    """Samples that cost ever less as the device fills up are neither over- nor underrated at four times the largest."""
    check_follows(CURVES["saturating"], [2, 8, 16, 32, 64], [4, 24, 48, 100, 256], within=0.06)


def test_a_bend_is_followed() -> None:
    """Where caches overflow, a sample costs more from there on."""
    check_follows(CURVES["bend"], [2, 8, 16, 32, 64, 128], [4, 24, 48, 100, 256], within=0.05)


def test_a_line_through_zero_is_found() -> None:
    """A program without a fixed part doesn't get a negative one from noise."""
    machine = Machine(NOISES["laptop"], seed=3)
    model = check_model(machine.measure_all(lambda b: 3.0 * b, [4, 8, 16, 32, 64]))
    assert all(estimate.value > 0 for estimate in model.predict_many(range(1, 257)))


@pytest.mark.parametrize("name", sorted(CURVES))
def test_time_grows_with_the_batch_size(name: str) -> None:
    """No noise makes a larger batch be predicted faster by more than the noise."""
    for seed in range(5):
        samples = Machine(NOISES["laptop"], seed).measure_all(CURVES[name], [4, 8, 16, 32, 64])
        values = check_model(samples).values(range(1, 257))
        assert (values[1:] > 0.97 * values[:-1]).all()


def test_the_curve_is_told_in_words() -> None:
    """What was fitted can be shown as a sentence."""
    check_in_words(CURVES["line"], [2, 8, 32, 64], "20 ms and 3 ms a sample")
    check_in_words(CURVES["steps of 16"], [8, 23, 32, 41, 64, 128], "20 ms and 48 ms for each 16 samples begun")
    model = check_model(exact(lambda b: max(40.0, 1.25 * b), [1, 4, 16, 48, 64, 128]))
    assert re.fullmatch(r"40(\.\d)? ms up to batch size 3\d, then 1\.\d\d ms more for each sample", model.in_words)


# -- bad samples -------------------------------------------------------------------------------------------------------


def test_one_accident_does_not_bend_the_curve() -> None:
    """A sample taken while the machine did something else is not used, and the user is told which."""
    samples = exact(CURVES["line"], [4, 8, 16, 32, 64])
    samples[2] = sample(16, 2.5 * CURVES["line"](16))
    model, problems = fit_run_time(samples)
    assert model is not None
    assert model.accidents == (16,)
    assert model.predict(128).value == pytest.approx(CURVES["line"](128), rel=0.05)
    assert model.predict(16).value == pytest.approx(CURVES["line"](16), rel=0.05)
    assert any("16" in problem and "not used" in problem for problem in problems)


def test_the_largest_size_is_never_taken_for_an_accident() -> None:
    """At an end of the samples an accident can't be told from a turn of the curve: the interval widens instead."""
    samples = exact(CURVES["line"], [4, 8, 16, 32, 64])
    samples[-1] = sample(64, 2 * CURVES["line"](64))
    model = check_model(samples)
    assert model.accidents == ()
    clean = check_model(exact(CURVES["line"], [4, 8, 16, 32, 64])).predict(128)
    doubtful = model.predict(128)
    assert doubtful.high / doubtful.low > 1.5 * clean.high / clean.low


def test_a_noisy_sample_counts_less() -> None:
    """Of two samples of one size, the one with quiet iterations decides."""
    quiet = [sample(size, 20.0 + 3 * size, spread_ms=0.2) for size in (4, 8, 32, 64)]
    noisy = sample(64, 260.0, spread_ms=150.0)
    assert check_model([*quiet, noisy]).predict(64).value == pytest.approx(212, rel=0.02)


def test_more_noise_makes_wider_intervals() -> None:
    """The interval's width follows the machine's noise."""
    widths = []
    for noise in ("accelerator", "laptop", "busy"):
        model = check_model(Machine(NOISES[noise], seed=1).measure_all(CURVES["line"], [4, 8, 16, 32, 64]))
        estimate = model.predict(48)
        widths.append(estimate.high / estimate.low)
    assert widths == sorted(widths)
    assert widths[0] < 1.1


def test_intervals_widen_away_from_the_samples() -> None:
    """The further beyond the largest sample, the less is promised."""
    model = check_model(exact(CURVES["line"], [4, 8, 16, 32, 64]))
    widths = [estimate.high / estimate.low for estimate in model.predict_many([48, 128, 256, 512])]
    assert widths == sorted(widths)


def test_a_noisy_machine_is_called_so() -> None:
    """Where sizes can't be predicted from each other, the user is told by how much."""
    times = {4: 40.0, 8: 30.0, 16: 160.0, 32: 110.0, 64: 500.0}
    _, problems = fit_run_time([sample(size, time, spread_ms=20) for size, time in times.items()])
    assert any("missed by" in problem for problem in problems)


def test_each_size_is_checked_against_the_others() -> None:
    """Leaving one out gives an error for each size, small where the curve is clean."""
    model = check_model(exact(CURVES["line"], [4, 8, 16, 32, 64]))
    assert [one.batch_size for one in model.leave_one_out] == [4, 8, 16, 32, 64]
    assert model.median_error is not None
    assert model.median_error < 0.01


# -- few samples -------------------------------------------------------------------------------------------------------


def test_nothing_follows_from_nothing() -> None:
    """Without samples there is no model, and the reason says so."""
    check_refused([], "nothing has been measured")


def test_one_size_says_nothing_of_others() -> None:
    """One size, however often measured, is no curve."""
    check_refused([sample(8, 20.0), sample(8, 21.0)], "only batch size 8")


def test_two_sizes_make_a_line_that_promises_little() -> None:
    """Two sizes give a line whose interval widens fast, and the user is told."""
    two, problems = fit_run_time(exact(CURVES["line"], [8, 32]))
    assert two is not None
    assert any("straight line is assumed" in problem for problem in problems)
    five = check_model(exact(CURVES["line"], [4, 8, 16, 23, 32]))
    near, far = two.predict_many([16, 128])
    assert near.value == pytest.approx(CURVES["line"](16), rel=0.02)
    assert far.high / far.low > 1.4
    assert far.high / far.low > five.predict(128).high / five.predict(128).low


def test_sizes_close_together_are_mistrusted() -> None:
    """Three sizes within a factor of two carry no prediction far away; the user is told."""
    model, problems = fit_run_time(exact(CURVES["line"], [12, 16, 24]))
    assert model is not None
    assert any("close together" in problem for problem in problems)


# -- slopes that are none ----------------------------------------------------------------------------------------------


def test_constant_time_is_known_between_the_samples_only() -> None:
    """Something other than the batch takes the time; where that ends is unknown, so nothing is said beyond."""
    samples = [sample(size, 20.0 + wobble, spread_ms=0.3) for size, wobble in ((1, 0.1), (2, -0.2), (4, 0.2), (16, 0))]
    model, problems = fit_run_time(samples)
    assert model is not None
    assert model.flat
    assert model.supports(8)
    assert not model.supports(32)
    assert model.predict(8).value == pytest.approx(20, rel=0.02)
    assert len(problems) == 1
    assert "Larger batch sizes have to be measured" in problems[0]


def test_falling_time_is_refused() -> None:
    """A larger batch can't be faster: no line is drawn through such samples."""
    check_refused([sample(1, 20.0), sample(2, 15.0), sample(8, 10.0), sample(16, 8.0)], "does not grow")


def test_two_falling_samples_are_refused() -> None:
    """Nor through two of them."""
    check_refused([sample(8, 20.0), sample(16, 18.0)], "does not grow")


# -- data --------------------------------------------------------------------------------------------------------------


def test_a_model_survives_json() -> None:
    """A model kept in a file predicts the same."""
    model = check_model(Machine(NOISES["laptop"], seed=2).measure_all(CURVES["floor"], [2, 8, 23, 32, 64, 128]))
    again = from_json(RunTimeModel, json.loads(json.dumps(to_json(model))))
    assert again == model
    assert again.predict(100) == model.predict(100)


def test_the_order_of_samples_does_not_matter() -> None:
    """The same samples make the same model."""
    samples = Machine(NOISES["laptop"], seed=4).measure_all(CURVES["bend"], [2, 8, 16, 32, 64])
    assert fit_run_time(samples) == fit_run_time(samples[::-1])
