"""Advice that depends on what the device was measured to do."""

from collections import Counter
from collections.abc import Iterator, Sequence

from skyline_lsp.features.advice.advice import WORTH_PERCENT, Advice, AdviceCode, Case
from skyline_lsp.features.units import count, format_flop, format_flop_rate, format_ms, format_percent
from skyline_lsp.prediction.roofline import Bound, line_roofline
from skyline_lsp.protocol import LayoutTrial, Product

HALF = ("bfloat16", "float16")
LEAST_SPEEDUP = 1.5
"""Of half precision's peak over single precision's: below, conversions eat up what is won."""
PROCESSOR_SPEEDUP = 2.5
"""On a CPU, whose peaks are less certain: one with units for bfloat16 gains more, one without them nothing."""
LEAST_PERCENT = 5.0
LAYOUT_SPEEDUP = 1.2
"""Of the convolutions that were tried: what is not tried, such as pooling, may lose a little."""
ROUNDS_WON = 0.9
"""Share of the rounds in which one layout was the quicker, if that is to be more than chance."""
MATRIX_MULTIPLE = 8
"""Elements of 16 bits: rows of 16 bytes, as NVIDIA's guide to the performance of matrix products asks for."""
LEAST_SIZE = 64
"""Smaller matrices have other troubles than odd sizes."""
GOOD_UTILISATION = 0.5


def mixed_precision(case: Case) -> Iterator[Advice]:
    """The program computes in single precision on a device that does half precision much more quickly."""
    peaks, place = case.profile.peaks, case.model_line
    if peaks is None or place is None:
        return
    single = peaks.flop_per_second.get("float32", 0.0)
    types = HALF if case.accelerated else HALF[:1]
    half = max(types, key=lambda name: peaks.flop_per_second.get(name, 0.0))
    quick = peaks.flop_per_second.get(half, 0.0)
    if single <= 0 or quick < single * (LEAST_SPEEDUP if case.accelerated else PROCESSOR_SPEEDUP):
        return
    by_type: Counter[str] = Counter()
    for node in case.profile.tree:
        by_type[node.flop_type or ""] += node.self_flop
    # Where a tenth is in half precision, mixed precision is on already.
    if by_type["float32"] < 0.9 * by_type.total():
        return
    bound_ms = sum(
        roofline.run_time_ms
        for cost in case.profile.lines
        if cost.flop_type == "float32"
        and (roofline := line_roofline(cost, peaks)) is not None
        and roofline.bound is Bound.COMPUTE
    )
    saved_ms = bound_ms * (1 - single / quick)
    if case.percent(saved_ms) < LEAST_PERCENT:
        return
    yield Advice(
        code=AdviceCode.MIXED_PRECISION,
        path=place[0],
        line=place[1],
        message=(
            f"The step computes {format_flop(by_type['float32'])} in float32. This device was measured to do "
            f"{format_flop_rate(single)} of it, and {format_flop_rate(quick)} of {half}. Under `torch.autocast` the "
            f"lines that are compute-bound ({format_ms(bound_ms)}) may take up to {case.share(saved_ms)} less. That is "
            "a bound by these peaks and no promise, and results are rounded otherwise."
        ),
        autocast=half,
        worth_percent=case.percent(saved_ms),
    )


def channels_last(case: Case) -> Iterator[Advice]:
    """The costliest convolutions are quicker with the channels last, as tried on this device."""
    trials, place = case.profile.layout_trials, case.model_line
    # On a CPU the layers between the convolutions decide, and no trial of convolutions tells of them.
    if (
        not case.accelerated
        or not trials
        or place is None
        or any(trial.rounds_won < ROUNDS_WON * trial.rounds for trial in trials)
    ):
        return
    before_ms = sum(trial.count * trial.contiguous_ms for trial in trials)
    after_ms = sum(trial.count * trial.channels_last_ms for trial in trials)
    saved_ms = before_ms - after_ms
    if after_ms <= 0 or before_ms < LAYOUT_SPEEDUP * after_ms or case.percent(saved_ms) < WORTH_PERCENT:
        return
    # Tried alone they may take longer than in the iteration: then the trial is not to be trusted.
    convolutions = sum(case.self_ms(*key) for key in case.products if _has_convolution(case.products[key]))
    if before_ms > 1.5 * convolutions:
        return
    first = trials[0]
    more = f" and {count(len(trials) - 1, 'other')}" if len(trials) > 1 else ""
    yield Advice(
        code=AdviceCode.CHANNELS_LAST,
        path=place[0],
        line=place[1],
        message=(
            f"Tried by themselves on this device, the costliest convolution ({_shown(first)}){more} took "
            f"{format_ms(after_ms)} an iteration with the channels last and {format_ms(before_ms)} as they are: up to "
            f"{case.share(saved_ms)}. `model.to(memory_format=torch.channels_last)`, and the same for its input, makes "
            "that the layout."
        ),
        worth_percent=case.percent(saved_ms),
    )


def matrix_sizes(case: Case) -> Iterator[Advice]:
    """Products in half precision whose sizes the device's matrix units don't like."""
    peaks = case.profile.peaks
    if case.profile.device.kind != "cuda" or peaks is None:
        return
    for (path, line), products in case.products.items():
        cost = case.lines.get((path, line))
        roofline = line_roofline(cost, peaks) if cost is not None else None
        if roofline is None or roofline.utilisation is None or roofline.utilisation >= GOOD_UTILISATION:
            continue
        if case.percent(roofline.run_time_ms) < LEAST_PERCENT:
            continue
        weighty = [product for product in products if product.dtype in HALF and _weight_sizes(product)]
        if not weighty:
            continue
        largest = max(weighty, key=lambda product: product.flop)
        odd = sorted({size for size in _weight_sizes(largest) if size % MATRIX_MULTIPLE})
        if not odd or min(_weight_sizes(largest)) < LEAST_SIZE:
            continue
        better = ", ".join(f"{size} to {-(-size // MATRIX_MULTIPLE) * MATRIX_MULTIPLE}" for size in odd)
        yield Advice(
            code=AdviceCode.MATRIX_SIZES,
            path=path,
            line=line,
            message=(
                f"This line reaches {format_percent(100 * roofline.utilisation)} of what the device does of "
                f"{largest.dtype} at best, and takes {case.share(roofline.run_time_ms)}. Its matrix units want sizes "
                f"that are multiples of {MATRIX_MULTIPLE}: round {better}."
            ),
            worth_percent=case.percent(roofline.run_time_ms * (1 - roofline.utilisation)),
        )


def synchronization(case: Case) -> Iterator[Advice]:
    """The host waits for values from the device within the iteration."""
    if not case.accelerated:
        return
    for (path, line), nodes in case.nodes.items():
        reads = sum(node.self_host_reads for node in nodes)
        host_ms = sum(node.self_host_ms for node in nodes if node.self_host_reads)
        # What the host spent was traced, and the tracer slows it.
        host_ms /= max(1.0, case.profile.slowdown)
        if not reads or case.percent(host_ms) < WORTH_PERCENT:
            continue
        times = "once" if reads == 1 else f"{reads} times"
        yield Advice(
            code=AdviceCode.SYNCHRONIZATION,
            path=path,
            line=line,
            message=(
                f"Here the host reads a value from the device {times} an iteration, and waits until it is there: it "
                f"spends {format_ms(host_ms)} on this line, {case.share(host_ms)}, in which it prepares no further "
                "work for the device. Read it less often, or keep it on the device."
            ),
            worth_percent=case.percent(host_ms),
        )


def _has_convolution(products: Sequence[Product]) -> bool:
    return any(product.operation.startswith("convolution") for product in products)


def _shown(trial: LayoutTrial) -> str:
    kernel = " x ".join(map(str, trial.weight_shape[2:]))
    return f"{kernel}, {trial.input_shape[1]} to {trial.weight_shape[0]} channels, {trial.dtype}"


def _weight_sizes(product: Product) -> tuple[int, ...]:
    """The sizes that the model decides: those of a product's weight; none where it has none."""
    if product.operation == "addmm" and len(product.shapes) == 3:
        return product.shapes[2]
    if product.operation == "convolution" and len(product.shapes) > 1:
        return product.shapes[1][:2]
    return product.shapes[1] if product.operation == "mm" else ()
