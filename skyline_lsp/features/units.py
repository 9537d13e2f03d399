"""Numbers as people read them: two or three digits that mean something, ASCII only, the unit after a space."""

import math
from collections.abc import Callable

_TIMES = ((1000.0, "s"), (1.0, "ms"), (1e-3, "us"))
"""Milliseconds in one of each unit, the largest first."""

_THOUSANDS = ("", "k", "M", "G", "T", "P", "E")

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_ms(value_ms: float) -> str:
    """A time given in milliseconds: "85 us", "0.45 ms", "12 ms", "1.23 s"."""
    if not math.isfinite(value_ms):
        return "?"
    scale, unit = _time_unit(value_ms)
    number = value_ms / scale
    if unit == "us" and abs(number) < 0.95:
        return "0 ms" if number == 0 else "<1 us"
    return f"{significant(number, 3 if unit == 's' else 2)} {unit}"


def format_ms_with_spread(value_ms: float, interquartile_range_ms: float) -> tuple[str, str]:
    """A median, and half the range that its middle half spans, in the median's unit: ("71 ms", "+-3")."""
    scale, _ = _time_unit(value_ms)
    half = interquartile_range_ms / 2
    # A thousandth of the median is nothing that a reader could act on.
    return format_ms(value_ms), "+-0" if half < value_ms / 1000 else f"+-{significant(half / scale, 1)}"


def format_bytes(value: float) -> str:
    """A size in bytes: "512 B", "98 MiB", "1.2 GiB"."""
    if not math.isfinite(value):
        return "?"
    number = value
    for unit in _SIZES:
        # What would round up to 1024 belongs to the next unit.
        if abs(number) < 1023.5 or unit == _SIZES[-1]:
            break
        number /= 1024
    # A tenth of a GiB decides whether a batch fits, a tenth of a large number of MiB decides nothing.
    fine = 100 if unit in ("GiB", "TiB", "PiB") else 10
    text = f"{number:.1f}" if unit != "B" and abs(number) < fine - 0.05 else f"{number:.0f}"
    return f"{text.removesuffix('.0')} {unit}"


def format_percent(percent: float) -> str:
    """A share in percent: "12 %", "2.9 %", "<0.1 %"."""
    if not math.isfinite(percent):
        return "?"
    if 0 < percent < 0.05:
        return "<0.1 %"
    text = f"{percent:.1f}" if abs(percent) < 9.95 else f"{percent:.0f}"
    return f"{text.removesuffix('.0')} %"


def format_change(before: float, after: float) -> str:
    """How much more `after` is than `before`, in percent with its sign: "+82 %", "-3 %"."""
    if not (math.isfinite(before) and math.isfinite(after)) or before == 0:
        return "?"
    change = round(100 * (after / before - 1))
    return f"{change:+d} %" if change else "+-0 %"


def format_throughput(samples_per_second: float) -> str:
    """Samples per second with the unit: "225 samples/s"."""
    return f"{format_rate(samples_per_second)} samples/s"


def format_rate(per_second: float) -> str:
    """A rate without its unit: "0.45", "3.4", "225", "12345"."""
    return "<0.01" if 0 < per_second < 0.0095 else significant(per_second, 2)


def format_flop(flop: float) -> str:
    """Floating-point operations, in thousands: "512 FLOP", "1.2 GFLOP"."""
    return _decimal(flop, "FLOP")


def format_flop_rate(flop_per_second: float) -> str:
    """FLOP per second: "45 GFLOP/s"."""
    return _decimal(flop_per_second, "FLOP/s")


def format_byte_rate(bytes_per_second: float) -> str:
    """Bytes per second, in thousands as bandwidths are given: "5.8 GB/s"."""
    return _decimal(bytes_per_second, "B/s")


def format_range(low: float, high: float, shown_as: Callable[[float], str]) -> str:
    """An interval, its unit once: "132 to 149 ms"; one number where both ends read the same."""
    first, last = shown_as(low), shown_as(high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if unit == last.partition(' ')[2] else first} to {last}"


def significant(number: float, digits: int) -> str:
    """`number` rounded to `digits` significant digits, never cutting an integer's; no exponent."""
    if not math.isfinite(number):
        return "?"
    if number == 0:
        return "0"
    # Python's own exponent, since rounding may carry into a new digit: 9.96 is "10" in two digits, not "10.0".
    magnitude = int(f"{number:.{digits - 1}e}".partition("e")[2])
    decimals = max(0, digits - 1 - magnitude)
    text = f"{number:.{decimals}f}"
    return "0" if text in ("-0", "0") else text


def ascii_text(text: str) -> str:
    """`text` with what is not printable ASCII replaced, for places that must be ASCII."""
    return "".join(character if " " <= character <= "~" else "?" for character in text)


def count(number: int, noun: str) -> str:
    """A number with its noun in the right form: "1 line", "3 lines"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _decimal(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "?"
    prefix = ""
    for prefix in _THOUSANDS:
        # What would round up to 1000 belongs to the next prefix.
        if abs(value) < 999.5 or prefix == _THOUSANDS[-1]:
            break
        value /= 1000
    return f"{significant(value, 2)} {prefix}{unit}"


def _time_unit(value_ms: float) -> tuple[float, str]:
    size = abs(value_ms)
    # Thresholds are where the text in the smaller unit would round up to the larger one.
    if size >= 999.5:
        return _TIMES[0]
    if size >= 0.0995 or size == 0:
        return _TIMES[1]
    return _TIMES[2]
