"""Iteration time against batch size: a model fitted to measured medians, with prediction intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skyline_lsp.prediction.estimate import Estimate, t_quantile, within_factor
from skyline_lsp.protocol import Sample

_PRIOR_DEGREES = 3.0
_PRIOR_NOISE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeModel:
    """Milliseconds of an iteration as a function of the batch size."""

    slope_ms: float
    intercept_ms: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    noise: float
    degrees_of_freedom: float

    def predict(self, batch_size: int) -> Estimate:
        """Time at a batch size, in ms."""
        row = np.array([1.0, batch_size])
        value = self.intercept_ms + self.slope_ms * batch_size
        variance = float(row @ np.array(self.covariance) @ row) / value**2 + self.noise**2
        return within_factor(value, t_quantile(self.degrees_of_freedom) * variance**0.5)


def fit_run_time(samples: Sequence[Sample]) -> tuple[RunTimeModel | None, tuple[str, ...]]:
    """Fit by least squares weighted with 1 / y²; None, with the reasons, where the samples can't carry a line."""
    sizes = np.array([sample.batch_size for sample in samples], float)
    times = np.array([sample.run_time_ms for sample in samples])
    if len(set(sizes)) < 2:
        measured = f"only batch size {samples[0].batch_size} has been measured" if samples else "nothing is measured"
        return None, (f"Other batch sizes can't be predicted: {measured}.",)
    rows = np.stack([1.0 / times, sizes / times], axis=1)
    coefficients, *_ = np.linalg.lstsq(rows, np.ones(len(times)), rcond=None)
    intercept, slope = map(float, coefficients)
    if slope <= 0 or intercept + slope * sizes.min() <= 0:
        return None, ("Other batch sizes can't be predicted: time does not grow with the batch size.",)
    residuals = 1.0 - rows @ coefficients
    degrees = _PRIOR_DEGREES + len(times) - 2
    variance = (_PRIOR_DEGREES * _PRIOR_NOISE**2 + float(residuals @ residuals)) / degrees
    covariance = np.linalg.inv(rows.T @ rows) * variance
    return RunTimeModel(
        slope_ms=slope,
        intercept_ms=intercept,
        covariance=tuple(tuple(map(float, row)) for row in covariance),  # type: ignore[arg-type]
        noise=variance**0.5,
        degrees_of_freedom=degrees,
    ), ()
