"""Options that several commands take, and how their values are read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.errors import InputError

if TYPE_CHECKING:
    from mcmpart.frontends.load import ImportResult

FORMATS = ("onnx", "graph", "dnn-partitioning", "pipedream")
"""The keys of ``frontends.load.FRONTENDS``, which takes too long to import for help."""

METHODS = (
    "auto",
    "greedy",
    "random",
    "anneal",
    "slice",
    "evolve",
    "local",
    "correct",
    "exact",
)
"""The keys of ``search.METHODS``, likewise."""

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX model (.onnx), a graph (.graph.json[.gz]), a dnn-partitioning "
        "graph (.json) or a PipeDream graph (graph.txt).",
    ),
]
DimOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=N",
        help="Size of a symbolic dimension; TENSOR.AXIS names one without a symbol. "
        "Repeat for more.",
    ),
]
OpCostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--op-cost",
        metavar="DOMAIN::KIND=FLOPS",
        help="FLOPs of one op of a kind that has no cost rule. Repeat for more.",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Refuse op kinds without a cost rule."),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help=f"Read MODEL as: {', '.join(FORMATS)}. Default: told by its content.",
    ),
]
PackageOption = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="A name that `package list` prints, or a package file (TOML).",
    ),
]
ChipsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Cut or extend the package to N chips."),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        metavar="DTYPE",
        help="Dtype that float tensors are deployed in, such as int8 or bf16; "
        "auto keeps the model's own where the package has a peak for it.",
    ),
]
ReplicaOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Replicate cheap ops whose ancestors cost at most this share of the "
        "model; 0 replicates none. Default: chosen by trying.",
    ),
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(metavar="OP=CHIP", help="Put an op on a chip. Repeat for more."),
]
TogetherOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OP,OP",
        help="Put ops on one chip; a name with a comma stands in double quotes. "
        "Repeat for more.",
    ),
]
ApartOption = Annotated[
    list[str] | None,
    typer.Option(metavar="OP,OP", help="Put ops on different chips. Repeat for more."),
]
AllChipsOption = Annotated[
    bool, typer.Option("--all-chips", help="Every chip must get an op.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """A model file and how to read it, as typed."""

    model: Path
    dims: dict[str, int]
    op_costs: dict[str, int]
    strict: bool
    format: str | None

    @classmethod
    def parse(
        cls,
        model: Path,
        dim: Sequence[str] | None,
        op_cost: Sequence[str] | None,
        strict: bool,
        format: str | None,
    ) -> ModelOptions:
        """Return the options with each ``NAME=N`` taken apart."""
        dims = _whole_numbers("--dim", "NAME=N", dim)
        op_costs = _whole_numbers("--op-cost", "DOMAIN::KIND=FLOPS", op_cost)
        return cls(model, dims, op_costs, strict, format)

    def read(self) -> ImportResult:
        """Return the graph and the import report."""
        from mcmpart.frontends.load import import_model

        return import_model(
            self.model,
            dims=self.dims,
            op_costs=self.op_costs,
            strict=self.strict,
            format=self.format,
        )


def parse_pins(texts: Sequence[str] | None) -> dict[str, int]:
    """Return op name -> chip of each ``OP=CHIP``.

    Examples
    --------
    >>> parse_pins(["a=b=3"])
    {'a=b': 3}
    """
    return _whole_numbers("--pin", "OP=CHIP", texts)


def parse_together(texts: Sequence[str] | None) -> tuple[tuple[str, ...], ...]:
    """Return the op names of each ``OP,OP``; a name with a comma stands in quotes.

    Examples
    --------
    >>> parse_together(['a,"b,c"'])
    (('a', 'b,c'),)
    """
    return tuple(_names("--together", text) for text in texts or ())


def parse_apart(texts: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Return each pair of the op names of each ``OP,OP``.

    Examples
    --------
    >>> parse_apart(["a,b,c"])
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    groups = [_names("--apart", text) for text in texts or ()]
    return tuple(pair for names in groups for pair in combinations(names, 2))


def _whole_numbers(
    option: str, form: str, texts: Sequence[str] | None
) -> dict[str, int]:
    values: dict[str, int] = {}
    for text in texts or ():
        # At the last sign: op names may hold one, numbers do not.
        name, sign, digits = text.rpartition("=")
        if not (sign and name):
            raise InputError(f"{option} {text!r} is not of the form {form}")
        value = _whole(f"{option} {text!r}", digits)
        if values.setdefault(name, value) != value:
            raise InputError(
                f"{option} gives {name!r} both {values[name]} and {value}: keep one"
            )
    return values


def _whole(place: str, digits: str) -> int:
    try:
        number = Decimal(digits.strip())
    except InvalidOperation:
        number = Decimal("nan")
    # 64-bit integers hold it from here on.
    if not (number.is_finite() and 0 <= number < 2**63 and number == int(number)):
        raise InputError(
            f"{place} gives {digits!r}: give a whole number, 0 or more, below 2**63"
        )
    return int(number)


def _names(option: str, text: str) -> tuple[str, ...]:
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(
            f"{option} {text!r} is not a list of op names ({error}): separate them by "
            "commas, and put a name that holds a comma or a quote in double quotes"
        ) from error
    names = tuple(rows[0]) if rows else ()
    if len(names) < 2 or not all(names):
        raise InputError(
            f"{option} {text!r} is not of the form OP,OP: give two or more op names, "
            "separated by commas"
        )
    return names
