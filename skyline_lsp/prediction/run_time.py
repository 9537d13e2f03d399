"""Iteration time against batch size: several shapes of curve fitted to measured medians, weighed by their evidence.

Each shape is linear in its coefficients once its knot is given, and is fitted by least squares on the logarithms of the
medians: residuals count relative to the time (weights 1 / time²) and to each sample's own noise. Which shape holds is
rarely certain from five samples, so a prediction is the mixture of all that the samples support, weighted by the
Bayesian information criterion (Schwarz 1978) under a prior that favours the line. The interval thus widens where the
shapes disagree. One sample that fits nothing may be an accident: every shape is also tried without each inner sample.

Depends on numpy and the protocol's `Sample`.
"""

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from skyline_lsp.prediction.estimate import HIGH, LOW, MIDDLE, Array, Estimate, Mixture
from skyline_lsp.protocol import Sample

# What is assumed before residuals are seen. The coverage tests check that it makes intervals that hold.
BASE_ERROR = 0.01
"""Relative error of a median that its own spread does not show, on a quiet machine."""
DRIFT = 1.0
"""Further error between runs, as a part of the interquartile range within them. Runs made one after the other share it,
so residuals show only some of it."""
PRIOR_DEGREES = 4
"""How many samples' worth of trust these two have against the residuals."""
EXTRAPOLATION_ERROR = 0.025
"""Relative error that each doubling beyond the samples adds: curves bend where nobody has looked."""
EXTRAPOLATION_ERROR_OF_FEW = {2: 0.08, 3: 0.05, 4: 0.035}
"""The same where so few sizes were measured: too few to show that the curve bends."""
OUTLIER_CHANCE = 0.03
"""Chance that a sample is an accident: a median that says nothing about the program."""

_MOST_COMPONENTS = 12
_LEAST_WEIGHT = 0.005
_EXPONENTS = np.array([0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.2, 1.3])
_REFINEMENTS = 4
_LEAST_DETERMINANT = 1e-10
_ALL = -1
_LEAST_SIZES_WITHOUT_ONE = 4
# Time that grows less than this over all samples doesn't tell how it goes on; it is called constant where the samples
# span enough and are quiet enough to say so.
_LEAST_GROWTH = 0.1
_FLAT_SPAN = 4.0
_FLAT_NOISE = 0.15
_LARGE_ERROR = 0.1
"""Median error of leaving one out from which the user is told."""


class Shape(enum.Enum):
    """A form of the curve of time t against batch size b, with its knot k."""

    LINE = "line"
    """t = c + s·b"""
    PROPORTIONAL = "proportional"
    """t = s·b"""
    FLAT = "flat"
    """t = c"""
    FLOOR = "floor"
    """t = c + s·max(0, b - k): below k something else than the batch takes the time, such as the host."""
    BEND = "bend"
    """t = c + s·b + d·max(0, b - k): from k on, a sample costs more, or less."""
    POWER = "power"
    """t = c + s·b^k: a sample costs ever less as the device fills up, or ever more as caches overflow."""
    STEPS = "steps"
    """t = c + s·k·ceil(b / k): the device works in blocks of k samples."""


_PRIOR = {
    Shape.LINE: 0.4,
    Shape.PROPORTIONAL: 0.05,
    Shape.FLAT: 0.05,
    Shape.FLOOR: 0.2,
    Shape.BEND: 0.07,
    Shape.POWER: 0.2,
    Shape.STEPS: 0.03,
}
_LEAST_SIZES = {
    Shape.LINE: 2,
    Shape.PROPORTIONAL: 2,
    Shape.FLAT: 2,
    Shape.FLOOR: 4,
    Shape.BEND: 6,
    Shape.POWER: 4,
    Shape.STEPS: 4,
}
"""How many different batch sizes a shape needs: one more than it has parameters, its knot included. Shapes of one or
two parameters are there from two sizes on, with an interval from the prior; a bend needs one more, since one sample
that is off, at the upper end, looks like one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One fitted shape."""

    shape: Shape
    knot: float
    """k of the shape's formula; 0 for shapes without."""
    coefficients: tuple[float, ...]
    """In ms and ms per sample, in the order of the shape's formula."""
    covariance: tuple[tuple[float, ...], ...]
    """Of the coefficients."""
    noise: float
    """Standard error of a measured median, relative."""
    degrees_of_freedom: int
    weight: float
    """Of the shape's prediction in the mixture; they sum to 1."""
    left_out: int | None = None
    """Batch size of the sample that it takes for an accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A measured batch size, predicted from the others."""

    batch_size: int
    run_time_ms: float
    """As measured."""
    predicted: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeModel:
    """Milliseconds of an iteration as a function of the batch size."""

    components: tuple[Component, ...]
    """The heaviest first."""
    smallest: int
    """Smallest batch size it is fitted to."""
    largest: int
    sizes: int
    """How many different batch sizes it is fitted to."""
    flat: bool = False
    """Time did not grow with the batch size, so nothing is known outside `smallest` to `largest`."""
    leave_one_out: tuple[HeldOut, ...] = ()
    """How well each size is predicted from the others, where there are enough."""

    @property
    def accidents(self) -> tuple[int, ...]:
        """Batch sizes whose measured time is more likely an accident than not."""
        blamed: dict[int, float] = {}
        for component in self.components:
            if component.left_out is not None:
                blamed[component.left_out] = blamed.get(component.left_out, 0.0) + component.weight
        return tuple(sorted(size for size, weight in blamed.items() if weight > 0.5))

    @property
    def median_error(self) -> float | None:
        """By how much, relative, the sizes are missed when each is predicted from the others."""
        errors = [abs(one.predicted.value / one.run_time_ms - 1) for one in self.leave_one_out]
        return float(np.median(errors)) if errors else None

    @property
    def in_words(self) -> str:
        """The likeliest shape, for the user: "20 ms and 3 ms a sample"."""
        return _in_words(self.components[0])

    def supports(self, batch_size: int) -> bool:
        """Whether a prediction can be made."""
        return not self.flat or self.smallest <= batch_size <= self.largest

    def predict(self, batch_size: int) -> Estimate:
        """Time of a measurement at a batch size, in ms."""
        return self.predict_many([batch_size])[0]

    def predict_many(self, batch_sizes: Sequence[int]) -> tuple[Estimate, ...]:
        """Times of measurements at batch sizes, in ms."""
        quantiles = np.exp(self._mixture(np.array(batch_sizes, float)).quantiles((LOW, MIDDLE, HIGH)))
        return tuple(Estimate(value=float(value), low=float(low), high=float(high)) for low, value, high in quantiles.T)

    def values(self, batch_sizes: Sequence[int]) -> Array:
        """The values alone that `predict_many` gives, for many more batch sizes."""
        result: Array = np.exp(self._mixture(np.array(batch_sizes, float)).quantiles((MIDDLE,))[0])
        return result

    def _mixture(self, sizes: Array) -> Mixture:
        beyond = np.log2(np.maximum(1.0, np.maximum(sizes / self.largest, self.smallest / sizes)))
        bending = EXTRAPOLATION_ERROR_OF_FEW.get(self.sizes, EXTRAPOLATION_ERROR) * beyond
        centres, scales = [], []
        for component in self.components:
            columns = _columns(component.shape, sizes, np.full(1, component.knot))[0]
            values = np.maximum(columns @ np.array(component.coefficients), 1e-9)
            variance = np.einsum("ij,jk,ik->i", columns, np.array(component.covariance), columns) / values**2
            centres.append(np.log(values))
            scales.append(np.sqrt(variance + component.noise**2 + bending**2))
        return Mixture(
            weights=np.array([component.weight for component in self.components]),
            centres=np.array(centres),
            scales=np.array(scales),
            degrees_of_freedom=tuple(component.degrees_of_freedom for component in self.components),
        )


def fit_run_time(samples: Sequence[Sample], check: bool = True) -> tuple[RunTimeModel | None, tuple[str, ...]]:
    """Fit the shapes that the samples support; with `check`, leave out each size in turn.

    None where nothing can be said of sizes that were not measured. The sentences say why, or what to mistrust.
    """
    samples = [sample for sample in samples if sample.run_time_ms > 0]
    sizes = sorted({sample.batch_size for sample in samples})
    if len(sizes) < 2:
        known = f"only batch size {sizes[0]} has been measured" if sizes else "nothing has been measured"
        return None, (f"Time at other batch sizes can't be predicted: {known}.",)
    components = _fit(samples)
    model = RunTimeModel(components=components, smallest=sizes[0], largest=sizes[-1], sizes=len(sizes))
    if not components or not _grows(model):
        return _where_flat(model)
    if check:
        used = [sample for sample in samples if sample.batch_size not in model.accidents]
        model = replace(model, leave_one_out=tuple(_held_out(used)))
    return model, tuple(_doubts(model, sizes))


def _in_words(component: Component) -> str:
    first, *others = (f"{coefficient:.3g} ms" for coefficient in component.coefficients)
    match component.shape:
        case Shape.LINE:
            return f"{first} and {others[0]} a sample"
        case Shape.PROPORTIONAL:
            return f"{first} a sample"
        case Shape.FLAT:
            return f"{first} whatever the batch size"
        case Shape.FLOOR:
            return f"{first} up to batch size {component.knot:.0f}, then {others[0]} more for each sample"
        case Shape.BEND:
            later = f"{component.coefficients[1] + component.coefficients[2]:.3g} ms"
            return f"{first} and {others[0]} a sample, from batch size {component.knot:.0f} on {later} a sample"
        case Shape.POWER:
            return f"{first} and {others[0]} times the batch size to the power of {component.knot:g}"
        case Shape.STEPS:
            each = f"{component.coefficients[1] * component.knot:.3g} ms"
            return f"{first} and {each} for each {component.knot:.0f} samples begun"


def _grows(model: RunTimeModel) -> bool:
    """Whether the time tells anything of larger batch sizes.

    Where it hardly grows, something else than the batch takes it. That ends somewhere, and no sample says where.
    """
    flat = sum(component.weight for component in model.components if component.shape is Shape.FLAT)
    first, last = model.values([model.smallest, model.largest])
    return flat <= 0.5 and math.log(last / first) > max(_LEAST_GROWTH, 2 * model.components[0].noise)


def _where_flat(model: RunTimeModel) -> tuple[RunTimeModel | None, tuple[str, ...]]:
    span = f"between batch sizes {model.smallest} and {model.largest}"
    noisy = not model.components or model.components[0].noise > _FLAT_NOISE
    if noisy or model.largest < _FLAT_SPAN * model.smallest:
        return None, (
            f"Time at other batch sizes can't be predicted: it does not grow {span}. Either the machine was too busy "
            "to tell, the sizes are too close together, or what was changed does not decide how much work an "
            "iteration is.",
        )
    return replace(model, flat=True), (
        f"An iteration takes about the same time {span}: something other than the batch takes it, and where that ends "
        "is not known. Larger batch sizes have to be measured.",
    )


def noise_of(samples: Sequence[Sample]) -> Array:
    """The relative standard error that each sample's median has by assumption, before residuals are seen."""
    times = np.array([sample.run_time_ms for sample in samples])
    spreads = np.array([sample.spread_ms for sample in samples]) / times
    counts = np.array([max(1, sample.iterations) for sample in samples])
    # Of normally distributed times: the IQR is 1.349 standard deviations, and the median's error 1.2533 / sqrt(n).
    own = 1.2533 / 1.349 * spreads / np.sqrt(counts)
    result: Array = np.sqrt(own**2 + BASE_ERROR**2 + (DRIFT * float(np.median(spreads))) ** 2)
    return result


def _doubts(model: RunTimeModel, sizes: list[int]) -> Iterator[str]:
    if len(sizes) == 2:
        yield f"Only batch sizes {sizes[0]} and {sizes[1]} have been measured, so a straight line is assumed."
    elif sizes[-1] < 4 * sizes[0]:
        yield f"The measured batch sizes {sizes[0]} to {sizes[-1]} are close together, so errors grow quickly outside."
    for size in model.accidents:
        yield f"The time measured at batch size {size} fits nothing else and is not used."
    if model.median_error is not None and model.median_error > _LARGE_ERROR:
        yield (
            f"Predicted from the other sizes, measured times are missed by {model.median_error:.0%} (median): the "
            "machine is busy with something else, or time does not follow the batch size."
        )


def _held_out(samples: Sequence[Sample]) -> Iterator[HeldOut]:
    sizes = sorted({sample.batch_size for sample in samples})
    for size in sizes if len(sizes) > 2 else ():
        components = _fit([sample for sample in samples if sample.batch_size != size])
        if components:
            own = [sample.run_time_ms for sample in samples if sample.batch_size == size]
            remaining = [one for one in sizes if one != size]
            model = RunTimeModel(
                components=components, smallest=remaining[0], largest=remaining[-1], sizes=len(remaining)
            )
            yield HeldOut(batch_size=size, run_time_ms=float(np.median(own)), predicted=model.predict(size))


# -- the fit -----------------------------------------------------------------------------------------------------------


def _columns(shape: Shape, sizes: Array, knots: Array) -> Array:
    """What the coefficients are multiplied with: an array of (knots, sizes, coefficients)."""
    size, knot = np.broadcast_arrays(sizes[None, :], knots[:, None])
    one = np.ones_like(size)
    match shape:
        case Shape.LINE:
            columns = [one, size]
        case Shape.PROPORTIONAL:
            columns = [size]
        case Shape.FLAT:
            columns = [one]
        case Shape.FLOOR:
            columns = [one, np.maximum(0.0, size - knot)]
        case Shape.BEND:
            columns = [one, size, np.maximum(0.0, size - knot)]
        case Shape.POWER:
            columns = [one, size**knot]
        case Shape.STEPS:
            columns = [one, knot * np.ceil(size / knot)]
    return np.stack(columns, axis=-1)


def _knots(shape: Shape, sizes: list[int]) -> Array:
    """The knots to try with these sizes, sorted; none where the shape can't be told from the line."""
    match shape:
        case Shape.FLOOR:
            return _between(sizes[0], sizes[-2])
        case Shape.BEND:
            return _between(sizes[1], sizes[-2])
        case Shape.POWER:
            return _EXPONENTS
        case Shape.STEPS:
            blocks = [2**power for power in range(1, 10) if 2**power <= sizes[-1] / 2]
            return np.array([block for block in blocks if any(size % block for size in sizes)], float)
        case _:
            return np.zeros(1)


def _between(low: float, high: float) -> Array:
    """Four knots an octave, the ends left out."""
    count = max(1, round(4 * math.log2(high / low))) if high > low else 0
    result: Array = np.geomspace(low, high, count + 2)[1:-1] if count else np.empty(0)
    return result


def _fit(samples: Sequence[Sample]) -> tuple[Component, ...]:
    """Every shape that the samples support, without each sample in turn as well, weighted by evidence."""
    order = sorted(samples, key=lambda sample: sample.batch_size)
    data = _Data(
        sizes=np.array([float(sample.batch_size) for sample in order]),
        times=np.array([sample.run_time_ms for sample in order]),
        noise=noise_of(order),
    )
    distinct = sorted({sample.batch_size for sample in order})
    fits = []
    for shape in Shape:
        subsets = [_ALL] if len(distinct) >= _LEAST_SIZES[shape] else []
        for index, size in enumerate(data.sizes):
            alone = np.count_nonzero(data.sizes == size) == 1
            if alone and size in (distinct[0], distinct[-1]):
                # At an end, an accident can't be told from a turn of the curve.
                continue
            left = len(distinct) - alone
            if left >= max(_LEAST_SIZES_WITHOUT_ONE, _LEAST_SIZES[shape]):
                subsets.append(index)
        knots = _knots(shape, distinct)
        if subsets and len(knots):
            fits.append(_fit_shape(shape, knots, data, subsets))
    ranked = sorted(((score, fit, row) for fit in fits for row, score in fit.scores()), key=lambda one: -one[0])
    if not ranked:
        return ()
    weights = np.exp(np.array([score for score, _, _ in ranked]) - ranked[0][0])
    heavy = np.flatnonzero(weights[:_MOST_COMPONENTS] >= _LEAST_WEIGHT * weights.sum())
    return _normalised([ranked[index][1].component(ranked[index][2], float(weights[index])) for index in heavy])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """The samples as arrays, by batch size."""

    sizes: Array
    times: Array
    noise: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fits:
    """One shape fitted with many knots to many subsets: arrays with a row for each."""

    shape: Shape
    data: _Data
    knots: Array
    left_out: npt.NDArray[np.int64]
    """Index of a sample, or _ALL."""
    coefficients: Array
    covariance: Array
    scale: Array
    """Variance of the residuals, over what was assumed."""
    degrees: Array
    evidence: Array
    """Log, prior included; -inf where the fit makes no sense."""

    def scores(self) -> Iterator[tuple[int, float]]:
        """(row, log evidence) of the fits that make sense."""
        for row in np.flatnonzero(np.isfinite(self.evidence)):
            yield int(row), float(self.evidence[row])

    def component(self, row: int, weight: float) -> Component:
        """One of the fits."""
        left_out = int(self.left_out[row])
        return Component(
            shape=self.shape,
            knot=float(self.knots[row]),
            coefficients=tuple(map(float, self.coefficients[row])),
            covariance=tuple(tuple(map(float, line)) for line in self.covariance[row]),
            noise=float(np.median(self.data.noise) * math.sqrt(self.scale[row])),
            degrees_of_freedom=int(self.degrees[row]),
            weight=weight,
            left_out=None if left_out == _ALL else int(self.data.sizes[left_out]),
        )


def _fit_shape(shape: Shape, knots: Array, data: _Data, subsets: Sequence[int]) -> _Fits:
    """Fit one shape with each knot to all samples but one, for each of `subsets`."""
    knot_of = np.tile(np.arange(len(knots)), len(subsets))
    left_out = np.repeat(np.array(subsets), len(knots))
    columns = _columns(shape, data.sizes, knots)[knot_of]
    kept = (np.arange(len(data.sizes)) != left_out[:, None]).astype(float)
    weights = kept / data.noise**2
    count, width = kept.sum(axis=1), columns.shape[-1]

    curve = fitted = np.broadcast_to(data.times, kept.shape)
    for _ in range(_REFINEMENTS):
        # Gauss-Newton on log(time / fitted); the first round is least squares weighted with 1 / time².
        slopes = columns / fitted[..., None]
        weighted = slopes * weights[..., None]
        residuals = np.log(data.times / fitted) + curve / fitted
        normal = weighted.transpose(0, 2, 1) @ slopes
        target = weighted.transpose(0, 2, 1) @ residuals[..., None]
        # Scaled to a unit diagonal, the determinant tells whether the columns can be told apart.
        size = np.sqrt(np.einsum("hii->hi", normal))
        sound = np.linalg.det(normal / (size[:, :, None] * size[:, None, :])) > _LEAST_DETERMINANT
        normal[~sound] = np.eye(width)
        coefficients = np.linalg.solve(normal, target)[..., 0]
        curve = (columns @ coefficients[..., None])[..., 0]
        fitted = np.maximum(curve, 0.1 * data.times)

    squares = (weights * np.log(data.times / fitted) ** 2).sum(axis=1)
    degrees = PRIOR_DEGREES + count - width
    scale = (PRIOR_DEGREES + squares) / degrees
    prior = math.log(_PRIOR[shape] / len(knots)) + np.where(left_out == _ALL, 0.0, math.log(OUTLIER_CHANCE))
    evidence = _log_evidence(squares, count, width) - kept @ np.log(data.noise) + prior
    return _Fits(
        shape=shape,
        data=data,
        knots=knots[knot_of],
        left_out=left_out,
        coefficients=coefficients,
        covariance=np.linalg.inv(normal) * scale[:, None, None],
        scale=scale,
        degrees=degrees,
        evidence=np.where(sound & _makes_sense(shape, coefficients), evidence, -np.inf),
    )


def _log_evidence(squares: Array, count: Array, width: int) -> Array:
    """Log density of the samples under a shape, up to their own noise and what all shapes share.

    The scale of the noise is integrated out (inverse chi-squared prior of PRIOR_DEGREES around 1), the coefficients by
    Schwarz's approximation.
    """
    total = PRIOR_DEGREES + count
    gamma = np.array([math.lgamma(value / 2) for value in total])
    result: Array = (
        gamma - total / 2 * np.log1p(squares / PRIOR_DEGREES) - count / 2 * math.log(PRIOR_DEGREES * math.pi)
    )
    return result - width / 2 * np.log(count)


def _makes_sense(shape: Shape, coefficients: Array) -> npt.NDArray[np.bool_]:
    """More samples take more time, and the fixed part takes some; for each row of coefficients."""
    first, last = coefficients[:, 0], coefficients[:, -1]
    match shape:
        case Shape.PROPORTIONAL | Shape.FLAT:
            return first > 0
        case Shape.BEND:
            return (first >= 0) & (coefficients[:, 1] >= 0) & (coefficients[:, 1] + last > 0)
        case _:
            return (first >= 0) & (last > 0)


def _normalised(components: Sequence[Component]) -> tuple[Component, ...]:
    total = sum(component.weight for component in components)
    return tuple(replace(component, weight=component.weight / total) for component in components)
