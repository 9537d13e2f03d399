"""From wishes to batch sizes: the wish is fulfilled by the prediction itself, or refused with a reason."""

from hypothesis import given, settings
from hypothesis import strategies as st

from skyline_lsp.prediction import (
    Model,
    Prediction,
    Refusal,
    Retune,
    fit,
    for_memory,
    for_throughput,
    knee,
    largest_that_fits,
    predict,
)
from skyline_lsp.prediction.retuning import SUPPORTED_FACTOR, suits_device
from skyline_lsp.protocol import Sample
from tests.prediction.curves import CURVES, NOISES, Machine, recorded, sample

GIB = 2**30
MIB = 2**20
LINES = ((1 * GIB, 0), (1 * GIB, 16 * MIB), (GIB // 2, 32 * MIB))


def model_of(*batch_sizes: int, accelerator: bool = False) -> Model:
    """20 ms + 3 ms a sample; 1 GiB + 16 MiB a sample, from 32 on 0.5 GiB + 32 MiB."""
    samples = [recorded(size, LINES, run_time_ms=20.0 + 3 * size) for size in batch_sizes]
    return fit(samples, accelerator=accelerator)


def check_retuned(answer: Retune | Refusal) -> Retune:
    assert isinstance(answer, Retune), answer
    assert answer.prediction.batch_size == answer.batch_size
    assert str(answer.batch_size) in answer.reason
    return answer


def check_refused(answer: Retune | Refusal, reason: str) -> None:
    assert isinstance(answer, Refusal), answer
    assert reason in answer.reason


def predicted(model: Model, batch_size: int, memory_bytes: int | None = None) -> Prediction:
    prediction = predict(model, batch_size, memory_bytes)
    assert prediction is not None
    return prediction


# -- throughput --------------------------------------------------------------------------------------------------------


def test_the_smallest_size_that_reaches_a_throughput() -> None:
    """250 samples/s need 20 samples at 20 ms + 3 ms each: no fewer, no more."""
    retune = check_retuned(for_throughput(model_of(4, 8, 16, 32), 249))
    assert retune.batch_size == 20
    assert "reaches 249 samples/s" in retune.reason


def test_a_throughput_out_of_reach_is_refused_with_the_most() -> None:
    """The asymptote of 333 samples/s is no offer; the best that the samples support is named."""
    check_refused(for_throughput(model_of(4, 8, 16, 32), 330), "the most is 31")


def test_how_far_beyond_the_samples_is_told() -> None:
    """A suggestion that no sample is near to says so."""
    assert (
        "times the largest measured batch size, 32" in check_retuned(for_throughput(model_of(4, 8, 16, 32), 300)).reason
    )


def test_a_throughput_that_does_not_fit_is_refused() -> None:
    """A size that reaches it but is known not to fit is no answer."""
    model = model_of(4, 8, 16, 32)
    retune = check_retuned(for_throughput(model, 300))
    check_refused(
        for_throughput(model, 300, memory_bytes=1 * GIB + 700 * MIB), "No batch size that the samples support"
    )
    assert predicted(model, retune.batch_size, 1 * GIB + 700 * MIB).fits is False


# -- memory ------------------------------------------------------------------------------------------------------------


def test_the_largest_size_within_memory() -> None:
    """2 GiB hold 0.5 GiB and 47 samples of 32 MiB, and a little for the interval."""
    retune = check_retuned(for_memory(model_of(4, 8, 16, 32), 2 * GIB))
    assert 46 <= retune.batch_size <= 47
    assert retune.prediction.fits


def test_a_margin_is_left_free() -> None:
    """The largest that fits leaves the share of memory that was asked for."""
    model = model_of(4, 8, 16, 32)
    close, wide = (check_retuned(largest_that_fits(model, 3 * GIB, margin=margin)) for margin in (0.05, 0.3))
    assert wide.batch_size < close.batch_size
    assert wide.prediction.peak_bytes is not None
    assert wide.prediction.peak_bytes.high <= 0.7 * 3 * GIB


def test_too_little_memory_is_refused_with_the_reason() -> None:
    """What doesn't shrink with the batch is named."""
    check_refused(for_memory(model_of(4, 8, 16, 32), GIB // 2), "don't shrink with the batch")


def test_memory_that_is_not_the_limit_is_told() -> None:
    """Where memory would hold more than the samples support, the answer says what stopped it."""
    retune = check_retuned(largest_that_fits(model_of(4, 8, 16, 32), 1024 * GIB))
    assert retune.batch_size == 32 * SUPPORTED_FACTOR
    assert "too far from what has been measured" in retune.reason


def test_unknown_peaks_are_refused() -> None:
    """Without a measured peak nothing is known to fit."""
    model = fit([sample(size, 20.0 + 3 * size) for size in (4, 8, 16)])
    check_refused(largest_that_fits(model, 16 * GIB), "has not been measured")


def test_sizes_that_ran_out_of_memory_are_never_suggested() -> None:
    """A bound found the hard way holds for every wish."""
    samples = [recorded(size, LINES, run_time_ms=20.0 + 3 * size) for size in (4, 8, 16)]
    model = fit(samples, out_of_memory=[24])
    for answer in (knee(model, 100 * GIB), largest_that_fits(model, 100 * GIB), for_throughput(model, 200)):
        if isinstance(answer, Retune):
            assert answer.batch_size < 24


# -- the knee ----------------------------------------------------------------------------------------------------------


def test_the_knee_is_a_share_of_what_can_be_reached() -> None:
    """95 % of the best within the supported range, not of the asymptote, and the best is named."""
    model = model_of(4, 8, 16, 32)
    best = predicted(model, 32 * SUPPORTED_FACTOR).samples_per_second.value
    retune = check_retuned(knee(model))
    assert retune.prediction.samples_per_second.value >= 0.95 * best
    assert predicted(model, retune.batch_size - 1).samples_per_second.value < 0.95 * best
    assert f"{best:.4g} samples/s at 128" in retune.reason


def test_all_of_the_best_is_the_best() -> None:
    """A share of 1 asks for the most throughput."""
    assert check_retuned(knee(model_of(4, 8, 16, 32), share=1.0)).batch_size == 32 * SUPPORTED_FACTOR


def test_the_knee_of_a_flat_time_is_measured() -> None:
    """Where time doesn't grow, the largest measured size is the best that is known."""
    model = fit([sample(size, 20.0) for size in (1, 2, 4, 8, 16)])
    assert check_retuned(knee(model)).batch_size == 16


def test_a_maximum_is_kept() -> None:
    """A data set of 40 samples has no batch of 41."""
    model = model_of(4, 8, 16, 32)
    assert check_retuned(knee(model, share=1.0, maximum=40)).batch_size == 40
    assert check_retuned(for_memory(model, 100 * GIB, maximum=40)).batch_size == 40
    check_refused(for_throughput(model, 300, maximum=40), "Larger ones than 40")


def test_nothing_known_is_refused() -> None:
    """Without samples every wish is refused, with the model's reason."""
    model = fit(())
    for answer in (knee(model), for_throughput(model, 1), for_memory(model, GIB), largest_that_fits(model, GIB)):
        check_refused(answer, "nothing has been measured")


# -- multiples ---------------------------------------------------------------------------------------------------------


def test_an_accelerator_gets_its_multiples() -> None:
    """Sizes come in eights, never across the wish: up for a throughput, down for memory."""
    model = model_of(4, 8, 16, 32, accelerator=True)
    assert check_retuned(for_throughput(model, 249)).batch_size == 24
    assert check_retuned(for_memory(model, 2 * GIB)).batch_size == 40


def test_a_multiple_is_given_up_before_the_wish() -> None:
    """Where no multiple fulfils the wish, one that suits less does."""
    model = model_of(4, 8, 16, 32, accelerator=True)
    retune = check_retuned(for_throughput(model, 249, maximum=23))
    assert 20 <= retune.batch_size <= 23


@settings(deadline=None)
@given(size=st.integers(1, 100_000), accelerator=st.booleans())
def test_a_suitable_size_is_near(size: int, accelerator: bool) -> None:
    """Rounding to what suits never changes a size by more than a few per cent, small ones aside."""
    steps = next(step for step in range(size) if suits_device(size + step, accelerator))
    assert steps <= max(31 if accelerator else 0, size / 16)


# -- round trips -------------------------------------------------------------------------------------------------------


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Models of noisy measurements of all curves, with and without live bytes."""
    curve = CURVES[draw(st.sampled_from(sorted(CURVES)))]
    machine = Machine(NOISES[draw(st.sampled_from(sorted(NOISES)))], draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8, 12, 16, 23, 32, 64]), min_size=2, max_size=5, unique=True))
    lines = draw(st.lists(st.tuples(st.integers(1, GIB), st.integers(0, 64 * MIB)), min_size=1, max_size=5))
    keep = draw(st.booleans())
    samples: list[Sample] = []
    for size in sizes:
        time, memory = machine.measure(curve, size), recorded(size, lines)
        samples.append(
            Sample(
                batch_size=size,
                run_time_ms=time.run_time_ms,
                spread_ms=time.spread_ms,
                iterations=time.iterations,
                peak_bytes=memory.peak_bytes,
                live_bytes=memory.live_bytes if keep else (),
            )
        )
    return fit(samples, accelerator=draw(st.booleans()), check=False)


@settings(deadline=None)
@given(model=models(), wish=st.floats(1, 2000), memory=st.one_of(st.none(), st.integers(64 * MIB, 8 * GIB)))
def test_a_throughput_comes_true_in_the_prediction(model: Model, wish: float, memory: int | None) -> None:
    """predict(for_throughput(x)) >= x, and the size is not known not to fit."""
    answer = for_throughput(model, wish, memory)
    if isinstance(answer, Retune):
        prediction = predicted(model, answer.batch_size, memory)
        assert prediction == answer.prediction
        assert prediction.samples_per_second.value >= wish
        assert prediction.fits is not False
    else:
        assert answer.reason.endswith(".")


@settings(deadline=None)
@given(model=models(), memory=st.integers(64 * MIB, 8 * GIB))
def test_a_memory_limit_comes_true_in_the_prediction(model: Model, memory: int) -> None:
    """The whole interval of predict(for_memory(x)) is at most x, and no suitable supported size above it is."""
    answer = for_memory(model, memory)
    if isinstance(answer, Retune):
        prediction = predicted(model, answer.batch_size, memory)
        assert prediction.peak_bytes is not None
        assert prediction.peak_bytes.high <= memory
        largest = SUPPORTED_FACTOR * max(sample.batch_size for sample in model.samples)
        for size in range(answer.batch_size + 1, largest + 1):
            if suits_device(answer.batch_size, model.accelerator) and suits_device(size, model.accelerator):
                above = predict(model, size, memory)
                assert above is None or above.fits is not True
                break


@settings(deadline=None)
@given(model=models(), share=st.floats(0.5, 1.0), memory=st.one_of(st.none(), st.integers(64 * MIB, 8 * GIB)))
def test_the_knee_comes_true_in_the_prediction(model: Model, share: float, memory: int | None) -> None:
    """The knee has its share of the throughput of the best."""
    answer, best = knee(model, memory, share), knee(model, memory, 1.0)
    assert isinstance(answer, Retune) == isinstance(best, Retune)
    if isinstance(answer, Retune) and isinstance(best, Retune):
        reached = answer.prediction.samples_per_second.value
        assert reached >= share * best.prediction.samples_per_second.value * (1 - 1e-9)
        assert answer.batch_size <= best.batch_size
