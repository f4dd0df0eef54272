"""Counts of ancestors, and how far the ends of edges can stand apart."""

import itertools

import numpy as np
import pytest

from mcmpart.graph.graph import Csr
from mcmpart.solver._spans import edge_spans


def counted(num_blocks, edges, *, triangle):
    """Return spans by edge and the counts before and after, from sets of blocks."""
    succ = {u: {v for w, v in edges if w == u} for u in range(num_blocks)}
    after, before = {}, {n: set() for n in range(num_blocks)}
    for n in reversed(range(num_blocks)):
        after[n] = succ[n].union(*(after[v] for v in succ[n]))
        for v in after[n]:
            before[v].add(n)
    spans = []
    for u, v in sorted(edges):
        elsewhere = {u, v} | before[u] | after[v]
        if triangle:
            elsewhere |= after[u] & before[v]
        spans.append(1 + num_blocks - len(elsewhere))
    return (
        spans,
        [len(before[n]) for n in range(num_blocks)],
        [len(after[n]) for n in range(num_blocks)],
    )


def found(num_blocks, edges, *, triangle):
    """Return what the kernel counts."""
    u, v = np.array(sorted(edges), dtype=int).reshape(-1, 2).T
    succ = Csr.from_pairs(u, v, num_blocks)
    counts = edge_spans(succ.indptr, succ.indices, triangle)
    return tuple(count.tolist() for count in counts)


@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("num_blocks", [1, 2, 9, 63, 64, 65, 127, 128, 129, 150, 200])
def test_counts_equal_sets(num_blocks, triangle):
    """On random graphs of one, two and more words of 64 blocks."""
    rng = np.random.default_rng(num_blocks)
    for reach in (2, 10, num_blocks):
        edges = [
            (u, v)
            for u, v in itertools.combinations(range(num_blocks), 2)
            if v - u <= reach and rng.random() < 1.2 / reach
        ]
        wanted = counted(num_blocks, edges, triangle=triangle)
        assert found(num_blocks, edges, triangle=triangle) == wanted


def test_a_residual_block():
    """A path 0 -> 1 -> 2 -> 3 with the skip 0 -> 2, and two blocks 4, 5 without edges.

    Between the ends of each edge stand 4 and 5 at most: span 3. On the skip it is 1 as
    well, span 4, but for the triangle rule.
    """
    edges = [(0, 1), (0, 2), (1, 2), (2, 3)]
    free, before, after = found(6, edges, triangle=False)
    bound, _, _ = found(6, edges, triangle=True)
    assert before == [0, 1, 2, 3, 0, 0]
    assert after == [3, 2, 1, 0, 0, 0]
    assert free == [3, 4, 3, 3]
    assert bound == [3, 3, 3, 3]


def test_no_blocks():
    """A graph without blocks has no spans."""
    assert found(0, [], triangle=True) == ([], [], [])
