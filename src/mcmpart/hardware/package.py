"""Package: chips, links and rules of a multi-chip module."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, TypeVar, get_args

from mcmpart._files import did_you_mean, dump_json, sha256_of
from mcmpart.errors import InputError

Topology = Literal["ring", "crossbar"]
LongEdges = Literal["forbid", "relay", "direct"]
Io = Literal["serial", "overlap"]
PartT = TypeVar("PartT")

SMALLEST_RATE = 1e-3
LARGEST = 1e30
"""Limits of what a package may say: times and energies stay finite when summed."""

MAX_CHIPS: Final = 64
"""The solver keeps the chips an op may take as the bits of one 64-bit word."""

ANY_DTYPE: Final = "*"
"""Stands in a peak table for every dtype."""

DTYPES: Final = (
    *("fp64", "fp32", "fp16", "bf16", "fp8", "fp4"),
    *("int64", "int32", "int16", "int8", "uint8", "int4", "uint4", "bool"),
)
RULES: Final = ("no_skip", "triangle", "memory")
"""The static rules a package switches on; acyclic dataflow always holds."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip of the module.

    Attributes
    ----------
    memory_bytes
        On-chip memory, 1 to 2^63 - 1.
    memory_bandwidth_bytes_per_s
        Of that memory, more than 0.
    io_bandwidth_bytes_per_s
        Bytes in and bytes out of the chip together, more than 0.
    op_overhead_s
        Fixed time per op, 0 or more.
    peak_ops_per_s
        Pairs of a dtype and its peak, the preferred dtype first; the single pair
        ``("*", x)`` gives every dtype the peak x. A multiply-add counts 2.
    e_flop_j, e_mem_j_per_byte
        Energy per operation and per byte touched, 0 or more.
    """

    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    io_bandwidth_bytes_per_s: float
    op_overhead_s: float
    peak_ops_per_s: tuple[tuple[str, float], ...]
    e_flop_j: float
    e_mem_j_per_byte: float

    def __post_init__(self) -> None:
        if isinstance(self.memory_bytes, bool) or not isinstance(
            self.memory_bytes, int
        ):
            raise InputError(
                f"memory_bytes is {self.memory_bytes!r}: give a whole number of bytes"
            )
        if not 0 < self.memory_bytes < 2**63:
            raise InputError(
                f"memory_bytes is {self.memory_bytes}: a chip has from 1 to 2^63 - 1 "
                "bytes of memory"
            )
        _check_numbers(
            self,
            positive=("memory_bandwidth_bytes_per_s", "io_bandwidth_bytes_per_s"),
            zero_or_more=("op_overhead_s", "e_flop_j", "e_mem_j_per_byte"),
        )
        _check_peaks(self.peak_ops_per_s)
        peaks = tuple((dtype, float(peak)) for dtype, peak in self.peak_ops_per_s)
        object.__setattr__(self, "peak_ops_per_s", peaks)

    def peak(self, dtype: str) -> float | None:
        """Return the peak op/s for ``dtype``, or None where the chip gives none."""
        for known, peak in self.peak_ops_per_s:
            if known in (dtype, ANY_DTYPE):
                return peak
        return None


@dataclass(frozen=True, slots=True)
class Link:
    """One hop between neighbours; of a crossbar, a chip's way to any other.

    Attributes
    ----------
    bandwidth_bytes_per_s
        In the direction of the ring, more than 0.
    latency_s
        Per hop, 0 or more.
    e_link_j_per_byte
        Energy per byte and hop, 0 or more.
    """

    bandwidth_bytes_per_s: float
    latency_s: float
    e_link_j_per_byte: float

    def __post_init__(self) -> None:
        _check_numbers(
            self,
            positive=("bandwidth_bytes_per_s",),
            zero_or_more=("latency_s", "e_link_j_per_byte"),
        )


@dataclass(frozen=True, slots=True)
class Package:
    """A multi-chip module: C chips, how they are joined and what is allowed.

    Attributes
    ----------
    name, source
        What it is called, and where its numbers are from.
    topology
        ``"ring"`` (0 -> 1 -> ... -> C - 1) or ``"crossbar"`` (each pair is one hop and
        no link is shared).
    long_edges
        What a tensor that jumps over a used chip costs: ``"forbid"`` (the triangle
        rule is on: no jump beside a longer path), ``"relay"`` or ``"direct"``.
    io
        ``"serial"`` (a chip computes or transfers) or ``"overlap"``.
    link_limit
        Whether the traffic of the busiest hop can be the bottleneck.
    rules
        The static rules switched on, of :data:`RULES`.
    chips
        ``C`` chips, 1 to 64.
    links
        ``C - 1`` links; link i joins chip i and chip i + 1. Of a crossbar, all equal.
    base_chip, base_link
        What :meth:`with_chips` appends and :func:`to_toml` writes first; None takes the
        most frequent one. ``base_link`` stays None only where one chip stands alone.
    """

    name: str
    source: str
    topology: Topology
    long_edges: LongEdges
    io: Io
    link_limit: bool
    rules: tuple[str, ...]
    chips: tuple[Chip, ...]
    links: tuple[Link, ...]
    base_chip: Chip | None = None
    base_link: Link | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("name is empty: give the package a name")
        _check_choice("topology", self.topology, get_args(Topology))
        _check_choice("long_edges", self.long_edges, get_args(LongEdges))
        _check_choice("io", self.io, get_args(Io))
        _check_rules(self.rules)
        _check_sizes(len(self.chips), len(self.links))
        _check_long_edges(self)
        if self.topology == "crossbar":
            _check_crossbar(self)
        if self.base_chip is None:
            object.__setattr__(self, "base_chip", _most_frequent(self.chips))
        if self.base_link is None and self.links:
            object.__setattr__(self, "base_link", _most_frequent(self.links))

    @property
    def num_chips(self) -> int:
        """Number of chips C."""
        return len(self.chips)

    @property
    def classes(self) -> tuple[Chip, ...]:
        """The distinct chips, in order of first appearance."""
        return tuple(dict.fromkeys(self.chips))

    @property
    def chip_class(self) -> tuple[int, ...]:
        """``C`` indices into :attr:`classes`: identical chips share one."""
        index = {chip: k for k, chip in enumerate(self.classes)}
        return tuple(index[chip] for chip in self.chips)

    def has_rule(self, name: str) -> bool:
        """Return whether the static rule is on; ``"dataflow"`` always is."""
        return name == "dataflow" or name in self.rules

    def with_chips(self, count: int) -> Package:
        """Return the package cut or extended to ``count`` chips.

        New chips and links are the base ones.

        Raises
        ------
        InputError
            ``count`` is not 1 to 64, would cut off a chip or link that has values of
            its own, or needs a link and the package names none.
        """
        _check_sizes(count, count - 1)
        more = count - self.num_chips
        if more <= 0:
            _check_cut(self, count)
            return replace(
                self, chips=self.chips[:count], links=self.links[: count - 1]
            )
        if self.base_chip is None or self.base_link is None:
            raise InputError(
                f"package {self.name!r} has one chip and no link, so it cannot be "
                f"extended to {count} chips: add a [link] table to its file"
            )
        return replace(
            self,
            chips=self.chips + (self.base_chip,) * more,
            links=self.links + (self.base_link,) * more,
        )


def content_hash(package: Package) -> str:
    """Return the SHA-256 of what the package says, in hexadecimal.

    Name, source and base values do not count, nor does the order of the rules.
    """
    return sha256_of(
        dump_json(
            {
                "topology": package.topology,
                "long_edges": package.long_edges,
                "io": package.io,
                "link_limit": package.link_limit,
                "rules": sorted(package.rules),
                "chips": [asdict(chip) for chip in package.chips],
                "links": [asdict(link) for link in package.links],
            }
        )
    )


def _check_numbers(
    record: Chip | Link, *, positive: Sequence[str], zero_or_more: Sequence[str]
) -> None:
    for field in (*positive, *zero_or_more):
        value = getattr(record, field)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise InputError(f"{field} is {value!r}: give a finite number, 0 or more")
        if field in positive and value == 0:
            raise InputError(f"{field} is {value!r}: give a number above 0")
        if (field in positive and value < SMALLEST_RATE) or value > LARGEST:
            raise InputError(
                f"{field} is {value!r}, which no hardware has: give a number from "
                f"{SMALLEST_RATE:g} to {LARGEST:g}"
            )
        # Equal packages must hash alike, and JSON tells 1 from 1.0 and 0.0 from -0.0.
        object.__setattr__(record, field, abs(float(value)))


def _check_peaks(peaks: Sequence[tuple[str, float]]) -> None:
    names = [dtype for dtype, _ in peaks]
    if not names:
        raise InputError(
            "peak_ops_per_s is empty: give one number, or one for each dtype the chip "
            "computes in"
        )
    if len(set(names)) < len(names):
        raise InputError(f"peak_ops_per_s names a dtype twice ({', '.join(names)})")
    for dtype, peak in peaks:
        if dtype not in DTYPES and names != [ANY_DTYPE]:
            raise InputError(
                f"peak_ops_per_s has the unknown dtype {dtype!r}"
                f"{did_you_mean(dtype, DTYPES)}: use {', '.join(DTYPES)}, or one "
                "number for every dtype"
            )
        number = isinstance(peak, int | float) and not isinstance(peak, bool)
        if not number or not math.isfinite(peak) or peak <= 0:
            raise InputError(
                f"peak_ops_per_s of {dtype} is {peak!r}: give a finite number above 0, "
                "or leave the dtype out"
            )
        if not SMALLEST_RATE <= peak <= LARGEST:
            raise InputError(
                f"peak_ops_per_s of {dtype} is {peak!r}, which no hardware has: give a "
                f"number from {SMALLEST_RATE:g} to {LARGEST:g}"
            )


def _check_choice(field: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(
            f"{field} is {value!r}{did_you_mean(value, allowed)}: choose "
            f"{' or '.join(repr(name) for name in allowed)}"
        )


def _check_rules(rules: Sequence[str]) -> None:
    for i, rule in enumerate(rules):
        if rule == "dataflow":
            raise InputError(
                "rules lists 'dataflow', which is always on: leave it out of the list"
            )
        if rule not in RULES:
            raise InputError(
                f"rules lists {rule!r}{did_you_mean(rule, RULES)}: a package may "
                f"switch on {', '.join(RULES)}"
            )
        if rule in rules[:i]:
            raise InputError(f"rules lists {rule!r} twice: keep one of them")


def _check_sizes(num_chips: int, num_links: int) -> None:
    if not 1 <= num_chips <= MAX_CHIPS:
        raise InputError(
            f"a package of {num_chips} chips is not supported: choose from 1 to "
            f"{MAX_CHIPS}, the limit of this version"
        )
    if num_links != num_chips - 1:
        raise InputError(
            f"{num_chips} chips have {num_chips - 1} links, and {num_links} are given: "
            "link i joins chip i and chip i + 1"
        )


def _check_long_edges(package: Package) -> None:
    triangle = "triangle" in package.rules
    if package.long_edges == "forbid" and not triangle:
        raise InputError(
            "long_edges is 'forbid', which needs the rule 'triangle', and rules lacks "
            "it: add 'triangle' to rules, or choose long_edges = 'relay' or 'direct'"
        )
    if package.long_edges != "forbid" and triangle:
        raise InputError(
            "rules lists 'triangle', which needs long_edges = 'forbid', and "
            f"long_edges is {package.long_edges!r}: change one of the two"
        )


def _check_crossbar(package: Package) -> None:
    if package.long_edges == "relay":
        raise InputError(
            "long_edges is 'relay' on a crossbar, where no chip stands between two "
            "others: choose long_edges = 'direct', or topology = 'ring'"
        )
    if package.link_limit:
        raise InputError(
            "link_limit is true on a crossbar, where no link is shared: set "
            "link_limit = false, or topology = 'ring'"
        )
    if len({*package.links, package.base_link} - {None}) > 1:
        raise InputError(
            "the links of a crossbar differ, and each of its pairs is one equal hop: "
            "give one link, or topology = 'ring'"
        )


def _check_cut(package: Package, count: int) -> None:
    for what, parts, base, kept in (
        ("chip", package.chips, package.base_chip, count),
        ("hop", package.links, package.base_link, count - 1),
    ):
        own = [i for i, part in enumerate(parts) if i >= kept and part != base]
        if own:
            needed = own[-1] + (1 if what == "chip" else 2)
            raise InputError(
                f"{what} {own[-1]} of package {package.name!r} has values of its own, "
                f"and {count} chips would cut it off: ask for {needed} chips or more, "
                "or remove the override from the package file"
            )


def _most_frequent(parts: Sequence[PartT]) -> PartT:
    return max(dict.fromkeys(parts), key=parts.count)
