"""Tables, progress lines and the log."""

import logging
import re
import sys

import pytest

from mcmpart.cli._console import (
    Progress,
    log_on_stderr,
    note,
    print_table,
    printable,
    show,
)
from mcmpart.search import TracePoint


def test_plain_table(capsys):
    """Columns stand two spaces apart, text to the left and numbers to the right."""
    print_table(("kind", "ops"), [("Add", "12"), ("Identity", "3")], "lr")
    assert capsys.readouterr().out == "kind      ops\nAdd        12\nIdentity    3\n"


def test_table_on_a_terminal(monkeypatch, capsys):
    """On a terminal a bracket in a name is shown as it is."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("kind", "ops"), [("[bold]", "12")], "lr")
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert [line.split() for line in shown.splitlines()] == [
        ["kind", "ops"],
        ["[bold]", "12"],
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with spaces", "plain, with spaces"),
        ("caf\u00e9 \u4e2d", "caf\u00e9 \u4e2d"),
        ("x\nverified: all", "x\\nverified: all"),
        ("\x1b[2J\r\t\x7f", "\\x1b[2J\\r\\t\\x7f"),
        ("\u202e\udcff", "\\u202e\\udcff"),
    ],
)
def test_printable(text, shown):
    """What is no print is shown as its escape, and all else as it is."""
    assert printable(text) == shown


@pytest.mark.parametrize("terminal", [False, True])
def test_every_line_is_printable(monkeypatch, capsys, terminal):
    """Lines, cells and notes cannot hold a line of their own, nor steer a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    show("a\nb")
    note("c\nd")
    print_table(("kind", "ops"), [("e\nf\x1b]0;g", "1")], "lr")
    shown = capsys.readouterr()
    assert "a\\nb\n" in shown.out
    assert "e\\nf\\x1b]0;g" in shown.out
    assert shown.err == "c\\nd\n"


def test_progress(capsys):
    """Improvements are numbered, with best, bound, gap and method, on stderr."""
    progress = Progress()
    progress(TracePoint(40, 0.04, 50e-6, 40.9e-6, "greedy"))
    progress(TracePoint(90, 3.14, 41.7e-6, 40.9e-6, "slice"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "#1  0.0s  best 50.0 us  bound 40.9 us  gap 18.2 %  greedy\n"
        "#2  3.1s  best 41.7 us  bound 40.9 us  gap 1.9 %  slice\n"
    )


@pytest.mark.parametrize(
    "fault",
    [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")],
)
def test_note_that_nobody_gets(monkeypatch, fault):
    """A log that is read or kept by nobody is no error."""

    def gone(*arguments, **options):
        raise fault

    monkeypatch.setattr("typer.echo", gone)
    note("lost")


def test_log(capsys):
    """What the library logs is shown on stderr inside the block, and only there."""
    logger = logging.getLogger("mcmpart.search.warm")
    with log_on_stderr():
        logger.info("compiling %s", "kernels")
        logger.debug("details")
    logger.info("afterwards")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "compiling kernels\n")
