"""Orders of a DAG against brute force."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcmpart.graph.graph import Csr
from mcmpart.graph.order import cycle_in, kahn_order, levels, reachability


@st.composite
def digraphs(draw, *, acyclic, max_nodes=9):
    """Draw (number of nodes, edges); repeats and, if allowed, self-loops included."""
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=20))
    if acyclic:
        pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    return num_nodes, pairs


def csr(num_nodes, edges):
    """Return the edges as compressed rows."""
    table = np.array(edges, dtype=np.int32).reshape(-1, 2)
    return Csr.from_pairs(table[:, 0], table[:, 1], num_nodes)


def closure(num_nodes, edges):
    """Return the pairs (u, v) joined by a path of at least one edge, by Warshall."""
    reach = [[False] * num_nodes for _ in range(num_nodes)]
    for u, v in edges:
        reach[u][v] = True
    for k in range(num_nodes):
        for u in range(num_nodes):
            for v in range(num_nodes):
                reach[u][v] |= reach[u][k] and reach[k][v]
    return reach


def test_order_of_a_diamond():
    """3 -> {0, 2} -> 1: the smallest ready node comes first."""
    assert kahn_order(4, [(3, 2), (3, 0), (2, 1), (0, 1)]) == [3, 0, 2, 1]


@given(digraphs(acyclic=True), st.randoms())
def test_every_edge_goes_forward(graph, rng):
    """Under any numbering of a DAG each node is placed once, after its predecessors."""
    num_nodes, edges = graph
    label = list(range(num_nodes))
    rng.shuffle(label)
    edges = [(label[u], label[v]) for u, v in edges]
    order = kahn_order(num_nodes, edges)
    assert sorted(order) == list(range(num_nodes))
    place = {node: i for i, node in enumerate(order)}
    assert all(place[u] < place[v] for u, v in edges)


@given(digraphs(acyclic=True))
def test_a_sorted_graph_keeps_its_order(graph):
    """Nodes numbered along the edges stay where they are."""
    assert kahn_order(*graph) == list(range(graph[0]))


@given(digraphs(acyclic=False))
def test_what_a_cycle_blocks_is_left_out(graph):
    """The order lacks exactly the nodes on a cycle or behind one."""
    num_nodes, edges = graph
    reach = closure(num_nodes, edges)
    blocked = {
        v
        for v in range(num_nodes)
        if any(reach[u][u] and (u == v or reach[u][v]) for u in range(num_nodes))
    }
    order = kahn_order(num_nodes, edges)
    assert set(range(num_nodes)) - set(order) == blocked


@given(digraphs(acyclic=False))
def test_a_found_cycle_is_a_cycle(graph):
    """Each step of the cycle, and the step back to its start, is an edge."""
    num_nodes, edges = graph
    if len(kahn_order(num_nodes, edges)) == num_nodes:
        return
    cycle = cycle_in(num_nodes, edges)
    assert len(set(cycle)) == len(cycle) > 0
    assert all(step in edges for step in pairwise([*cycle, cycle[0]]))


@given(digraphs(acyclic=True))
def test_levels_are_longest_distances(graph):
    """A node's level is 0 at a source, else one more than its highest predecessor's."""
    num_nodes, edges = graph
    level = levels(csr(num_nodes, edges))
    assert level.dtype == np.int32
    for v in range(num_nodes):
        assert level[v] == max((level[u] + 1 for u, w in edges if w == v), default=0)


@given(digraphs(acyclic=True))
def test_reachability_is_the_transitive_closure(graph):
    """Bit v of row u is set iff Warshall's algorithm finds a path."""
    num_nodes, edges = graph
    reach = reachability(csr(num_nodes, edges))
    found = [
        [bool(int(reach[u, v >> 6]) >> (v & 63) & 1) for v in range(num_nodes)]
        for u in range(num_nodes)
    ]
    assert found == closure(num_nodes, edges)


def test_reachability_across_words():
    """A chain of 130 nodes fills three words per row; node 0 reaches all others."""
    reach = reachability(csr(130, [(i, i + 1) for i in range(129)]))
    assert reach.shape == (130, 3)
    assert [int(word).bit_count() for word in reach[0]] == [63, 64, 2]
    assert [int(word).bit_count() for word in reach[100]] == [0, 27, 2]
    assert not reach[129].any()


@given(digraphs(acyclic=False))
def test_rows_hold_the_distinct_pairs_in_ascending_order(graph):
    """Csr.from_pairs drops repeats and sorts each row."""
    num_nodes, edges = graph
    rows = csr(num_nodes, edges)
    assert [rows.row(u).tolist() for u in range(num_nodes)] == [
        sorted({v for w, v in edges if w == u}) for u in range(num_nodes)
    ]
