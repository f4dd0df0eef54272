"""Package files: presets and TOML files in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, TypeVar, cast

from mcmpart._files import did_you_mean, read_bytes
from mcmpart.errors import InputError
from mcmpart.hardware._table import Table, parse_toml
from mcmpart.hardware.package import (
    ANY_DTYPE,
    MAX_CHIPS,
    Chip,
    Io,
    Link,
    LongEdges,
    Package,
    Topology,
)

DEFAULT_PACKAGE: Final = "ring36"

PartT = TypeVar("PartT", Chip, Link)

_CHIP_KEYS: Final = tuple(field.name for field in fields(Chip))
_LINK_KEYS: Final = tuple(field.name for field in fields(Link))


def preset_names() -> tuple[str, ...]:
    """Return the names of the packages that ship with mcmpart, sorted."""
    files = (entry.name for entry in _presets().iterdir())
    return tuple(sorted(f[: -len(".toml")] for f in files if f.endswith(".toml")))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset exactly as shipped, comments included.

    Raises
    ------
    InputError
        No preset has that name.
    """
    if name not in preset_names():
        raise InputError(
            f"{name!r} is no preset package{did_you_mean(name, preset_names())}: "
            f"choose one of {', '.join(preset_names())}"
        )
    return _presets().joinpath(f"{name}.toml").read_text(encoding="utf-8")


def load_package(name_or_path: str | os.PathLike[str]) -> Package:
    """Return the preset of that name, or the package in that TOML file.

    Parameters
    ----------
    name_or_path
        A preset name, or a path: a :class:`~pathlib.Path`, or a string that names no
        preset.

    Raises
    ------
    InputError
        There is no such preset or file, or the file has a fault.

    Examples
    --------
    >>> load_package("ring36").num_chips
    36
    """
    if isinstance(name_or_path, str):
        if name_or_path in preset_names():
            return parse_package(preset_text(name_or_path), f"preset {name_or_path}")
        if not _is_path(name_or_path):
            raise InputError(
                f"{name_or_path!r} is neither a preset package nor a file"
                f"{did_you_mean(name_or_path, preset_names())}: choose one of "
                f"{', '.join(preset_names())}, or name a .toml file"
            )
    path = Path(name_or_path)
    data = read_bytes(path, "package file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not a package file: it is no UTF-8 text"
        ) from error
    return parse_package(text, str(path))


def parse_package(text: str, file: str = "the package text") -> Package:
    """Return the package that a TOML text describes.

    Parameters
    ----------
    text
        TOML.
    file
        What to call it in errors.

    Raises
    ------
    InputError
        With the file, the key, the value met and the remedy.
    """
    top = parse_toml(text, file)
    top.check_keys(
        ("name", "source", "long_edges", "link_limit", "rules", "chip"),
        ("topology", "io", "link"),
    )
    chip_table = top.table("chip")
    chip_table.check_keys(("count", *_CHIP_KEYS), ("override",))
    count = chip_table.whole("count")
    if not 1 <= count <= MAX_CHIPS:
        raise InputError(
            f"{chip_table.place('count')} is {count}: choose from 1 to {MAX_CHIPS} "
            "chips, the limit of this version"
        )
    base_chip, chips = _expand(chip_table, ("chips", count, _CHIP_KEYS), _chip)
    base_link, links = _links(top, count)
    name, source = top.text("name"), top.text("source")
    topology = top.text("topology") if "topology" in top.values else "ring"
    long_edges = top.text("long_edges")
    io = top.text("io") if "io" in top.values else "serial"
    link_limit, rules = top.flag("link_limit"), tuple(top.texts("rules"))
    with _located(f"{file}: "):
        return Package(
            name=name,
            source=source,
            topology=cast("Topology", topology),
            long_edges=cast("LongEdges", long_edges),
            io=cast("Io", io),
            link_limit=link_limit,
            rules=rules,
            chips=chips,
            links=links,
            base_chip=base_chip,
            base_link=base_link,
        )


def _presets() -> Traversable:
    return resources.files("mcmpart.hardware").joinpath("presets")


def _is_path(text: str) -> bool:
    return text.endswith(".toml") or Path(text).name != text or Path(text).exists()


@contextmanager
def _located(prefix: str) -> Iterator[None]:
    """Put the place in front of what a Chip, Link or Package refuses."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{prefix}{error}") from error


def _links(top: Table, count: int) -> tuple[Link | None, tuple[Link, ...]]:
    if "link" not in top.values:
        if count > 1:
            raise InputError(
                f"{top.file}: the top of the file lacks link: add a [link] table "
                f"for the {count - 1} links between the {count} chips"
            )
        return None, ()
    table = top.table("link")
    table.check_keys(_LINK_KEYS, ("override",))
    if table.tables("override") and top.values.get("topology") == "crossbar":
        raise InputError(
            f"{table.place('override')} is given on a crossbar, where each pair of "
            'chips is one equal hop: remove it, or set topology = "ring"'
        )
    return _expand(table, ("hops", count - 1, _LINK_KEYS), _link)


def _expand(
    table: Table,
    shape: tuple[str, int, tuple[str, ...]],
    make: Callable[[Table], PartT],
) -> tuple[PartT, tuple[PartT, ...]]:
    """Return the base part and all parts, overrides applied.

    ``shape`` is the key that lists indices, the number of parts and the keys of one.
    """
    index_key, count, keys = shape
    base = make(table)
    parts = [base] * count
    taken: set[int] = set()
    for override in table.tables("override"):
        override.check_keys((index_key,), keys)
        if len(override.values) == 1:
            raise InputError(
                f"{override.file}: [[{table.path}.override]] changes nothing: give it "
                f"one of {', '.join(keys)}"
            )
        part = make(override.over(table))
        for i in override.wholes(index_key):
            if not 0 <= i < count:
                raise InputError(
                    f"{override.place(index_key)} names {i}, and there are {count} "
                    f"{index_key}: they count from 0"
                )
            if i in taken:
                raise InputError(
                    f"{override.place(index_key)} names {i}, which is overridden "
                    "already: keep one of the two"
                )
            taken.add(i)
            parts[i] = part
    return base, tuple(parts)


def _chip(table: Table) -> Chip:
    values = (
        table.size("memory_bytes"),
        table.quantity("memory_bandwidth_bytes_per_s", "bytes_per_s"),
        table.quantity("io_bandwidth_bytes_per_s", "bytes_per_s"),
        table.quantity("op_overhead_s", "s"),
        _peaks(table),
        table.number("e_flop_j"),
        table.number("e_mem_j_per_byte"),
    )
    with _located(f"{table.file}: {table.path}."):
        return Chip(*values)


def _peaks(table: Table) -> tuple[tuple[str, float], ...]:
    if not isinstance(table.values["peak_ops_per_s"], dict):
        return ((ANY_DTYPE, table.number("peak_ops_per_s")),)
    peaks = table.table("peak_ops_per_s")
    if ANY_DTYPE in peaks.values:
        raise InputError(
            f"{peaks.file}: {peaks.path} has the key {ANY_DTYPE!r}: for one peak of "
            "every dtype write peak_ops_per_s = NUMBER instead of a table"
        )
    return tuple((dtype, peaks.number(dtype)) for dtype in peaks.values)


def _link(table: Table) -> Link:
    values = (
        table.quantity("bandwidth_bytes_per_s", "bytes_per_s"),
        table.quantity("latency_s", "s"),
        table.number("e_link_j_per_byte"),
    )
    with _located(f"{table.file}: {table.path}."):
        return Link(*values)
