"""A number with its 90 % interval, and the distributions that such intervals are made of. Depends on numpy only."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_HALVINGS = 30

Array = npt.NDArray[np.float64]

LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95
"""The quantiles of an estimate: a value, and a 90 % interval around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number that is not known exactly."""

    value: float
    low: float
    """Lower end of the 90 % interval."""
    high: float
    """Upper end of the 90 % interval."""


def student_cdf(t: Array, degrees_of_freedom: int) -> Array:
    """Probability that Student's t is below `t`.

    Finite series in the angle atan(t / sqrt(degrees of freedom)): Abramowitz and Stegun, Handbook of Mathematical
    Functions, 26.7.3 (odd degrees of freedom) and 26.7.4 (even).
    """
    angle = np.arctan(t / math.sqrt(degrees_of_freedom))
    sine, cosine = np.sin(angle), np.cos(angle)
    odd = degrees_of_freedom % 2
    term = cosine if odd else np.ones_like(angle)
    total = np.zeros_like(angle)
    for power in range(odd, degrees_of_freedom - 1, 2):
        total = total + term
        term = term * cosine**2 * (power + 1) / (power + 2)
    within = (angle + sine * total) * 2 / math.pi if odd else sine * total
    result: Array = 0.5 + 0.5 * within
    return result


@functools.cache
def student_quantile(probability: float, degrees_of_freedom: int) -> float:
    """The t below which Student's t is with this probability."""
    low, high = -1e3, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        if float(student_cdf(np.array(middle), degrees_of_freedom)) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Student's t distributions, weighted, at each of several points. Arrays are (distributions, points)."""

    weights: Array
    """One for each distribution; they sum to 1."""
    centres: Array
    scales: Array
    degrees_of_freedom: tuple[int, ...]

    def quantiles(self, probabilities: tuple[float, ...]) -> Array:
        """The values below which the mixture is with these probabilities: an array of (probabilities, points)."""
        own = np.array(
            [[student_quantile(one, degrees) for degrees in self.degrees_of_freedom] for one in probabilities]
        )
        # The mixture's quantile is between those of its parts.
        reach = self.centres + own[:, :, None] * self.scales
        low, high = reach.min(axis=1), reach.max(axis=1)
        if len(self.weights) > 1:
            wanted = np.array(probabilities)[:, None]
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                below = self._cdf(middle) < wanted
                low, high = np.where(below, middle, low), np.where(below, high, middle)
        result: Array = (low + high) / 2
        return result

    def _cdf(self, values: Array) -> Array:
        standard = (values[:, None] - self.centres) / self.scales
        total: Array = np.zeros_like(values)
        for degrees in set(self.degrees_of_freedom):
            rows = [index for index, own in enumerate(self.degrees_of_freedom) if own == degrees]
            total = total + np.einsum("c,qcp->qp", self.weights[rows], student_cdf(standard[:, rows], degrees))
        return total


def within_factor(value: float, log_half_width: float) -> Estimate:
    """`value` with an interval as wide in ratio above as below: times and rates can't be negative."""
    factor = math.exp(log_half_width)
    return Estimate(value=value, low=value / factor, high=value * factor)
