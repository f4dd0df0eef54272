"""Quantities with units: what is read, what is refused, what is printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcmpart.errors import InputError
from mcmpart.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_rate,
    format_seconds,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("8 MiB", 8_388_608),
        ("897 MiB", 940_572_672),
        ("80 GB", 80_000_000_000),
        ("1 KB", 1_000),
        ("1 kB", 1_000),
        ("1KiB", 1_024),
        ("2 TiB", 2_199_023_255_552),
        ("512 B", 512),
        ("  12  ", 12),
        (770_048, 770_048),
        (1e12, 1_000_000_000_000),
        ("3.1 MiB", 3_250_586),  # 3.1 x 1048576 = 3250585.6
        ("0.5 KiB", 512),
        (0, 0),
    ],
)
def test_bytes_are_read_as_whole_numbers(value, expected):
    """Sizes take binary and decimal units and come out as an int."""
    size = parse_quantity(value, "bytes", "memory")
    assert size == expected
    assert type(size) is int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("25 GB/s", 25e9),
        ("206.158 GB/s", 206.158e9),
        ("96 GiB/s", 103_079_215_104.0),
        ("100 Gb/s", 12.5e9),
        ("1 kb/s", 125.0),
        ("3.35TB/s", 3.35e12),
        ("1e3 MB/s", 1e9),
        (12.5e9, 12.5e9),
    ],
)
def test_rates_tell_bytes_from_bits(value, expected):
    """A rate takes bytes (B) or bits (b) per second and comes out as a float."""
    rate = parse_quantity(value, "bytes_per_s", "link")
    assert rate == expected
    assert type(rate) is float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.5 us", 1.5e-6),
        ("1.5 \N{MICRO SIGN}s", 1.5e-6),
        ("1.5 \N{GREEK SMALL LETTER MU}s", 1.5e-6),
        ("41.7us", 41.7e-6),
        ("20 ns", 2e-8),
        ("3 ms", 0.003),
        ("2 s", 2.0),
        ("1e-999999999 s", 0.0),
        (0.25, 0.25),
        (0, 0.0),
    ],
)
def test_times_are_read_to_the_nearest_float(value, expected):
    """A time in any unit equals the float that Python reads for its seconds."""
    assert parse_quantity(value, "s", "latency") == expected


@pytest.mark.parametrize(
    "value",
    [
        -1,
        "-1 us",
        math.nan,
        math.inf,
        "nan",
        "inf s",
        "1e999 s",
        True,
        False,
        "",
        "us",
        "1 2",
        "1,5 us",
        "1_0 us",
        "0x10 s",
        "1 minute",
        "1 US",
        "5 MiB",
        "1/2 s",
    ],
)
def test_what_is_no_time_is_refused_with_place_value_and_remedy(value):
    """One sentence names the place, the value met and what is accepted."""
    with pytest.raises(InputError) as caught:
        parse_quantity(value, "s", "link.latency_s")
    assert str(caught.value) == (
        f"link.latency_s is {value!r}: give a number, 0 or more, of seconds, or text "
        'such as "1.5 us" (s, ms, us, ns)'
    )


def test_units_are_case_sensitive():
    """A unit in the wrong case, or of another kind, is unknown, not guessed."""
    with pytest.raises(InputError, match=r"memory is '8 mib': give .* MiB"):
        parse_quantity("8 mib", "bytes", "memory")
    with pytest.raises(InputError, match=r'link is \'8 GB\': .* or "100 Gb/s"'):
        parse_quantity("8 GB", "bytes_per_s", "link")


@pytest.mark.parametrize("value", [1.5, "1.5", "0.25 B"])
def test_a_broken_number_of_bytes_without_a_prefix_is_refused(value):
    """1.5 bytes is most likely a forgotten unit, so it is not rounded."""
    with pytest.raises(InputError, match=r"a number of bytes is whole: .* unit"):
        parse_quantity(value, "bytes", "memory")


def test_minus_zero_reads_as_zero():
    """A minus zero cannot make two equal packages hash apart."""
    assert math.copysign(1.0, parse_quantity(-0.0, "s", "x")) == 1.0


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_whole_bytes_survive(size):
    """Any number of bytes up to 2^63 - 1 is read back exactly, as number and text."""
    assert parse_quantity(size, "bytes", "x") == size
    assert parse_quantity(f"{size} B", "bytes", "x") == size


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_plain_floats_survive(value):
    """A plain rate is read back exactly, as number and as text."""
    assert parse_quantity(value, "bytes_per_s", "x") == value
    assert parse_quantity(repr(value), "bytes_per_s", "x") == value


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    """No text makes anything but a finite number of 0 or more, or an InputError."""
    try:
        value = parse_quantity(text, "bytes_per_s", "x")
    except InputError:
        return
    assert math.isfinite(value)
    assert value >= 0


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3_250_586, "3.1 MiB"),
        (1_048_575, "1.0 MiB"),
        (-3_250_586, "-3.1 MiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_bytes_are_shown_in_binary_units(size, shown):
    """A size shows one decimal of the largest unit that keeps it above 1."""
    assert format_bytes(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0 s"),
        (41.7e-6, "41.7 us"),
        (1.234e-9, "1.23 ns"),
        (9.996e-9, "10.0 ns"),
        (999.6e-6, "1.00 ms"),
        (0.25, "250 ms"),
        (75.0, "75.0 s"),
        (math.inf, "inf s"),
    ],
)
def test_seconds_are_shown_with_three_digits(seconds, shown):
    """A time shows three digits, and 999.6 us has become a millisecond."""
    assert format_seconds(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (7, "7"),
        (950, "950"),
        (0.5, "0.5"),
        (999.6, "1.00 k"),
        (1234, "1.23 k"),
        (8.18e9, "8.18 G"),
        (1e18, "1.00 E"),
        (2e21, "2000 E"),
    ],
)
def test_counts_are_shown_with_three_digits(count, shown):
    """A count shows three digits and a decimal prefix; small integers stay whole."""
    assert format_count(count) == shown


def test_rates_and_bandwidths_carry_their_unit():
    """A throughput ends in /s and a bandwidth in B/s, prefix before the unit."""
    assert format_rate(23_981) == "24.0 k/s"
    assert format_rate(417) == "417 /s"
    assert format_bandwidth(25e9) == "25.0 GB/s"
    assert format_bandwidth(12) == "12 B/s"
