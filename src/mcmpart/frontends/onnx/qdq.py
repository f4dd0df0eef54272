"""Quantise-dequantise groups: a cut carries the quantised tensor.

QuantizeLinear shares a chip with the op whose output it quantises, and
DequantizeLinear with the op that reads it: one copy per reader, so that the tensor
between two chips is the one of 1 byte per element, not the one of 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcmpart.frontends.onnx.records import Record
from mcmpart.frontends.onnx.values import FLOAT_DTYPES
from mcmpart.frontends.report import Sentences, counted

_EIGHT_BITS = frozenset({"int8", "uint8"})
# Biases are stored as int32, weights also in fewer bits.
_OPERANDS = _EIGHT_BITS | {"int32", "int4", "uint4", "int2", "uint2"}


@dataclass(frozen=True, slots=True)
class Grouped:
    """The ops with copies of DequantizeLinear, and the groups that share a chip."""

    records: list[Record]
    together: list[tuple[str, ...]]


def group_qdq(
    records: Sequence[Record],
    outputs: frozenset[str],
    assumptions: Sentences,
    notes: Sentences,
) -> Grouped:
    """Copy each activation's DequantizeLinear to its readers, and group by chip."""
    if not any(_is(record, "QuantizeLinear") for record in records):
        return Grouped(list(records), [])
    typed = _in_eight_bits(records, assumptions)
    fixed = _of_weights_only(typed)
    copied, pairs = _copied(typed, outputs, fixed, notes)
    writer = {name: record.key for record in copied for name, _ in record.outputs}
    for record in copied:
        source = record.inputs[0] if record.inputs else None
        if not _is(record, "QuantizeLinear") or source is None:
            continue
        if source.tensor in writer and source.tensor not in fixed:
            pairs.append((writer[source.tensor], record.key))
    return Grouped(copied, _merged(pairs))


def _is(record: Record, op_type: str) -> bool:
    return record.op_type == op_type


def _of_weights_only(records: Sequence[Record]) -> set[str]:
    """Return the tensors that depend on weights alone."""
    fixed: set[str] = set()
    for record in records:
        if record.inputs and all(name in fixed for name in record.reads):
            fixed.update(name for name, _ in record.outputs)
    return fixed


def _in_eight_bits(records: Sequence[Record], assumptions: Sentences) -> list[Record]:
    """Return the ops, those on dequantised 8-bit operands computing in int8."""
    source: dict[str, str] = {}
    changed: list[Record] = []
    num_changed = 0
    for record in records:
        first = record.inputs[0] if record.inputs else None
        if _is(record, "DequantizeLinear") and first is not None:
            source.update((name, first.dtype) for name, _ in record.outputs)
        operands = [
            source.get(value.tensor, "")
            for value in record.inputs
            if value is not None and value.dtype in FLOAT_DTYPES
        ]
        if (
            record.op_type not in ("QuantizeLinear", "DequantizeLinear")
            and operands
            and operands[0] in _EIGHT_BITS
            and _OPERANDS.issuperset(operands)
        ):
            num_changed += 1
            changed.append(replace(record, dtype="int8"))
        else:
            changed.append(record)
    if num_changed:
        assumptions.add(
            "ops whose operands all come from 8-bit DequantizeLinear compute in int8",
            counted(num_changed, "op"),
        )
    return changed


def _copied(
    records: Sequence[Record],
    outputs: frozenset[str],
    fixed: set[str],
    notes: Sentences,
) -> tuple[list[Record], list[tuple[str, str]]]:
    """Return the ops with one DequantizeLinear per reader, and each such pair."""
    readers: dict[str, list[str]] = {}
    for record in records:
        for name in dict.fromkeys(record.reads):
            readers.setdefault(name, []).append(record.key)
    taken = {record.key for record in records}
    taken.update(name for record in records for name, _ in record.outputs)
    renamed: dict[tuple[str, str], str] = {}
    pairs: list[tuple[str, str]] = []
    result: list[Record] = []
    for original in records:
        record = _reading(original, renamed)
        if not _is(record, "DequantizeLinear") or record.outputs[0][0] in fixed:
            result.append(record)
            continue
        name = record.outputs[0][0]
        # A copy that gives a model output stays alone.
        owners = [*([""] if name in outputs else []), *readers.get(name, [])]
        copies = _copies(record, len(owners), taken)
        for copy, owner in zip(copies, owners, strict=True):
            if owner:
                renamed[owner, name] = copy.outputs[0][0]
                pairs.append((copy.key, owner))
        if len(copies) > 1:
            notes.add(
                "DequantizeLinear copied to each of its readers, so that a cut carries "
                "the quantised tensor",
                f"{record.key} ({len(copies)} copies)",
            )
        result += copies
    return result, pairs


def _reading(record: Record, renamed: dict[tuple[str, str], str]) -> Record:
    inputs = tuple(
        value
        if value is None or (record.key, value.tensor) not in renamed
        else replace(value, tensor=renamed[record.key, value.tensor])
        for value in record.inputs
    )
    return replace(record, inputs=inputs)


def _copies(record: Record, count: int, taken: set[str]) -> list[Record]:
    """Return ``count`` ops of the same kind, the first under its own name."""
    name, value = record.outputs[0]
    copies = [record]
    number = 1
    while len(copies) < count:
        number += 1
        key, tensor = f"{record.key}#{number}", f"{name}#{number}"
        if key in taken or tensor in taken:
            continue
        taken.update((key, tensor))
        outputs = ((tensor, replace(value, tensor=tensor)),)
        copies.append(replace(record, key=key, outputs=outputs))
    return copies


def _merged(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the connected groups of the pairs, in the order first met."""
    group_of: dict[str, list[str]] = {}
    for a, b in pairs:
        left = group_of.setdefault(a, [a])
        right = group_of.setdefault(b, [b])
        if left is right:
            continue
        if len(left) < len(right):
            left, right = right, left
        left += right
        for key in right:
            group_of[key] = left
    unique = {id(group): tuple(group) for group in group_of.values()}
    return list(unique.values())
