"""Blocks: a graph at the granularity a search works on, as flat arrays.

A block is a set of ops that share a chip: one op each in the fine view, a group with
its views in the coarse one. Replicable ops belong to no block. What several blocks of
one chip pay only once (a weight, a HOST tensor, a replica) is a shared item.

Axis letters: N blocks, T cut tensors, J shared items, K chip classes, C chips.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mcmpart.graph.graph import HOST, Csr, Float64, Graph, Int32, Int64


class BlockArrays(NamedTuple):
    """What the compiled kernels read of a problem's blocks.

    Attributes
    ----------
    first_op
        ``[N] int32``: one op of each block, whose chip is the block's.
    block_s
        ``[K, N] float64``: seconds of all ops of the block, and of replicas that only
        this block needs.
    member_ptr, member
        Csr rows, block -> its ops, ascending.
    host_bytes, output_bytes, weight_bytes
        ``[N] int64``: HOST tensors and weights that only this block reads; model
        outputs that it writes.
    written_bytes, inner_peak_bytes
        ``[N] int64``: all tensors the block writes, and the largest sum of them that
        is live while it runs alone.
    tensor_producer, tensor_bytes, tensor_is_output
        ``[T]`` int32, int64, bool: tensors with a consumer in another block.
    consumer_ptr, consumer
        Csr rows, tensor -> the other blocks that read it, ascending.
    read_ptr, read
        Csr rows, block -> cut tensors of other blocks that it reads.
    write_ptr, write
        Csr rows, block -> cut tensors that it writes.
    item_s
        ``[K, J] float64``: seconds a chip pays once if any user is on it (replicas).
    item_host_bytes, item_weight_bytes
        ``[J] int64``: bytes a chip receives, and stores, once if any user is on it.
    user_ptr, user
        Csr rows, item -> blocks that need it.
    item_ptr, item
        Csr rows, block -> items that it needs.
    succ_ptr, succ, pred_ptr, pred
        Csr rows, distinct data edges between blocks.
    pin
        ``[N] int32``: the chip the user demands, or -1.
    same, apart
        ``[Q, 2] int32``: pairs of blocks that must, must not share a chip.
    """

    first_op: Int32
    block_s: Float64
    member_ptr: Int64
    member: Int32
    host_bytes: Int64
    output_bytes: Int64
    weight_bytes: Int64
    written_bytes: Int64
    inner_peak_bytes: Int64
    tensor_producer: Int32
    tensor_bytes: Int64
    tensor_is_output: np.ndarray[tuple[int], np.dtype[np.bool_]]
    consumer_ptr: Int64
    consumer: Int32
    read_ptr: Int64
    read: Int32
    write_ptr: Int64
    write: Int32
    item_s: Float64
    item_host_bytes: Int64
    item_weight_bytes: Int64
    user_ptr: Int64
    user: Int32
    item_ptr: Int64
    item: Int32
    succ_ptr: Int64
    succ: Int32
    pred_ptr: Int64
    pred: Int32
    pin: Int32
    same: Int32
    apart: Int32


class LiveArrays(NamedTuple):
    """What the liveness kernel reads: the graph op by op, in topological order.

    Attributes
    ----------
    write_ptr, write
        Csr rows, op -> tensors it writes.
    read_ptr, read
        Csr rows, op -> tensors it reads.
    consumer_ptr, consumer
        Csr rows, tensor -> ops that read it, ascending.
    tensor_bytes
        ``[T] int64``.
    replica
        ``[R] int32``: the replicable ops, ascending.
    replica_tensor
        ``[T] int32``: row of the tensor among those that replicas write, or -1.
    num_replica_tensors, replica_bytes
        How many those are, and their bytes together.
    """

    write_ptr: Int64
    write: Int32
    read_ptr: Int64
    read: Int32
    consumer_ptr: Int64
    consumer: Int32
    tensor_bytes: Int64
    replica: Int32
    replica_tensor: Int32
    num_replica_tensors: int
    replica_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a graph: their arrays and the way back to the ops.

    Attributes
    ----------
    arrays
        What kernels read.
    block_of
        ``[V] int32``: block of each op, -1 for a replicable op.
    """

    arrays: BlockArrays
    block_of: Int32

    @property
    def num_blocks(self) -> int:
        """Number of blocks N."""
        return int(self.arrays.first_op.size)

    def expand(self, chip_of_block: Int32) -> Int32:
        """Return the chip of each op, ``[..., V] int32``, from that of each block.

        A replicable op gets -1.
        """
        placed = self.block_of >= 0
        if not placed.any():
            return np.full((*chip_of_block.shape[:-1], placed.size), -1, np.int32)
        chip_of: Int32 = chip_of_block.take(self.block_of, axis=-1, mode="clip")
        if not placed.all():
            chip_of[..., ~placed] = -1
        return chip_of

    def contract(self, chip_of: Int32) -> Int32:
        """Return the chip of each block, ``[..., N] int32``, from that of each op."""
        chip_of_block: Int32 = chip_of.take(self.arrays.first_op, axis=-1)
        return chip_of_block


def item_bytes(arrays: BlockArrays) -> Int64:
    """Return what a chip stores once for all users of an item, ``[J] int64``."""
    stored: Int64 = arrays.item_weight_bytes + 2 * arrays.item_host_bytes
    return stored


def own_bytes(arrays: BlockArrays) -> Int64:
    """Return the weights and double buffers of each block alone, ``[N] int64``."""
    stored: Int64 = arrays.weight_bytes + 2 * (arrays.host_bytes + arrays.output_bytes)
    return stored


def bytes_alone(arrays: BlockArrays, live_bytes: Int64) -> Int64:
    """Return what each block needs of a chip that has nothing else, ``[N] int64``.

    Parameters
    ----------
    live_bytes
        ``[N] int64``: what is live while the block runs.
    """
    need = own_bytes(arrays) + live_bytes
    rows = np.repeat(item_bytes(arrays), np.diff(arrays.user_ptr))
    np.add.at(need, arrays.user, rows)
    return need


@dataclass(slots=True)
class _Items:
    """Collects what a chip pays once for all its users."""

    op_s: Float64
    block_s: Float64
    host_bytes: Int64
    weight_bytes: Int64
    shared: dict[tuple[int, ...], tuple[Float64, int, int]] = field(
        default_factory=dict
    )

    def add(
        self, users: Iterable[int], seconds: Float64, host: int, weight: int
    ) -> None:
        """Charge one user directly; keep what several share under the set of users."""
        key = tuple(sorted(set(users)))
        if len(key) == 1:
            self.block_s[:, key[0]] += seconds
            self.host_bytes[key[0]] += host
            self.weight_bytes[key[0]] += weight
        elif key:
            old = self.shared.get(key, (np.zeros(self.op_s.shape[0]), 0, 0))
            self.shared[key] = (old[0] + seconds, old[1] + host, old[2] + weight)


def make_blocks(
    graph: Graph,
    op_s: Float64,
    block_of: Int32,
    *,
    pin_of_op: dict[int, int],
    together: Iterable[tuple[int, ...]],
    apart: Iterable[tuple[int, int]],
) -> Blocks:
    """Return the blocks of ``graph``.

    Parameters
    ----------
    graph
        With its replicable ops marked.
    op_s
        ``[K, V] float64``, seconds of each op on each class of chip.
    block_of
        ``[V] int32``, -1 exactly for the replicable ops, otherwise dense block ids in
        a topological order of the blocks.
    pin_of_op
        Chip demanded for an op.
    together, apart
        Groups and pairs of op indices; groups within one block cost nothing.
    """
    num_blocks = int(block_of.max(initial=-1)) + 1
    ordinary = np.flatnonzero(block_of >= 0)
    first_op = np.full(num_blocks, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(first_op, block_of[ordinary], ordinary.astype(np.int32))
    members = Csr.from_pairs(block_of[ordinary], ordinary, num_blocks)
    items = _collect_items(graph, op_s, block_of, num_blocks)
    producer_block = _producer_block(graph, block_of)
    output_bytes = np.zeros(num_blocks, dtype=np.int64)
    outputs = np.flatnonzero(graph.tensor_is_output & (producer_block >= 0))
    np.add.at(output_bytes, producer_block[outputs], graph.tensor_bytes[outputs])
    cut, consumers = _cut_tensors(graph, producer_block, block_of)
    tensor_rows = np.repeat(np.arange(cut.size), np.diff(consumers.indptr))
    producer = producer_block[cut]
    edge_from = producer[tensor_rows]
    reads = Csr.from_pairs(consumers.indices, tensor_rows, num_blocks)
    writes = Csr.from_pairs(producer, np.arange(cut.size), num_blocks)
    successors = Csr.from_pairs(edge_from, consumers.indices, num_blocks)
    predecessors = Csr.from_pairs(consumers.indices, edge_from, num_blocks)
    keys = list(items.shared)
    key_rows = np.repeat(np.arange(len(keys)), [len(key) for key in keys])
    members_of_keys = np.array([n for key in keys for n in key], dtype=np.int32)
    users = Csr.from_pairs(key_rows, members_of_keys, len(keys))
    items_of = Csr.from_pairs(members_of_keys, key_rows, num_blocks)
    shared = [items.shared[key] for key in keys]
    arrays = BlockArrays(
        first_op=first_op,
        block_s=items.block_s,
        member_ptr=members.indptr,
        member=members.indices,
        host_bytes=items.host_bytes,
        output_bytes=output_bytes,
        weight_bytes=items.weight_bytes,
        written_bytes=_written_bytes(graph, producer_block, num_blocks),
        inner_peak_bytes=_inner_peak_bytes(graph, members),
        tensor_producer=producer,
        tensor_bytes=graph.tensor_bytes[cut],
        tensor_is_output=graph.tensor_is_output[cut],
        consumer_ptr=consumers.indptr,
        consumer=consumers.indices,
        read_ptr=reads.indptr,
        read=reads.indices,
        write_ptr=writes.indptr,
        write=writes.indices,
        item_s=np.array([s for s, _, _ in shared]).reshape(-1, op_s.shape[0]).T.copy(),
        item_host_bytes=np.array([host for _, host, _ in shared], dtype=np.int64),
        item_weight_bytes=np.array([size for _, _, size in shared], dtype=np.int64),
        user_ptr=users.indptr,
        user=users.indices,
        item_ptr=items_of.indptr,
        item=items_of.indices,
        succ_ptr=successors.indptr,
        succ=successors.indices,
        pred_ptr=predecessors.indptr,
        pred=predecessors.indices,
        pin=_pins(block_of, pin_of_op, num_blocks),
        same=_pairs(
            (block_of[group[0]], block_of[op]) for group in together for op in group[1:]
        ),
        apart=_pairs((block_of[a], block_of[b]) for a, b in apart),
    )
    return Blocks(arrays, block_of)


def make_live_arrays(graph: Graph) -> LiveArrays:
    """Return what the liveness kernel reads of ``graph``."""
    produced = graph.tensor_producer != HOST
    by_replica = np.zeros(graph.num_tensors, dtype=np.bool_)
    by_replica[produced] = graph.op_replicable[graph.tensor_producer[produced]]
    rows = np.full(graph.num_tensors, -1, dtype=np.int32)
    rows[by_replica] = np.arange(by_replica.sum(), dtype=np.int32)
    return LiveArrays(
        write_ptr=graph.writes.indptr,
        write=graph.writes.indices,
        read_ptr=graph.reads.indptr,
        read=graph.reads.indices,
        consumer_ptr=graph.consumers.indptr,
        consumer=graph.consumers.indices,
        tensor_bytes=graph.tensor_bytes,
        replica=np.flatnonzero(graph.op_replicable).astype(np.int32),
        replica_tensor=rows,
        num_replica_tensors=int(by_replica.sum()),
        replica_bytes=int(graph.tensor_bytes[by_replica].sum()),
    )


def replica_readers(graph: Graph, block_of: Int32) -> dict[int, frozenset[int]]:
    """Return, for each replicable op, the blocks that need it, directly or not."""
    readers: dict[int, frozenset[int]] = {}
    for r in np.flatnonzero(graph.op_replicable)[::-1].tolist():
        found: set[int] = set()
        for reader in graph.successors.row(r).tolist():
            if graph.op_replicable[reader]:
                found |= readers[reader]
            else:
                found.add(int(block_of[reader]))
        readers[r] = frozenset(found)
    return readers


def _collect_items(
    graph: Graph, op_s: Float64, block_of: Int32, num_blocks: int
) -> _Items:
    block_s = np.zeros((op_s.shape[0], num_blocks))
    ordinary = np.flatnonzero(block_of >= 0)
    for k in range(op_s.shape[0]):
        np.add.at(block_s[k], block_of[ordinary], op_s[k, ordinary])
    zeros = np.zeros(num_blocks, dtype=np.int64)
    items = _Items(op_s, block_s, zeros, zeros.copy())
    readers = replica_readers(graph, block_of)

    def blocks_of(ops: Int32) -> set[int]:
        found: set[int] = set()
        for op in ops.tolist():
            block = int(block_of[op])
            if block >= 0:
                found.add(block)
            else:
                found |= readers[op]
        return found

    nothing = np.zeros(op_s.shape[0])
    for r, blocks in readers.items():
        items.add(blocks, op_s[:, r], 0, 0)
    for t in np.flatnonzero(graph.tensor_producer == HOST).tolist():
        users = blocks_of(graph.consumers.row(t))
        items.add(users, nothing, int(graph.tensor_bytes[t]), 0)
    for w in range(graph.num_weights):
        users = blocks_of(graph.users_of.row(w))
        items.add(users, nothing, 0, int(graph.weight_bytes[w]))
    return items


def _written_bytes(graph: Graph, producer_block: Int32, num_blocks: int) -> Int64:
    written = np.zeros(num_blocks, dtype=np.int64)
    produced = producer_block >= 0
    np.add.at(written, producer_block[produced], graph.tensor_bytes[produced])
    return written


def _inner_peak_bytes(graph: Graph, members: Csr) -> Int64:
    """Return the peak of each block run alone; what leaves it stays to its end."""
    peak = np.zeros(members.indptr.size - 1, dtype=np.int64)
    for n in range(peak.size):
        ops = members.row(n).tolist()
        inside = set(ops)
        freed_after: dict[int, int] = dict.fromkeys(ops, 0)
        now = 0
        for op in ops:
            for t in graph.writes.row(op).tolist():
                readers = graph.consumers.row(t).tolist()
                now += int(graph.tensor_bytes[t])
                if inside.issuperset(readers):
                    last = max(readers, default=op)
                    freed_after[last] += int(graph.tensor_bytes[t])
            peak[n] = max(peak[n], now)
            now -= freed_after[op]
    return peak


def _producer_block(graph: Graph, block_of: Int32) -> Int32:
    """Return the block that writes each tensor, -1 for HOST and replicas."""
    block = np.full(graph.num_tensors, -1, dtype=np.int32)
    produced = graph.tensor_producer != HOST
    block[produced] = block_of[graph.tensor_producer[produced]]
    return block


def _cut_tensors(
    graph: Graph, producer_block: Int32, block_of: Int32
) -> tuple[Int64, Csr]:
    """Return the tensors that another block reads, and those blocks by row."""
    source = producer_block[graph.use_tensor]
    target = block_of[graph.use_op]
    crossing = (source >= 0) & (source != target)
    cut, row = np.unique(graph.use_tensor[crossing], return_inverse=True)
    return cut.astype(np.int64), Csr.from_pairs(row, target[crossing], cut.size)


def _pins(block_of: Int32, pin_of_op: dict[int, int], num_blocks: int) -> Int32:
    pin = np.full(num_blocks, -1, dtype=np.int32)
    for op, chip in pin_of_op.items():
        pin[block_of[op]] = chip
    return pin


def _pairs(pairs: Iterable[tuple[int, int]]) -> Int32:
    distinct = sorted({(int(a), int(b)) for a, b in pairs if a != b})
    return np.array(distinct, dtype=np.int32).reshape(-1, 2)
