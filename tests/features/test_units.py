"""Numbers as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.features import units


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (0, "0 ms"),
        (0.0004, "<1 us"),
        (0.0085, "8.5 us"),
        (0.085, "85 us"),
        (0.0999, "0.10 ms"),
        (0.45, "0.45 ms"),
        (1.234, "1.2 ms"),
        (9.96, "10 ms"),
        (71.4, "71 ms"),
        (123.4, "123 ms"),
        (999.4, "999 ms"),
        (999.6, "1.00 s"),
        (12345, "12.3 s"),
        (-1.2, "-1.2 ms"),
        (float("nan"), "?"),
    ],
)
def test_time(value_ms: float, text: str) -> None:
    """A time has two digits that mean something, and the unit in which they read well."""
    assert units.format_ms(value_ms) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1023.6 * 2**10, "1 MiB"),
        (98 * 2**20, "98 MiB"),
        (1.2 * 2**30, "1.2 GiB"),
        (11.46 * 2**30, "11.5 GiB"),
        (24 * 2**30, "24 GiB"),
        (139.7 * 2**30, "140 GiB"),
    ],
)
def test_size(value: float, text: str) -> None:
    """A size is in binary units, with a tenth where a tenth matters, and rounds into the next unit."""
    assert units.format_bytes(value) == text


@pytest.mark.parametrize(
    ("percent", "text"), [(0, "0 %"), (0.01, "<0.1 %"), (2.94, "2.9 %"), (9.96, "10 %"), (12.4, "12 %"), (100, "100 %")]
)
def test_percent(percent: float, text: str) -> None:
    """A share has a tenth only below ten percent, and something is never shown as nothing."""
    assert units.format_percent(percent) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(0, "0"), (0.456, "0.46"), (3.44, "3.4"), (9.96, "10"), (99.6, "100"), (225.4, "225"), (12345.6, "12346")],
)
def test_rate(per_second: float, text: str) -> None:
    """A rate keeps two digits at least and never loses one before the point."""
    assert units.format_rate(per_second) == text


@pytest.mark.parametrize(
    ("value_ms", "spread_ms", "texts"),
    [
        (71, 6, ("71 ms", "+-3")),
        (71, 0.6, ("71 ms", "+-0.3")),
        (71, 0.06, ("71 ms", "+-0")),
        (71, 46, ("71 ms", "+-23")),
        (1234, 60, ("1.23 s", "+-0.03")),
        (71, 0, ("71 ms", "+-0")),
    ],
)
def test_spread(value_ms: float, spread_ms: float, texts: tuple[str, str]) -> None:
    """A spread is half the interquartile range, in the unit of the median."""
    assert units.format_ms_with_spread(value_ms, spread_ms) == texts


def test_range_has_its_unit_once() -> None:
    """Both ends of an interval share a unit where they have the same, and are one number where they read the same."""
    assert units.format_range(132, 149, units.format_ms) == "132 to 149 ms"
    assert units.format_range(900, 1200, units.format_ms) == "900 ms to 1.20 s"
    assert units.format_range(71.1, 71.2, units.format_ms) == "71 ms"
    assert units.format_range(225.2, 240, units.format_rate) == "225 to 240"


def test_change_has_its_sign() -> None:
    """A change says its direction even where it is nothing."""
    assert units.format_change(100, 182) == "+82 %"
    assert units.format_change(100, 97) == "-3 %"
    assert units.format_change(100, 100.2) == "+-0 %"
    assert units.format_change(0, 5) == "?"


@given(st.floats(min_value=0) | st.just(float("nan")))
def test_every_number_is_short_ascii(value: float) -> None:
    """Whatever the number, its text is ASCII, on one line, without exponent for what a program can cost."""
    for text in (
        units.format_ms(value),
        units.format_bytes(value),
        units.format_percent(value),
        units.format_rate(value),
    ):
        assert text.isascii()
        assert text.isprintable()
        if abs(value) < 1e15:
            assert "e" not in text
            assert len(text) < 24


@given(st.floats(min_value=1e-3, max_value=1e7))
def test_time_reads_back(value_ms: float) -> None:
    """A time as shown is within 5 % of the time."""
    number, unit = units.format_ms(value_ms).split(" ")
    shown = float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]
    assert abs(shown / value_ms - 1) <= 0.0501


@given(st.integers(min_value=1, max_value=2**50))
def test_size_reads_back(size: int) -> None:
    """A size as shown is within 5 % of the size."""
    number, unit = units.format_bytes(size).split(" ")
    shown = float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(shown / size - 1) <= 0.051


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 FLOP"),
        (512, "512 FLOP"),
        (999.6, "1.0 kFLOP"),
        (1_234_000_000, "1.2 GFLOP"),
        (9.9e13, "99 TFLOP"),
        (float("inf"), "?"),
    ],
)
def test_flop(value: float, text: str) -> None:
    """FLOP come in thousands, two digits and a prefix."""
    assert units.format_flop(value) == text


def test_rates_of_work() -> None:
    """FLOP and bytes a second come in thousands, as makers of devices give them."""
    assert units.format_flop_rate(4.5e10) == "45 GFLOP/s"
    assert units.format_byte_rate(5.77e9) == "5.8 GB/s"
