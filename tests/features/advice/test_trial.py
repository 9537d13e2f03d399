"""What is told of advice that was measured."""

import pytest

from skyline_lsp.features.advice import precision_sentence
from skyline_lsp.protocol import Sample


def sample(run_time_ms: float, peak_mib: int, spread_ms: float = 2.0) -> Sample:
    return Sample(
        batch_size=16, run_time_ms=run_time_ms, spread_ms=spread_ms, iterations=9, peak_bytes=peak_mib * 2**20
    )


def test_both_are_told_with_their_spread() -> None:
    """Times, spreads and peaks of both runs are told, and what the trial does not show."""
    assert precision_sentence("bfloat16", sample(71, 1200), sample(48, 800)) == (
        "Under bfloat16 autocast an iteration of batch size 16 takes 48 ms (+-1), as it is 71 ms (+-1): 1.48 times as "
        "quick. Its peak is 800 MiB instead of 1.2 GiB. Whether it trains as well was not tried."
    )


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (50, 100, "2.00 times as slow"),
        (50, 51, "a difference of 1.0 ms, within the noise"),
        (50, 45, "1.11 times as quick"),
    ],
)
def test_what_it_means(before: float, after: float, verdict: str) -> None:
    """Quicker, slower, or no more than the same program differs by from run to run."""
    assert f": {verdict}." in precision_sentence("bfloat16", sample(before, 1), sample(after, 1))
