"""Graph: the computation graph as a frozen struct of arrays.

Axis letters: V ops, T tensors, U uses (which op reads which tensor), W weights,
X weight uses, E data edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

HOST: Final = -1
"""Producer of a tensor that comes from the host: a model input."""

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
ArrayT = TypeVar("ArrayT", bound=NDArray[np.generic])


@dataclass(frozen=True, slots=True, eq=False)
class Csr:
    """Compressed rows: row i holds ``indices[indptr[i]:indptr[i + 1]]``.

    Attributes
    ----------
    indptr
        ``[N + 1] int64``, non-decreasing, starts at 0.
    indices
        ``[M] int32``; within a row ascending unless the maker says otherwise.
    """

    indptr: Int64
    indices: Int32

    def row(self, i: int) -> Int32:
        """Return row ``i``, a view ``[n] int32``."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    @classmethod
    def from_pairs(
        cls, rows: NDArray[np.integer], columns: NDArray[np.integer], num_rows: int
    ) -> Csr:
        """Return the rows of the distinct pairs (rows[i], columns[i]), each ascending.

        Parameters
        ----------
        rows, columns
            ``[M]`` integers, non-negative, in any order, repeats allowed.
        num_rows
            Number of rows N, at least ``max(rows) + 1``.
        """
        width = int(columns.max()) + 1 if columns.size else 1
        keys = np.unique(rows.astype(np.int64) * width + columns)
        counts = np.bincount(keys // width, minlength=num_rows)
        indptr = np.zeros(num_rows + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        return cls(frozen(indptr), frozen((keys % width).astype(np.int32)))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a graph came from: the kind of file, its name, SHA-256 and the tool."""

    kind: str
    file: str = ""
    sha256: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A model's computation graph; make one with :class:`GraphBuilder`.

    Attributes
    ----------
    op_name, op_kind, op_dtype
        ``V`` strings each: unique readable key, kind (``domain::Kind`` outside the
        default ONNX domain), compute dtype (``"fp32"``, ``"int8"``, ...).
    op_flops, op_bytes
        ``[V] int64``: operations (a multiply-add counts 2) and bytes touched.
    op_gemm
        ``[V, 3] int64``: m, n, k of the matrix product the op amounts to, or zeros.
    op_seconds
        ``[V] float64``: measured time, NaN where there is none.
    op_replicable
        ``[V] bool``: the op has no chip of its own (docs/concepts.md).
    tensor_name, tensor_dtype, tensor_shape
        ``T`` entries each; the dtype is ``""`` and the shape None when unknown.
    tensor_producer
        ``[T] int32``: op index, or ``HOST``.
    tensor_bytes, tensor_is_output
        ``[T] int64`` and ``[T] bool``.
    use_tensor, use_op
        ``[U] int32``: op ``use_op[i]`` reads tensor ``use_tensor[i]``; distinct pairs,
        ascending by op, then tensor.
    weight_name, weight_dtype, weight_bytes
        ``W`` entries each (``[W] int64`` bytes).
    weight_use_weight, weight_use_op
        ``[X] int32``: distinct pairs of a weight and an op that reads it, ascending by
        op, then weight.
    together
        Groups of op indices that must share a chip.
    assumptions
        One sentence per guess the importer made.
    reads, writes
        Csr, op -> tensors it reads / produces.
    consumers
        Csr, tensor -> ops that read it.
    weights_of, users_of
        Csr, op -> weights and weight -> ops.
    successors, predecessors
        Csr over the data edges E, op -> ops.

    Notes
    -----
    Ops stand in topological order: every edge (u, v) has u < v.
    """

    name: str
    source: Source
    op_name: tuple[str, ...]
    op_kind: tuple[str, ...]
    op_dtype: tuple[str, ...]
    op_flops: Int64
    op_bytes: Int64
    op_gemm: Int64
    op_seconds: Float64
    op_replicable: Bool
    tensor_name: tuple[str, ...]
    tensor_dtype: tuple[str, ...]
    tensor_shape: tuple[tuple[int, ...] | None, ...]
    tensor_producer: Int32
    tensor_bytes: Int64
    tensor_is_output: Bool
    use_tensor: Int32
    use_op: Int32
    weight_name: tuple[str, ...]
    weight_dtype: tuple[str, ...]
    weight_bytes: Int64
    weight_use_weight: Int32
    weight_use_op: Int32
    together: tuple[tuple[int, ...], ...] = ()
    assumptions: tuple[str, ...] = ()
    reads: Csr = field(init=False, repr=False)
    writes: Csr = field(init=False, repr=False)
    consumers: Csr = field(init=False, repr=False)
    weights_of: Csr = field(init=False, repr=False)
    users_of: Csr = field(init=False, repr=False)
    successors: Csr = field(init=False, repr=False)
    predecessors: Csr = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._sort_pairs("use_op", "use_tensor")
        self._sort_pairs("weight_use_op", "weight_use_weight")
        for array in (
            self.op_flops,
            self.op_bytes,
            self.op_gemm,
            self.op_seconds,
            self.op_replicable,
            self.tensor_producer,
            self.tensor_bytes,
            self.tensor_is_output,
            self.use_tensor,
            self.use_op,
            self.weight_bytes,
            self.weight_use_weight,
            self.weight_use_op,
        ):
            frozen(array)
        produced = np.flatnonzero(self.tensor_producer != HOST)
        edge_of_use = self.tensor_producer[self.use_tensor]
        inner = edge_of_use != HOST
        derived = {
            "reads": (self.use_op, self.use_tensor, self.num_ops),
            "writes": (self.tensor_producer[produced], produced, self.num_ops),
            "consumers": (self.use_tensor, self.use_op, self.num_tensors),
            "weights_of": (self.weight_use_op, self.weight_use_weight, self.num_ops),
            "users_of": (self.weight_use_weight, self.weight_use_op, self.num_weights),
            "successors": (edge_of_use[inner], self.use_op[inner], self.num_ops),
            "predecessors": (self.use_op[inner], edge_of_use[inner], self.num_ops),
        }
        for name, (rows, columns, num_rows) in derived.items():
            object.__setattr__(self, name, Csr.from_pairs(rows, columns, num_rows))

    def _sort_pairs(self, row: str, column: str) -> None:
        """Bring the pairs of two fields into ascending order, row by row."""
        rows, columns = getattr(self, row), getattr(self, column)
        order = np.lexsort((columns, rows))
        object.__setattr__(self, row, np.ascontiguousarray(rows[order]))
        object.__setattr__(self, column, np.ascontiguousarray(columns[order]))

    @property
    def num_ops(self) -> int:
        """Number of ops V."""
        return len(self.op_name)

    @property
    def num_tensors(self) -> int:
        """Number of tensors T."""
        return len(self.tensor_name)

    @property
    def num_weights(self) -> int:
        """Number of weights W."""
        return len(self.weight_name)

    @property
    def num_edges(self) -> int:
        """Number of distinct data edges E."""
        return int(self.successors.indices.size)


def frozen(array: ArrayT) -> ArrayT:
    """Return ``array`` made read-only."""
    array.flags.writeable = False
    return array
