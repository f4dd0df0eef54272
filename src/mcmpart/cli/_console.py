"""What every command prints with: tables and JSON on stdout, the rest on stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mcmpart.search import TracePoint


def printable(text: str) -> str:
    r"""Return ``text`` on one line, each character that is no print as its escape.

    A name or a sentence from a file can then neither steer a terminal nor pass for a
    line of its own.

    Examples
    --------
    >>> printable("a b\n\x1b[2J")
    'a b\\n\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text
    )


def show(line: str = "") -> None:
    """Print a line of the result, on stdout."""
    typer.echo(printable(line))


def print_json(value: Mapping[str, object]) -> None:
    """Print one strict JSON object, in ASCII so that any terminal takes it."""
    typer.echo(json.dumps(value, allow_nan=False, indent=1))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], aligned: str
) -> None:
    """Print a table on stdout: rich on a terminal, plain text otherwise.

    Parameters
    ----------
    columns
        The heads.
    rows
        One text per column each.
    aligned
        One letter per column: ``l`` for text, ``r`` for numbers.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, rows, aligned)
    else:
        print_plain(columns, rows, aligned)


def print_plain(
    columns: Sequence[str], rows: Sequence[Sequence[str]], aligned: str
) -> None:
    """Print what :func:`print_table` does where stdout is no terminal."""
    lines = [columns, *(tuple(map(printable, row)) for row in rows)]
    widths = column_widths(lines)
    for line in lines:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(line, widths, aligned, strict=True)
        ]
        typer.echo("  ".join(cells).rstrip())


def column_widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the length of the longest text of each column."""
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def note(line: str) -> None:
    """Print a line of progress or of the log, on stderr."""
    # That the log is read or kept by nobody is no reason to end a search.
    with suppress(OSError):
        typer.echo(printable(line), err=True)


class Progress:
    """Prints a line on stderr for each improvement of a search.

    Examples
    --------
    ``#12  3.1s  best 41.7 us  bound 40.9 us  gap 1.9 %  slice``
    """

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, point: TracePoint) -> None:
        """Print one improvement."""
        from mcmpart.search import relative_gap
        from mcmpart.units import format_gap, format_seconds

        self._count += 1
        gap = relative_gap(point.bottleneck_s, point.lower_bound_s)
        note(
            f"#{self._count}  {point.seconds:.1f}s  "
            f"best {format_seconds(point.bottleneck_s)}  "
            f"bound {format_seconds(point.lower_bound_s)}  "
            f"gap {format_gap(gap)}  {point.method}"
        )


@contextmanager
def log_on_stderr() -> Iterator[None]:
    """Show what the library logs, while the block runs."""
    logger = logging.getLogger("mcmpart")
    handler, level = _Notes(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def _print_rich(
    columns: Sequence[str], rows: Sequence[Sequence[str]], aligned: str
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, side in zip(columns, aligned, strict=True):
        table.add_column(name, justify="right" if side == "r" else "left")
    for row in rows:
        # As Text, a bracket in a name is no markup.
        table.add_row(*map(Text, row))
    Console().print(table)
