"""``mcmpart``: the commands, and what becomes of an error."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from mcmpart._version import __version__
from mcmpart.cli import package
from mcmpart.cli._console import note
from mcmpart.cli.bound import bound_command
from mcmpart.cli.import_ import import_command
from mcmpart.cli.inspect import inspect_command
from mcmpart.cli.partition import partition_command
from mcmpart.cli.verify import verify_command
from mcmpart.errors import McmpartError

BAD_INPUT = 2
OUTPUT_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What writing to a stream can end in; such an error names no file."""

INTERRUPTED = 130
READER_GONE = 141
"""What a shell gives a command that SIGPIPE ended, as in ``mcmpart inspect | head``."""


class _Commands(TyperGroup):
    """Runs a command; what a user can mend ends in one sentence, not a traceback."""

    # The context's class is typer's or click's, depending on the version of typer.
    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except McmpartError as error:
            _fail(str(error), error.exit_code)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except MemoryError:
            _fail(
                "this machine's memory does not hold the model's graph: use a larger "
                "machine or a smaller model",
                BAD_INPUT,
            )
        except BrokenPipeError:
            raise typer.Exit(READER_GONE) from None
        except OSError as error:
            if error.filename is None:
                raise
            _fail(
                f"cannot use {error.filename}: {error.strerror}; check the name and "
                "the permissions",
                BAD_INPUT,
            )


app = typer.Typer(
    name="mcmpart",
    cls=_Commands,
    help="Split a machine-learning model over the chips of a multi-chip module.",
    epilog="Exit codes: 0 done, 1 no valid plan exists or a plan does not hold, "
    "2 wrong use or bad input, 3 no plan found in the time given, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help text: loading rich would double the time that --help takes.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("partition")(partition_command)
app.command("bound")(bound_command)
app.command("import")(import_command)
app.command("inspect")(inspect_command)
app.command("verify")(verify_command)
app.add_typer(package.app, name="package")


def main() -> None:
    """Run the command line and exit with its code."""
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal cannot show is escaped rather than an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except OSError as error:
        if error.filename is not None or error.errno not in OUTPUT_FAULTS:
            raise
        reason = os.strerror(error.errno)
        note(f"error: cannot write the output: {reason[:1].lower()}{reason[1:]}")
        sys.exit(BAD_INPUT)
    finally:
        _drop_what_cannot_be_written()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mcmpart {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def _fail(sentence: str, exit_code: int) -> NoReturn:
    note(f"error: {sentence}")
    raise typer.Exit(exit_code)


def _replace_closed_streams() -> None:
    """Send nowhere what a stream that the caller closed would get (``>&-``)."""
    # Without a stream Python has None in its place, whatever the types say.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))


def _drop_what_cannot_be_written() -> None:
    """Empty the streams' buffers, if need be into nowhere: the exit code is settled."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            with suppress(OSError):
                stream.flush()
