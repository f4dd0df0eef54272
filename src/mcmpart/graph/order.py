"""Orders of a DAG: topological order, cycles, levels, reachability."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mcmpart.graph.graph import Csr, Int32


def kahn_order(num_nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return a topological order that takes the smallest ready node first.

    An already sorted graph keeps its order. Where the edges hold a cycle, the nodes on
    it and behind it are missing from the result.
    """
    successors: list[list[int]] = [[] for _ in range(num_nodes)]
    missing = [0] * num_nodes
    for u, v in edges:
        successors[u].append(v)
        missing[v] += 1
    ready = [v for v in range(num_nodes) if missing[v] == 0]
    order = []
    while ready:
        u = heapq.heappop(ready)
        order.append(u)
        for v in successors[u]:
            missing[v] -= 1
            if missing[v] == 0:
                heapq.heappush(ready, v)
    return order


def cycle_in(num_nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the nodes of one cycle in order; the edges must hold one."""
    left = set(range(num_nodes)).difference(kahn_order(num_nodes, edges))
    predecessor: dict[int, int] = {}
    for u, v in edges:
        if u in left and v in left:
            predecessor[v] = u
    node = next(iter(predecessor))
    position: dict[int, int] = {}
    path: list[int] = []
    while node not in position:
        position[node] = len(path)
        path.append(node)
        node = predecessor[node]
    return path[position[node] :][::-1]


def levels(successors: Csr) -> Int32:
    """Return the longest distance of each op from a source, ``[V] int32``.

    The ops must stand in topological order.
    """
    num_ops = successors.indptr.size - 1
    level = np.zeros(num_ops, dtype=np.int32)
    for u in range(num_ops):
        row = successors.row(u)
        np.maximum.at(level, row, level[u] + 1)
    return level


def reachability(successors: Csr) -> NDArray[np.uint64]:
    """Return the transitive closure as bitsets, ``[V, ceil(V / 64)] uint64``.

    Bit v of row u is set iff a path u ~> v with at least one edge exists. Needs
    V^2 / 8 bytes; the ops must stand in topological order.
    """
    num_ops = successors.indptr.size - 1
    reach = np.zeros((num_ops, (num_ops + 63) // 64), dtype=np.uint64)
    for u in range(num_ops - 1, -1, -1):
        for v in successors.row(u):
            reach[u] |= reach[v]
            reach[u, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    return reach
