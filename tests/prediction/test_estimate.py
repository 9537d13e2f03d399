"""The distributions that intervals are made of."""

import numpy as np
import pytest

from skyline_lsp.prediction.estimate import Mixture, student_cdf, student_quantile, within_factor


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 6.314), (2, 2.920), (3, 2.353), (4, 2.132), (5, 2.015), (9, 1.833), (10, 1.812), (30, 1.697), (60, 1.671)],
)
def test_quantiles_are_those_of_the_published_table(degrees: int, expected: float) -> None:
    """NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, one-sided 95 %."""
    assert student_quantile(0.95, degrees) == pytest.approx(expected, abs=6e-4)
    assert student_quantile(0.05, degrees) == pytest.approx(-expected, abs=6e-4)


@pytest.mark.parametrize("degrees", [1, 2, 5, 8])
def test_the_distribution_rises_from_0_to_1(degrees: int) -> None:
    """It is a distribution: rising, half at the middle, symmetric."""
    t = np.linspace(-50, 50, 201)
    below = student_cdf(t, degrees)
    assert np.all(np.diff(below) > 0)
    assert below[100] == 0.5
    assert np.allclose(below + below[::-1], 1)


def test_a_mixture_of_one_is_that_one() -> None:
    """One distribution keeps its own quantiles."""
    mixture = Mixture(weights=np.ones(1), centres=np.array([[2.0]]), scales=np.array([[0.5]]), degrees_of_freedom=(5,))
    low, middle, high = mixture.quantiles((0.05, 0.5, 0.95))[:, 0]
    assert middle == pytest.approx(2.0)
    assert (high - 2) / 0.5 == pytest.approx(2.015, abs=1e-3)
    assert (2 - low) / 0.5 == pytest.approx(2.015, abs=1e-3)


def test_a_mixture_reaches_over_all_its_parts() -> None:
    """Where two explanations disagree, the interval holds both, and the value follows the likelier."""
    mixture = Mixture(
        weights=np.array([0.7, 0.3]),
        centres=np.array([[0.0], [10.0]]),
        scales=np.array([[0.1], [0.1]]),
        degrees_of_freedom=(4, 7),
    )
    low, middle, high = mixture.quantiles((0.05, 0.5, 0.95))[:, 0]
    assert -0.5 < low < 0 < middle < 0.2
    assert 9.5 < high < 10.5


def test_an_interval_by_ratio_is_never_negative() -> None:
    """Times stay positive, however little is known."""
    estimate = within_factor(10.0, 5.0)
    assert 0 < estimate.low < 10 < estimate.high
    assert estimate.high / 10 == pytest.approx(10 / estimate.low)
