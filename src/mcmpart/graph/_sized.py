"""SizedBuilder: a GraphBuilder that knows shapes, for the synthetic graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.graph import Graph, Source

DTYPE = "int8"
Shape = tuple[int, ...]


@dataclass(slots=True)
class SizedBuilder:
    """A GraphBuilder that knows the shape of each tensor and counts bytes touched."""

    name: str
    shape: dict[str, Shape] = field(default_factory=dict)
    weight_shape: dict[str, Shape] = field(default_factory=dict)
    builder: GraphBuilder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = GraphBuilder(self.name, Source("synthetic", tool="mcmpart"))

    def host(self, name: str, shape: Shape) -> str:
        self.shape[name] = shape
        self.builder.host_tensor(_spec(name, shape))
        return name

    def weight(self, name: str, shape: Shape) -> str:
        self.weight_shape[name] = shape
        self.builder.weight(_spec(name, shape))
        return name

    def op(
        self,
        name: str,
        kind: str,
        reads: tuple[str, ...],
        shape: Shape,
        *,
        flops: int = 0,
        weights: tuple[int, ...] = (),
        tied: tuple[str, ...] = (),
        gemm: tuple[int, int, int] | None = None,
        seconds: float | None = None,
        view: bool = False,
        extra: tuple[Shape, ...] = (),
    ) -> str:
        """Add an op with new weights of the given bytes; return its first tensor."""
        own = tuple(
            self.weight(f"{name}.w{i}", (size,)) for i, size in enumerate(weights)
        )
        names = (f"{name}:0", *self.extra_names(name, len(extra)))
        writes = [_spec(t, s) for t, s in zip(names, (shape, *extra), strict=True)]
        self.shape.update((spec.name, spec.shape or ()) for spec in writes)
        touched = sum(math.prod(self.shape[t]) for t in {*reads, *names})
        touched += sum(math.prod(self.weight_shape[w]) for w in (*own, *tied))
        self.builder.op(
            OpSpec(
                name,
                kind,
                DTYPE,
                flops=flops,
                bytes=0 if view else touched,
                gemm=gemm,
                seconds=seconds,
                reads=reads,
                weights=own + tied,
                writes=tuple(writes),
            )
        )
        return names[0]

    @staticmethod
    def extra_names(op: str, count: int) -> tuple[str, ...]:
        return tuple(f"{op}:{i + 1}" for i in range(count))

    def pointwise(
        self,
        name: str,
        kind: str,
        reads: tuple[str, ...],
        shape: Shape | None = None,
        *,
        per_item: int = 1,
        weights: tuple[int, ...] = (),
    ) -> str:
        """Add an op of ``per_item`` FLOPs per element of its largest tensor."""
        shape = self.shape[reads[0]] if shape is None else shape
        items = max(math.prod(s) for s in (shape, *(self.shape[t] for t in reads)))
        return self.op(
            name, kind, reads, shape, flops=per_item * items, weights=weights
        )

    def view(self, name: str, kind: str, read: str, shape: Shape) -> str:
        return self.op(name, kind, (read,), shape, view=True)

    def gather(self, name: str, ids: str, table: str, shape: Shape) -> str:
        """Add a table look-up: it touches the rows it takes, not the whole table."""
        writes = (_spec(f"{name}:0", shape),)
        self.shape[f"{name}:0"] = shape
        touched = math.prod(self.shape[ids]) + 2 * math.prod(shape)
        self.builder.op(
            OpSpec(
                name,
                "Gather",
                DTYPE,
                bytes=touched,
                reads=(ids,),
                weights=(table,),
                writes=writes,
            )
        )
        return writes[0].name

    def matmul(self, name: str, a: str, b: str | int) -> str:
        """Add a [..., k] times b: a tensor [..., k, n], or a new weight n wide."""
        *batch, m, k = self.shape[a]
        n = b if isinstance(b, int) else self.shape[b][-1]
        return self.op(
            name,
            "MatMul",
            (a,) if isinstance(b, int) else (a, b),
            (*batch, m, n),
            flops=2 * math.prod(batch) * m * n * k,
            weights=(k * n,) if isinstance(b, int) else (),
            gemm=(math.prod(batch) * m, n, k),
        )

    def build(self, *outputs: str) -> Graph:
        for name in outputs:
            self.builder.output(name)
        return self.builder.build()


def _spec(name: str, shape: Shape) -> TensorSpec:
    return TensorSpec(name, math.prod(shape), DTYPE, shape)
