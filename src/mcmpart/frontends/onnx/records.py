"""The ops of the main graph, between reading the model and building the Graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcmpart.frontends.onnx.reader import Step
from mcmpart.frontends.onnx.structure import kind_of
from mcmpart.frontends.onnx.values import FLOAT_DTYPES, Value
from mcmpart.frontends.onnx.work import Work

_INTEGER_PREFIXES = ("QLinear", "QGemm", "QAttention")
_INTEGER_SUFFIXES = ("Integer", "IntegerToFloat")


@dataclass(frozen=True, slots=True)
class Record:
    """One op: what it reads and writes, by name.

    Attributes
    ----------
    inputs
        Every value it reads, captures of its bodies included; None where absent.
    outputs
        Name and value of every output that has a name.
    """

    key: str
    kind: str
    dtype: str
    work: Work
    inputs: tuple[Value | None, ...]
    outputs: tuple[tuple[str, Value], ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tensors it reads."""
        return tuple(v.tensor for v in self.inputs if v is not None and v.tensor)

    @property
    def weights(self) -> tuple[Value, ...]:
        """The weights it reads."""
        return tuple(v for v in self.inputs if v is not None and v.weight)

    @property
    def op_type(self) -> str:
        """The kind without its domain."""
        return self.kind.rpartition("::")[2]


def record_of(step: Step) -> Record:
    """Return the op that a step of the main graph amounts to."""
    node, outcome = step.node, step.outcome
    inputs = (*node.inputs, *outcome.captured)
    outputs = tuple(
        (name, value)
        for name, value in zip(node.proto.output, outcome.outputs, strict=False)
        if name and value is not None
    )
    return Record(
        key=node.key,
        kind=kind_of(node.proto),
        dtype=_compute_dtype(node.kind, inputs, [value for _, value in outputs]),
        work=outcome.work,
        inputs=inputs,
        outputs=outputs,
    )


def split_dead(
    records: Sequence[Record], outputs: Iterable[str]
) -> tuple[list[Record], list[Record]]:
    """Return the ops that an output depends on, and the others, in order."""
    wanted = set(outputs)
    live, dead = [], []
    for record in reversed(records):
        if any(name in wanted for name, _ in record.outputs):
            live.append(record)
            wanted.update(record.reads)
        else:
            dead.append(record)
    return live[::-1], dead[::-1]


def _compute_dtype(
    kind: str, inputs: Sequence[Value | None], outputs: Sequence[Value]
) -> str:
    """Return the dtype of the first floating input, else of the first input.

    The scales of integer ops are floating, so those compute in their first input's
    dtype; eight bits are "int8" with or without a sign.
    """
    dtypes = [v.dtype for v in (*inputs, *outputs) if v is not None and v.dtype]
    is_integer = kind.startswith(_INTEGER_PREFIXES) or kind.endswith(_INTEGER_SUFFIXES)
    floats = [] if is_integer else [dtype for dtype in dtypes if dtype in FLOAT_DTYPES]
    dtype = (floats or dtypes or ["fp32"])[0]
    return "int8" if dtype == "uint8" else dtype
