"""Einsum: the equation parsed, and contracted from left to right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mcmpart.frontends.op_costs.reading import all_bytes, out_size, text_attribute
from mcmpart.frontends.op_costs.types import OpCost, OpView

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Equation:
    """One tuple of labels per operand, one for the output, and each label's size.

    The axes an ellipsis stands for are labelled "...1", "...2", from the right.
    """

    operands: tuple[Labels, ...]
    output: Labels
    sizes: dict[str, int]


def einsum_cost(op: OpView) -> OpCost:
    """Return the cost of contracting the operands from left to right.

    A pair costs 2 FLOPs for each point of its index space where it sums over some
    label, 1 where it does not (an outer or elementwise product). One operand costs a
    FLOP for each element that is summed away.
    """
    equation = _parse(op)
    if equation is None:
        return OpCost(out_size(op), all_bytes(op))
    operands, sizes = equation.operands, equation.sizes
    if len(operands) == 1:
        sums = set(operands[0]) - set(equation.output)
        flops = _space(operands[0], sizes) if sums else 0
        return OpCost(flops, all_bytes(op))
    flops, left = 0, operands[0]
    for position, right in enumerate(operands[1:], start=1):
        later = (*operands[position + 1 :], equation.output)
        kept = set[str]().union(*later)
        flops += _pair_flops(left, right, kept, sizes)
        left = tuple(x for x in dict.fromkeys(left + right) if x in kept)
    gemm = _gemm(equation) if len(operands) == 2 else None
    return OpCost(flops, all_bytes(op), gemm)


def _space(labels: Sequence[str], sizes: dict[str, int]) -> int:
    """Return the number of points of the labels' index space."""
    return math.prod(sizes[label] for label in set(labels))


def _pair_flops(
    left: Labels, right: Labels, kept: set[str], sizes: dict[str, int]
) -> int:
    """Return the FLOPs of one pairwise contraction."""
    sums = (set(left) | set(right)) - kept
    return (2 if sums else 1) * _space(left + right, sizes)


def _gemm(equation: _Equation) -> tuple[int, int, int] | None:
    """Return m, n, k of a two-operand equation that sums; batch labels count as m."""
    left, right = (set(labels) for labels in equation.operands)
    output = set(equation.output)
    summed = (left | right) - output
    if not summed:
        return None
    columns = (right - left) & output
    rows = (left | right) - summed - columns
    sizes = equation.sizes
    m, n, k = (_space(tuple(part), sizes) for part in (rows, columns, summed))
    return m, n, k


def _parse(op: OpView) -> _Equation | None:
    """Return the equation with its sizes, or None where shapes do not fit it."""
    text = text_attribute(op, "equation", "").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not text or len(terms) != len(op.inputs):
        return None
    operands, sizes = [], dict[str, int]()
    for term, tensor in zip(terms, op.inputs, strict=True):
        if tensor is None:
            return None
        labels = _labels(term, len(tensor.shape))
        if labels is None or len(labels) != len(tensor.shape):
            return None
        operands.append(labels)
        for label, size in zip(labels, tensor.shape, strict=True):
            # A size of 1 broadcasts, so it never decides.
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    dots = sorted((x for x in sizes if x.startswith("...")), key=_from_right)
    output = _explicit(right, dots) if arrow else _implicit(left, dots)
    if not set(output) <= set(sizes):
        return None
    return _Equation(tuple(operands), output, sizes)


def _from_right(label: str) -> int:
    """Order ellipsis labels as they stand in a shape, the leftmost first."""
    return -int(label.removeprefix("..."))


def _labels(term: str, rank: int) -> Labels | None:
    """Return one label per axis of an operand, or None where the term has more."""
    before, dots, after = term.partition("...")
    if not dots:
        return tuple(term)
    hidden = rank - len(before) - len(after)
    if hidden < 0:
        return None
    middle = (f"...{i}" for i in range(hidden, 0, -1))
    return (*before, *middle, *after)


def _explicit(term: str, dots: Sequence[str]) -> Labels:
    """Return the labels that follow the arrow."""
    before, ellipsis, after = term.partition("...")
    return (*before, *(dots if ellipsis else ()), *after)


def _implicit(left: str, dots: Sequence[str]) -> Labels:
    """Return the ellipsis, then the letters met once, in alphabetical order."""
    letters = Counter(c for c in left if c not in ",.")
    return (*dots, *sorted(c for c, times in letters.items() if times == 1))
