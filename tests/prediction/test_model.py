"""What a model predicts, what it keeps to itself, and how it learns from what came true."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyline_lsp.prediction import Model, fit, hold_against, learn, predict
from skyline_lsp.protocol import Sample, from_json, to_json
from tests.prediction.curves import CURVES, NOISES, Machine, exact, recorded, sample

GIB = 2**30
LINES = ((1 * GIB, 0), (1 * GIB, GIB // 16), (GIB // 2, GIB // 8))


def measured(*batch_sizes: int) -> list[Sample]:
    """Samples of 20 ms + 3 ms a sample, of a program that needs 0.5 GiB + 0.125 GiB a sample when that is much."""
    return [recorded(size, LINES, run_time_ms=20.0 + 3 * size) for size in batch_sizes]


def test_throughput_is_samples_over_time() -> None:
    """Value and interval of the throughput are those of the time, inverted; accumulated batches count."""
    prediction = predict(fit(measured(4, 8, 16, 32), micro_batches=3), 64, None)
    assert prediction is not None
    time, rate = prediction.run_time_ms, prediction.samples_per_second
    assert rate.value == pytest.approx(1000 * 64 * 3 / time.value)
    assert rate.low == pytest.approx(1000 * 64 * 3 / time.high)
    assert rate.high == pytest.approx(1000 * 64 * 3 / time.low)
    assert time.value == pytest.approx(212, rel=0.02)


def test_a_measured_size_is_answered_as_measured() -> None:
    """Nothing is smoothed over: what was measured is shown as that."""
    samples = measured(4, 8, 32)
    samples[1] = sample(8, 46.5, peak_bytes=samples[1].peak_bytes)
    prediction = predict(fit(samples), 8, None)
    assert prediction is not None
    assert prediction.measured
    assert prediction.run_time_ms.value == 46.5
    assert prediction.run_time_ms.low < 46.5 < prediction.run_time_ms.high
    assert prediction.peak_bytes is not None
    assert prediction.peak_bytes.value == samples[1].peak_bytes


def test_one_size_answers_for_itself_only() -> None:
    """With one sample there is one answer; the reason for the others is among the problems."""
    model = fit(measured(8))
    assert predict(model, 8, None) is not None
    assert predict(model, 16, None) is None
    assert any("only batch size 8" in problem for problem in model.problems)


@pytest.mark.parametrize(
    ("batch_size", "capacity", "fits"),
    [(64, 16 * GIB, True), (64, 8 * GIB, False), (64, round(8.5 * GIB), None), (32, round(4.5 * GIB), True)],
)
def test_fits_is_said_where_it_is_certain(batch_size: int, capacity: int, fits: bool | None) -> None:
    """Yes, no, or not certain: where the interval holds the capacity. A measured peak is certain."""
    prediction = predict(fit(measured(4, 8, 16, 32)), batch_size, capacity)
    assert prediction is not None
    assert prediction.fits is fits


def test_what_ran_out_of_memory_does_not_fit() -> None:
    """Nor does anything larger, whatever the law of the peak says."""
    model = fit(measured(4, 8, 16), out_of_memory=[48, 96])
    fits = {size: prediction.fits for size in (32, 48, 64) if (prediction := predict(model, size, 100 * GIB))}
    assert fits == {32: True, 48: False, 64: False}


def test_out_of_memory_at_the_second_sample_leaves_an_answer() -> None:
    """One sample and a bound: that size is answered, no other, and none that is too large is said to fit."""
    model = fit(measured(16), out_of_memory=[32])
    assert predict(model, 32, 100 * GIB) is None
    prediction = predict(model, 16, 100 * GIB)
    assert prediction is not None
    assert prediction.fits is True


def test_an_accident_is_predicted_like_any_other_size() -> None:
    """A sample that fits nothing else is not shown as the truth about its size."""
    samples = measured(4, 8, 16, 32, 64)
    samples[2] = sample(16, 300.0, peak_bytes=samples[2].peak_bytes)
    prediction = predict(fit(samples), 16, None)
    assert prediction is not None
    assert not prediction.measured
    assert prediction.run_time_ms.value == pytest.approx(68, rel=0.05)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_a_sample(batch_size: int) -> None:
    """Sizes below 1 are a caller's mistake."""
    with pytest.raises(ValueError, match="at least 1"):
        predict(fit(measured(4, 8)), batch_size, None)


# -- learning ----------------------------------------------------------------------------------------------------------


def test_a_prediction_is_held_against_what_came_true() -> None:
    """Errors are predicted over measured, and the interval is judged."""
    model = fit(measured(4, 8, 16))
    prediction = predict(model, 64, None)
    assert prediction is not None
    right = hold_against(prediction, measured(64)[0])
    assert abs(right.run_time_error) < 0.02
    assert right.run_time_within
    assert right.peak_error == pytest.approx(0, abs=1e-3)
    assert right.peak_within
    wrong = hold_against(prediction, sample(64, 424.0, peak_bytes=16 * GIB))
    assert wrong.run_time_error == pytest.approx(-0.5, abs=0.02)
    assert not wrong.run_time_within
    assert not wrong.peak_within


def test_the_model_learns_from_the_next_sample() -> None:
    """One more sample narrows the intervals, and the law of the peak is kept without its recordings."""
    model = fit(measured(4, 8, 16))
    wiser = learn(model, measured(64)[0])
    before, after = predict(model, 128, None), predict(wiser, 128, None)
    assert before is not None
    assert after is not None
    assert after.run_time_ms.high / after.run_time_ms.low < before.run_time_ms.high / before.run_time_ms.low
    assert after.peak_bytes is not None
    assert after.peak_bytes.value == pytest.approx(16.5 * GIB)
    assert [one.batch_size for one in wiser.samples] == [4, 8, 16, 64]


def test_a_model_of_one_size_learns_the_second() -> None:
    """The first samples may come one by one, too."""
    model = learn(learn(fit(()), measured(8)[0]), measured(32)[0])
    prediction = predict(model, 16, 100 * GIB)
    assert prediction is not None
    assert prediction.run_time_ms.value == pytest.approx(68, rel=0.02)


# -- data --------------------------------------------------------------------------------------------------------------


def test_a_model_survives_json() -> None:
    """A model kept in a file predicts the same; the samples' time lines are not in it."""
    model = fit(
        [recorded(size, LINES * 1000, run_time_ms=20.0 + 3 * size) for size in (4, 8, 23, 64)],
        accelerator=True,
        micro_batches=2,
        out_of_memory=[512],
    )
    text = json.dumps(to_json(model))
    assert len(text) < 10_000
    again = from_json(Model, json.loads(text))
    assert again == model
    assert predict(again, 100, 16 * GIB) == predict(model, 100, 16 * GIB)


@settings(deadline=None)
@given(
    curve=st.sampled_from(sorted(CURVES)),
    noise=st.sampled_from(sorted(NOISES)),
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 128), max_size=6),
    asked=st.integers(1, 512),
)
def test_an_answer_or_a_reason(curve: str, noise: str, seed: int, sizes: list[int], asked: int) -> None:
    """Whatever was measured, a prediction is an interval around its value, or there is a sentence that says why not."""
    model = fit(Machine(NOISES[noise], seed).measure_all(CURVES[curve], sizes), check=False)
    prediction = predict(model, asked, 8 * GIB)
    if prediction is None:
        assert model.problems
    else:
        for estimate in (prediction.run_time_ms, prediction.samples_per_second):
            assert 0 < estimate.low <= estimate.value <= estimate.high
        assert prediction.measured == (asked in sizes) or asked in sizes
    assert all(problem.endswith(".") for problem in model.problems)


def test_repeated_samples_of_a_size_are_one_answer() -> None:
    """Measured twice, the time is the median of both, and known better."""
    once = predict(fit(exact(CURVES["line"], [4, 8, 32])), 8, None)
    twice = predict(fit([*exact(CURVES["line"], [4, 8, 32]), sample(8, 45.0, spread_ms=0)]), 8, None)
    assert once is not None
    assert twice is not None
    assert twice.run_time_ms.value == pytest.approx(44.5)
