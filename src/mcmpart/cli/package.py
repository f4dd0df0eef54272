"""``mcmpart package``: list, show and check multi-chip module packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import column_widths, print_json, print_plain, show
from mcmpart.cli._options import JsonOption

if TYPE_CHECKING:
    from mcmpart.hardware.package import Package

app = typer.Typer(
    help="The multi-chip modules that ship with mcmpart, and your own package files.",
    no_args_is_help=True,
)

_COLUMNS = (
    "name",
    "chips",
    "topology",
    "rules",
    "long edges",
    "memory",
    "peak op/s",
    "source",
)


@app.command("list")
def list_packages(*, as_json: JsonOption = False) -> None:
    """List the packages that ship with mcmpart."""
    from mcmpart.hardware.loader import DEFAULT_PACKAGE, load_package, preset_names

    packages = [load_package(name) for name in preset_names()]
    if as_json:
        records = [_record(package) for package in packages]
        print_json({"default": DEFAULT_PACKAGE, "packages": records})
    else:
        _print_table([_row(package) for package in packages])


@app.command("show")
def show_package(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name that `package list` prints.")
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the TOML text of a package, with the source of each number."""
    from mcmpart.hardware.loader import parse_package, preset_text

    text = preset_text(name)
    if as_json:
        package = parse_package(text, f"preset {name}")
        print_json({**_record(package), "toml": text})
    else:
        typer.echo(text, nl=False)


@app.command("check")
def check_package(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A package file (TOML).")
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Check a package file and print what it says."""
    from mcmpart.hardware.loader import load_package

    package = load_package(file)
    if as_json:
        print_json({"ok": True, "file": str(file), **_record(package)})
    else:
        show(f"ok: {_summary(package)}")


def _record(package: Package) -> dict[str, object]:
    from mcmpart.hardware.package import content_hash

    chips = [
        {**asdict(chip), "peak_ops_per_s": dict(chip.peak_ops_per_s)}
        for chip in package.chips
    ]
    return {
        "name": package.name,
        "source": package.source,
        "sha256": content_hash(package),
        "topology": package.topology,
        "long_edges": package.long_edges,
        "io": package.io,
        "link_limit": package.link_limit,
        "rules": list(package.rules),
        "num_chips": package.num_chips,
        "chips": chips,
        "links": [asdict(link) for link in package.links],
    }


def _row(package: Package) -> tuple[str, ...]:
    return (
        package.name,
        str(package.num_chips),
        package.topology,
        # Dataflow is a rule of every package.
        ", ".join(package.rules) or "dataflow only",
        package.long_edges,
        _memory(package),
        _peaks(package)[0],
        package.source,
    )


def _summary(package: Package) -> str:
    from mcmpart.frontends.report import counted
    from mcmpart.units import format_bandwidth

    chips = counted(package.num_chips, "chip")
    kinds = len(package.classes)
    if kinds > 1:
        chips += f" of {kinds} kinds"
    enforced = "" if package.has_rule("memory") else ", not enforced"
    io = [chip.io_bandwidth_bytes_per_s for chip in package.chips]
    parts = [
        f"{package.name}: {chips}, {package.topology}",
        f"memory {_memory(package)} a chip{enforced}",
        f"peak {', '.join(_peaks(package, 'op/s'))}",
        f"io {_range(io, format_bandwidth)} {package.io}",
    ]
    if package.links:
        links = [link.bandwidth_bytes_per_s for link in package.links]
        parts.append(f"links {_range(links, format_bandwidth)}")
    parts.append(f"rules {', '.join(('dataflow', *package.rules))}")
    parts.append(f"long edges {package.long_edges}")
    return "; ".join(parts)


def _memory(package: Package) -> str:
    from mcmpart.units import format_bytes

    return _range([chip.memory_bytes for chip in package.chips], format_bytes)


def _peaks(package: Package, unit: str = "") -> list[str]:
    """Return the range of each dtype's peak, and how many chips have it if not all."""
    from mcmpart.hardware.package import ANY_DTYPE
    from mcmpart.units import format_count

    peaks: dict[str, list[float]] = {}
    for chip in package.chips:
        for dtype, peak in chip.peak_ops_per_s:
            peaks.setdefault("any dtype" if dtype == ANY_DTYPE else dtype, []).append(
                peak
            )
    return [
        f"{dtype} {_range(values, format_count)}{unit}"
        + ("" if len(values) == package.num_chips else f" on {len(values)} of them")
        for dtype, values in peaks.items()
    ]


def _range(values: Sequence[float], in_words: Callable[[float], str]) -> str:
    low, high = in_words(min(values)), in_words(max(values))
    return low if low == high else f"{low} to {high}"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    if sys.stdout.isatty():
        _print_rich(rows)
    else:
        print_plain(_COLUMNS, rows, "l" * len(_COLUMNS))


def _print_rich(rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = column_widths([_COLUMNS, *rows])
    table = Table(box=None, pad_edge=False, expand=True)
    for name, width in zip(_COLUMNS[:-1], widths[:-1], strict=True):
        table.add_column(name, min_width=width, no_wrap=True)
    # A source is a paragraph, cut to what is left; `package show` prints it whole.
    table.add_column(_COLUMNS[-1], ratio=1, no_wrap=True, overflow="ellipsis")
    for row in rows:
        # As Text, a bracket in a source is no markup.
        table.add_row(*map(Text, row))
    Console().print(table)
