"""A number with its 90 % interval, and the quantiles that such intervals are made of."""

import math
from dataclasses import dataclass

import numpy as np

# One-sided 95 % quantiles of Student's t, NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
_DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 60, 120, math.inf)
_QUANTILES = (
    *(6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812),
    *(1.782, 1.753, 1.725, 1.697, 1.671, 1.658, 1.645),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number that is not known exactly."""

    value: float
    low: float
    """Lower end of the 90 % interval."""
    high: float
    """Upper end of the 90 % interval."""


def t_quantile(degrees_of_freedom: float) -> float:
    """Half width, in standard errors, of a 90 % interval; degrees of freedom of 1 or more, whole or not.

    Between the rows of the table it is linear in 1 / degrees of freedom, which is within 0.01 of the true value from 2
    degrees of freedom on.
    """
    inverse = [1.0 / degrees for degrees in reversed(_DEGREES)]
    return float(np.interp(1.0 / max(1.0, degrees_of_freedom), inverse, tuple(reversed(_QUANTILES))))


def within_factor(value: float, log_half_width: float) -> Estimate:
    """`value` with an interval as wide in ratio above as below: times and rates can't be negative."""
    factor = math.exp(log_half_width)
    return Estimate(value=value, low=value / factor, high=value * factor)
