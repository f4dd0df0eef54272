"""Disjoint sets and strongly connected components, both without recursion."""

from __future__ import annotations

import numpy as np

from mcmpart.graph import Csr
from mcmpart.graph.graph import Int32


class DisjointSets:
    """Union-find over 0..n-1 where the smallest member names the set."""

    def __init__(self, num_nodes: int) -> None:
        self._parent = list(range(num_nodes))

    def find(self, node: int) -> int:
        """Return the smallest member of the node's set."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def union(self, a: int, b: int) -> None:
        """Join the sets of ``a`` and ``b``."""
        a, b = self.find(a), self.find(b)
        self._parent[max(a, b)] = min(a, b)

    def roots(self) -> Int32:
        """Return the smallest member of each node's set, ``[N] int32``."""
        return np.array([self.find(i) for i in range(len(self._parent))], np.int32)


def strong_components(successors: Csr) -> Int32:
    """Return for each node the smallest node of its strong component, ``[N] int32``.

    References
    ----------
    R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972,
    with the call stack kept by hand.
    """
    num_nodes = successors.indptr.size - 1
    start, heads = successors.indptr.tolist(), successors.indices.tolist()
    cursor = start[:-1]
    rank = [-1] * num_nodes
    low = [0] * num_nodes
    component = np.full(num_nodes, -1, dtype=np.int32)
    closed = [False] * num_nodes
    open_nodes: list[int] = []
    num_seen = 0
    for root in range(num_nodes):
        if rank[root] >= 0:
            continue
        calls = [root]
        while calls:
            node = calls[-1]
            if rank[node] < 0:
                rank[node] = low[node] = num_seen
                num_seen += 1
                open_nodes.append(node)
            descend = False
            while cursor[node] < start[node + 1]:
                head = heads[cursor[node]]
                if rank[head] < 0:
                    # The cursor stays: the edge is met again when the child is done.
                    calls.append(head)
                    descend = True
                    break
                if not closed[head]:
                    low[node] = min(low[node], low[head])
                cursor[node] += 1
            if descend:
                continue
            calls.pop()
            if low[node] == rank[node]:
                members = _pop_through(open_nodes, node)
                component[members] = min(members)
                for member in members:
                    closed[member] = True
    return component


def _pop_through(stack: list[int], last: int) -> list[int]:
    popped = [stack.pop()]
    while popped[-1] != last:
        popped.append(stack.pop())
    return popped
