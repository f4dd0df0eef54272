"""GraphBuilder: names in, dense ids out; the only way to make a Graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mcmpart.errors import GraphError
from mcmpart.graph.graph import HOST, Graph, Int32, Source
from mcmpart.graph.order import cycle_in, kahn_order

INT64_MAX = 2**63 - 1
MAX_TOTAL = 2**56
"""Most bytes, and most FLOPs, of a whole graph: sums over chips stay far below 2^63."""

MAX_SECONDS = 1e9
"""Longest measured time of an op: sums stay finite."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor by name: its bytes, dtype (``""`` unknown) and shape (None unknown)."""

    name: str
    bytes: int
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class OpSpec:
    """An op by name, with the names of what it reads and the tensors it writes.

    ``reads`` may name HOST tensors and outputs of other ops, in any order and before
    they are declared; ``weights`` names weights. ``gemm`` is (m, n, k) or None;
    ``seconds`` is a measured time or None.
    """

    name: str
    kind: str
    dtype: str = "fp32"
    flops: int = 0
    bytes: int = 0
    gemm: tuple[int, int, int] | None = None
    seconds: float | None = None
    replicable: bool = False
    reads: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    writes: tuple[TensorSpec, ...] = ()


@dataclass(slots=True)
class GraphBuilder:
    """Collects ops, tensors and weights in any order, then checks and sorts them.

    Examples
    --------
    >>> builder = GraphBuilder("toy")
    >>> builder.host_tensor(TensorSpec("x", 8))
    >>> builder.op(OpSpec("relu", "Relu", reads=("x",), writes=(TensorSpec("y", 8),)))
    >>> builder.output("y")
    >>> builder.build().num_ops
    1
    """

    name: str
    source: Source = field(default_factory=lambda: Source("builder"))
    _host: list[TensorSpec] = field(default_factory=list)
    _weights: list[TensorSpec] = field(default_factory=list)
    _ops: list[OpSpec] = field(default_factory=list)
    _outputs: list[str] = field(default_factory=list)
    _together: list[tuple[str, ...]] = field(default_factory=list)
    _assumptions: list[str] = field(default_factory=list)

    def host_tensor(self, tensor: TensorSpec) -> None:
        """Add a tensor that comes from the host (a model input)."""
        self._host.append(tensor)

    def weight(self, weight: TensorSpec) -> None:
        """Add a weight; its shape is not kept."""
        self._weights.append(weight)

    def op(self, op: OpSpec) -> None:
        """Add an op; two ops may not share a name (see :func:`unique_names`)."""
        self._ops.append(op)

    def output(self, tensor: str) -> None:
        """Mark a tensor as a model output (a weight or a HOST tensor may be one)."""
        self._outputs.append(tensor)

    def together(self, ops: Iterable[str]) -> None:
        """Demand that the ops share a chip."""
        self._together.append(tuple(ops))

    def assume(self, sentence: str) -> None:
        """Record a guess that the plan must show."""
        self._assumptions.append(sentence)

    def build(self) -> Graph:
        """Return the graph, its ops in a stable topological order.

        Raises
        ------
        GraphError
            With every fault: a tensor written twice or never, a name used twice, a
            cycle, a negative or non-finite number, an unknown output or group member.
        """
        faults = self._faults() or self._total_faults()
        if faults:
            raise GraphError(self.name, faults)
        producer = {
            tensor.name: i for i, op in enumerate(self._ops) for tensor in op.writes
        }
        edges = [
            (producer[name], i)
            for i, op in enumerate(self._ops)
            for name in op.reads
            if name in producer
        ]
        order = kahn_order(len(self._ops), edges)
        if len(order) < len(self._ops):
            names = [self._ops[i].name for i in cycle_in(len(self._ops), edges)]
            shown = " -> ".join([*names[:6], *(["..."] if len(names) > 6 else [])])
            raise GraphError(
                self.name,
                [f"the ops form a cycle ({shown} -> {names[0]}): remove one edge"],
            )
        return self._assemble([self._ops[i] for i in order])

    def _faults(self) -> list[str]:
        faults: list[str] = []
        writer: dict[str, str] = {}
        for tensor in self._host:
            _declare(writer, tensor.name, "the model's inputs", faults)
        for weight in self._weights:
            _declare(writer, weight.name, "the weights", faults)
        weights = {weight.name for weight in self._weights}
        seen_ops: set[str] = set()
        for op in self._ops:
            if op.name in seen_ops:
                faults.append(f"two ops are called {op.name!r}: rename one")
            seen_ops.add(op.name)
            for tensor in op.writes:
                _declare(writer, tensor.name, f"op {op.name!r}", faults)
            faults.extend(_number_faults(op))
        for tensor in (*self._host, *self._weights):
            faults.extend(_tensor_faults(tensor))
        for op in self._ops:
            faults.extend(
                f"op {op.name!r} reads {name!r}, which no op writes and which is no "
                "input of the model"
                for name in op.reads
                if name not in writer or name in weights
            )
            faults.extend(
                f"op {op.name!r} reads the weight {name!r}, which is not declared"
                for name in op.weights
                if name not in weights
            )
        faults.extend(
            f"the model output {name!r} is written by no op"
            for name in self._outputs
            if name not in writer
        )
        faults.extend(
            f"a together group names {name!r}, which is no op"
            for group in self._together
            for name in group
            if name not in seen_ops
        )
        return faults

    def _total_faults(self) -> list[str]:
        """Return which totals are too large to be summed over chips exactly."""
        writes = [tensor for op in self._ops for tensor in op.writes]
        sized = [*self._host, *self._weights, *writes]
        totals = {
            "bytes of tensors and weights": sum(tensor.bytes for tensor in sized),
            "elements of tensors": sum(
                math.prod(tensor.shape) for tensor in sized if tensor.shape
            ),
            "bytes touched by ops": sum(op.bytes for op in self._ops),
            "FLOPs": sum(op.flops for op in self._ops),
        }
        return [
            f"the graph has {total:.3g} {what}, more than the {MAX_TOTAL:.3g} that a "
            "plan can count: check its dimensions"
            for what, total in totals.items()
            if total > MAX_TOTAL
        ]

    def _assemble(self, ops: Sequence[OpSpec]) -> Graph:
        tensors = [(HOST, tensor) for tensor in self._host]
        tensors += [(i, tensor) for i, op in enumerate(ops) for tensor in op.writes]
        tensor_id = {tensor.name: t for t, (_, tensor) in enumerate(tensors)}
        weight_id = {weight.name: w for w, weight in enumerate(self._weights)}
        op_id = {op.name: i for i, op in enumerate(ops)}
        outputs = np.zeros(len(tensors), dtype=np.bool_)
        for name in self._outputs:
            if name in tensor_id:
                outputs[tensor_id[name]] = True
        uses = _distinct(
            (tensor_id[name], i) for i, op in enumerate(ops) for name in op.reads
        )
        weight_uses = _distinct(
            (weight_id[name], i) for i, op in enumerate(ops) for name in op.weights
        )
        together = (
            tuple(sorted({op_id[name] for name in group})) for group in self._together
        )
        return Graph(
            name=self.name,
            source=self.source,
            op_name=tuple(op.name for op in ops),
            op_kind=tuple(op.kind for op in ops),
            op_dtype=tuple(op.dtype for op in ops),
            op_flops=np.array([op.flops for op in ops], dtype=np.int64),
            op_bytes=np.array([op.bytes for op in ops], dtype=np.int64),
            op_gemm=np.array(
                [op.gemm or (0, 0, 0) for op in ops], dtype=np.int64
            ).reshape(-1, 3),
            op_seconds=np.array(
                [math.nan if op.seconds is None else op.seconds for op in ops],
                dtype=np.float64,
            ),
            op_replicable=np.array([op.replicable for op in ops], dtype=np.bool_),
            tensor_name=tuple(tensor.name for _, tensor in tensors),
            tensor_dtype=tuple(tensor.dtype for _, tensor in tensors),
            tensor_shape=tuple(
                None
                if tensor.shape is None
                else tuple(int(dim) for dim in tensor.shape)
                for _, tensor in tensors
            ),
            tensor_producer=np.array([p for p, _ in tensors], dtype=np.int32),
            tensor_bytes=np.array([t.bytes for _, t in tensors], dtype=np.int64),
            tensor_is_output=outputs,
            use_tensor=np.ascontiguousarray(uses[:, 0]),
            use_op=np.ascontiguousarray(uses[:, 1]),
            weight_name=tuple(weight.name for weight in self._weights),
            weight_dtype=tuple(weight.dtype for weight in self._weights),
            weight_bytes=np.array([w.bytes for w in self._weights], dtype=np.int64),
            weight_use_weight=np.ascontiguousarray(weight_uses[:, 0]),
            weight_use_op=np.ascontiguousarray(weight_uses[:, 1]),
            together=tuple(group for group in together if len(group) > 1),
            assumptions=tuple(self._assumptions),
        )


def unique_names(names: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Return one unique, readable key per op, close to the name it had.

    An empty name becomes ``kind_index`` (``relu_3``); the second op called ``n``
    becomes ``n_1``, or the next free number.
    """
    taken = {name for name in names if name}
    used: set[str] = set()
    # Where the search for a free number stopped, so that 20,000 ops of one name take
    # linear time.
    counts: dict[str, int] = {}
    unique = []
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        stem = name or f"{kind.rpartition('::')[2].lower()}_{i}"
        key = stem
        while key in used or (key in taken and key != name):
            counts[stem] = counts.get(stem, 0) + 1
            key = f"{stem}_{counts[stem]}"
        used.add(key)
        unique.append(key)
    return unique


def _declare(writer: dict[str, str], name: str, by: str, faults: list[str]) -> None:
    if name in writer:
        faults.append(
            f"tensor {name!r} is written twice, by {writer[name]} and by {by}: "
            "a tensor has one producer"
        )
    writer[name] = by


def _is_size(value: object) -> bool:
    # A float would be cut to an integer without a word by the arrays of the Graph.
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return 0 <= int(value) <= INT64_MAX


def _number_faults(op: OpSpec) -> list[str]:
    faults = [
        f"op {op.name!r} has {value} {what}: give a whole number from 0 to 2^63 - 1"
        for what, value in (("FLOPs", op.flops), ("bytes", op.bytes))
        if not _is_size(value)
    ]
    if op.gemm is not None and not (
        len(op.gemm) == 3 and all(_is_size(size) for size in op.gemm)
    ):
        faults.append(
            f"op {op.name!r} has the gemm {op.gemm}: give m, n and k, each a whole "
            "number, 0 or more, or None"
        )
    for tensor in op.writes:
        faults.extend(_tensor_faults(tensor))
    if op.seconds is not None and not 0 <= op.seconds <= MAX_SECONDS:
        faults.append(
            f"op {op.name!r} has the time {op.seconds} s: give 0 to {MAX_SECONDS:g}"
        )
    return faults


def _tensor_faults(tensor: TensorSpec) -> list[str]:
    faults = []
    if not _is_size(tensor.bytes):
        faults.append(
            f"tensor {tensor.name!r} has {tensor.bytes} bytes: give a whole number "
            "from 0 to 2^63 - 1"
        )
    if tensor.shape is not None and not all(_is_size(dim) for dim in tensor.shape):
        faults.append(
            f"tensor {tensor.name!r} has the shape {tensor.shape}: give whole numbers, "
            "0 or more, or None where it is unknown"
        )
    return faults


def _distinct(pairs: Iterable[tuple[int, int]]) -> Int32:
    rows = np.array(list(dict.fromkeys(pairs)), dtype=np.int32)
    return rows.reshape(-1, 2)
