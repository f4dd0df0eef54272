"""Tests of disjoint sets and strong components."""

import numpy as np
import pytest

from mcmpart.graph import Csr
from mcmpart.rewrite._components import DisjointSets, strong_components


def csr(num_nodes, edges):
    """Return the successors of each node."""
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Csr.from_pairs(pairs[:, 0], pairs[:, 1], num_nodes)


def test_smallest_member_names_the_set():
    """Whatever the order of unions, the smallest member is the root."""
    sets = DisjointSets(5)
    sets.union(4, 3)
    sets.union(3, 1)
    assert sets.roots().tolist() == [0, 1, 2, 1, 1]


def test_two_cycles():
    """Two cycles joined one way are two components."""
    successors = csr(5, [(1, 4), (4, 1), (4, 2), (2, 3), (3, 2), (0, 1)])
    assert strong_components(successors).tolist() == [0, 1, 2, 2, 1]


def test_long_path_needs_no_recursion():
    """A cycle of 20,000 nodes is one component."""
    num = 20_000
    successors = csr(num, [(i, (i + 1) % num) for i in range(num)])
    assert not strong_components(successors).any()


@pytest.mark.parametrize("seed", range(30))
def test_against_closure(seed):
    """Two nodes share a component exactly if each reaches the other."""
    rng = np.random.default_rng(seed)
    adjacent = rng.random((9, 9)) < 0.2
    reach = adjacent | np.eye(9, dtype=bool)
    for _ in range(9):
        reach = reach | (reach.astype(int) @ reach.astype(int) > 0)
    mutual = reach & reach.T
    expected = mutual.argmax(axis=1)
    successors = csr(9, np.argwhere(adjacent))
    assert strong_components(successors).tolist() == expected.tolist()
