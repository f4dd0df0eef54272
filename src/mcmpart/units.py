"""Quantities with units: ``"8 MiB"`` in, ``"3.1 MiB"`` out."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from types import MappingProxyType
from typing import Final, Literal, overload

from mcmpart.errors import InputError

Unit = Literal["bytes", "bytes_per_s", "s"]

_DECIMAL: Final = ("", "K", "M", "G", "T", "P")
_COUNTS: Final = ("", "k", "M", "G", "T", "P", "E")
_SIZES: Final = {
    **{f"{prefix}B": Decimal(1000) ** i for i, prefix in enumerate(_DECIMAL)},
    **{f"{prefix}iB": Decimal(1024) ** i for i, prefix in enumerate(_DECIMAL) if i},
    "kB": Decimal(1000),
}
_BITS: Final = {
    **{f"{prefix}b": Decimal(1000) ** i / 8 for i, prefix in enumerate(_DECIMAL)},
    "kb": Decimal(1000) / 8,
}
_FACTORS: Final = MappingProxyType(
    {
        "bytes": _SIZES,
        "bytes_per_s": {f"{u}/s": factor for u, factor in (_SIZES | _BITS).items()},
        "s": {
            "s": Decimal(1),
            "ms": Decimal("1e-3"),
            "us": Decimal("1e-6"),
            # Unicode has two such letters: the micro sign and the Greek mu.
            "\N{MICRO SIGN}s": Decimal("1e-6"),
            "\N{GREEK SMALL LETTER MU}s": Decimal("1e-6"),
            "ns": Decimal("1e-9"),
        },
    }
)
_ACCEPTED: Final = MappingProxyType(
    {
        "bytes": 'bytes, or text such as "8 MiB" or "80 GB" (B, KB to PB, KiB to PiB)',
        "bytes_per_s": (
            'bytes per second, or text such as "25 GB/s", "96 GiB/s" or "100 Gb/s" '
            "(B is a byte, b a bit)"
        ),
        "s": 'seconds, or text such as "1.5 us" (s, ms, us, ns)',
    }
)
_QUANTITY: Final = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[^\d\s]\S*)?\s*",
    re.ASCII,
)


CLOSED = 1e-5
"""A gap that counts as none: the tolerance of the proofs."""


@overload
def parse_quantity(value: str | float, unit: Literal["bytes"], place: str) -> int: ...
@overload
def parse_quantity(
    value: str | float, unit: Literal["bytes_per_s", "s"], place: str
) -> float: ...
def parse_quantity(value: str | float, unit: Unit, place: str) -> float:
    """Return ``value`` in the base unit: an int of bytes, else a float.

    Parameters
    ----------
    value
        A number, 0 or more, in the base unit, or text: a number and a unit. KB, MB, GB
        are powers of 1000, KiB, MiB, GiB powers of 1024; in a rate a small b is a bit.
    unit
        What is measured.
    place
        Where the value stands, for the error, for example ``"chip.memory_bytes"``.

    Raises
    ------
    InputError
        The value is negative, not finite, a truth value, of an unknown unit, or a
        broken number of bytes ("3.1 MiB" is rounded to a whole one, 1.5 is refused).

    Examples
    --------
    >>> parse_quantity("8 MiB", "bytes", "memory")
    8388608
    >>> parse_quantity("100 Gb/s", "bytes_per_s", "bandwidth")
    12500000000.0
    """
    amount, factor = _amount(value, unit, place)
    if not amount.is_finite() or amount < 0:
        raise _refusal(value, unit, place)
    with localcontext(prec=50) as context:
        context.clear_traps()
        product = amount * factor
    if not math.isfinite(float(product)):
        raise _refusal(value, unit, place)
    if unit != "bytes":
        return abs(float(product))  # a minus zero becomes zero
    if factor == 1 and product != product.to_integral_value():
        raise InputError(
            f"{place} is {value!r}, and a number of bytes is whole: round it, or add "
            'the unit that was meant, as in "8 MiB"'
        )
    return int(product.to_integral_value())


def format_bytes(size_bytes: float) -> str:
    """Return a number of bytes in binary units.

    Examples
    --------
    >>> format_bytes(3250586), format_bytes(512), format_bytes(1048575)
    ('3.1 MiB', '512 B', '1.0 MiB')
    """
    scaled, power = _shrink(size_bytes, 1024, _DECIMAL, 1023.95)
    if power == 0:
        return f"{scaled:.0f} B"
    return f"{scaled:.1f} {_DECIMAL[power]}iB"


def format_seconds(seconds: float) -> str:
    """Return a time with three digits, in ns, us, ms or s.

    Examples
    --------
    >>> format_seconds(41.7e-6), format_seconds(0.0), format_seconds(75.0)
    ('41.7 us', '0 s', '75.0 s')
    """
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:.0f} s"
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if abs(seconds) * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def format_count(count: float) -> str:
    """Return a number with three digits and k, M, G, T, P or E; small integers whole.

    Examples
    --------
    >>> format_count(8.18e9), format_count(950), format_count(0.5)
    ('8.18 G', '950', '0.5')
    """
    return _scaled(count, "")


def format_gap(gap: float) -> str:
    """Return a gap in percent; of one that is not closed, not 0.0 %.

    Examples
    --------
    >>> format_gap(0.0123), format_gap(0.0002), format_gap(0.0)
    ('1.2 %', 'below 0.1 %', '0.0 %')
    """
    if CLOSED < gap < 5e-4:
        return "below 0.1 %"
    return f"{100 * gap:.1f} %"


def format_rate(per_s: float) -> str:
    """Return a throughput: results per second.

    Examples
    --------
    >>> format_rate(23981.0), format_rate(417.0)
    ('24.0 k/s', '417 /s')
    """
    return _scaled(per_s, "/s")


def format_bandwidth(bytes_per_s: float) -> str:
    """Return a bandwidth in decimal units, as links are sold.

    Examples
    --------
    >>> format_bandwidth(25e9)
    '25.0 GB/s'
    """
    return _scaled(bytes_per_s, "B/s")


def _amount(value: str | float, unit: Unit, place: str) -> tuple[Decimal, Decimal]:
    if isinstance(value, bool):
        raise _refusal(value, unit, place)
    if isinstance(value, int):
        return Decimal(value), Decimal(1)
    if isinstance(value, float):
        # The shortest text of a float, not its binary value: 0.1 means one tenth.
        return Decimal(repr(value)), Decimal(1)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise _refusal(value, unit, place)
    symbol = match["unit"]
    factor = Decimal(1) if symbol is None else _FACTORS[unit].get(symbol)
    # Beyond a float's range Decimal would raise errors of its own.
    number = float(match["number"])
    if factor is None or not math.isfinite(number):
        raise _refusal(value, unit, place)
    return (Decimal(match["number"]) if number else Decimal(0)), factor


def _refusal(value: object, unit: Unit, place: str) -> InputError:
    return InputError(
        f"{place} is {value!r:.60}: give a number, 0 or more, of {_ACCEPTED[unit]}"
    )


def _scaled(value: float, unit: str) -> str:
    scaled, power = _shrink(value, 1000, _COUNTS, 999.5)
    whole = power == 0 and (not math.isfinite(scaled) or scaled.is_integer())
    digits = f"{scaled:.0f}" if whole else _three_digits(scaled)
    return f"{digits} {_COUNTS[power]}{unit}".rstrip()


def _shrink(
    value: float, base: int, prefixes: tuple[str, ...], limit: float
) -> tuple[float, int]:
    """Return ``value / base**power`` and the least power that brings it below limit.

    The limit is a little less than the base, so that 999.96 k is shown as 1.00 M.
    """
    scaled, power = float(value), 0
    if not math.isfinite(scaled):
        return scaled, 0
    while abs(scaled) >= limit and power < len(prefixes) - 1:
        scaled /= base
        power += 1
    return scaled, power


def _three_digits(value: float) -> str:
    size = abs(value)
    if size < 0.9995:
        return f"{value:.3g}"
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:.{decimals}f}"
