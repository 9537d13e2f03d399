"""What following a piece of advice did, measured: the program as it is against the program as advised."""

from skyline_lsp.features.units import format_bytes, format_ms, format_ms_with_spread
from skyline_lsp.protocol import Sample


def precision_sentence(autocast: str, before: Sample, after: Sample) -> str:
    """What both took and what that means, for the user."""
    was, is_now = (format_ms_with_spread(one.run_time_ms, one.spread_ms) for one in (before, after))
    text = (
        f"Under {autocast} autocast an iteration of batch size {after.batch_size} takes {is_now[0]} ({is_now[1]}), as "
        f"it is {was[0]} ({was[1]}): {_verdict(before, after)}. Its peak is {format_bytes(after.peak_bytes)} instead "
        f"of {format_bytes(before.peak_bytes)}."
    )
    return f"{text} Whether it trains as well was not tried."


def _verdict(before: Sample, after: Sample) -> str:
    difference_ms = before.run_time_ms - after.run_time_ms
    # Half the interquartile ranges of both: less is what the same program differs by from run to run.
    if abs(difference_ms) <= (before.spread_ms + after.spread_ms) / 2:
        return f"a difference of {format_ms(abs(difference_ms))}, within the noise"
    quick, slow = sorted((before.run_time_ms, after.run_time_ms))
    factor = slow / quick if quick > 0 else 1.0
    return f"{factor:.2f} times as {'quick' if difference_ms > 0 else 'slow'}"
