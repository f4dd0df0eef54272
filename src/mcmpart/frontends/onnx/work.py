"""The work of one node: by a rule, by the user's word, or by a stated default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcmpart.frontends.onnx.scope import Context, Node
from mcmpart.frontends.onnx.structure import kind_of
from mcmpart.frontends.onnx.values import Value
from mcmpart.frontends.onnx.verdict import flag
from mcmpart.frontends.op_costs import cost_of

Gemm = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and bytes touched, and how much of their sum comes from a rule.

    Attributes
    ----------
    gemm
        m, n, k of the matrix product that a single op amounts to.
    ruled
        Part of ``flops + bytes`` that a rule or the user gave.
    is_ruled
        All of it has a rule, also where it is zero.
    """

    flops: int = 0
    bytes: int = 0
    gemm: Gemm | None = None
    ruled: int = 0
    is_ruled: bool = True

    def __add__(self, other: Work) -> Work:
        """Return both done one after the other."""
        return Work(
            flops=self.flops + other.flops,
            bytes=self.bytes + other.bytes,
            ruled=self.ruled + other.ruled,
            is_ruled=self.is_ruled and other.is_ruled,
        )

    def times(self, count: int) -> Work:
        """Return the work done ``count`` times."""
        return replace(
            self,
            flops=self.flops * count,
            bytes=self.bytes * count,
            gemm=None,
            ruled=self.ruled * count,
        )


def larger(a: Work, b: Work) -> Work:
    """Return the work of a choice between two: the larger FLOPs, the larger bytes."""
    flops, size = max(a.flops, b.flops), max(a.bytes, b.bytes)
    is_ruled = a.is_ruled and b.is_ruled
    ruled = flops + size if is_ruled else min(a.ruled, b.ruled)
    return Work(flops, size, None, ruled, is_ruled)


def work_of(context: Context, node: Node, outputs: tuple[Value | None, ...]) -> Work:
    """Return the work of a node that holds no body.

    An op without a rule touches its inputs and outputs and does one operation per
    output element; that is an assumption.
    """
    present = [v for v in (*node.inputs, *outputs) if v is not None]
    if any(v.type is None for v in present):
        return Work()
    kind = kind_of(node.proto)
    touched = sum(v.bytes for v in present)
    if kind in context.op_costs:
        context.costed_by_user.add(kind)
        flops = context.op_costs[kind]
        return Work(flops, touched, None, flops + touched)
    cost = cost_of(node.view(outputs))
    if cost is not None:
        return Work(cost.flops, cost.bytes, cost.gemm, cost.flops + cost.bytes)
    context.unruled.setdefault(kind, []).append(node.scope.path + node.key)
    context.assumptions.add(
        f"{kind} has no cost rule: taken as one operation per output element; set "
        f"--op-cost {flag(kind)}=FLOPS",
        node.scope.path + node.key,
        "ops",
    )
    flops = sum(v.type.size for v in outputs if v is not None and v.type is not None)
    return Work(flops, touched, is_ruled=False)
