"""Arcs and paths of the chip graph, and which more the triangle rule forbids."""

import itertools

import numpy as np
import pytest

from mcmpart.solver import _chip_graph
from mcmpart.solver._arrays import new_domains


@pytest.fixture(scope="module")
def kernels(tools):
    """Give add_arc and add_path, callable from Python."""
    _arc, _path = _chip_graph.add_arc, _chip_graph.add_path

    @tools.compiled
    def add_arc(a, b, domains):
        return _arc(a, b, domains)

    @tools.compiled
    def add_path(a, b, domains):
        return _path(a, b, domains)

    return add_arc, add_path


def empty_graph(num_chips):
    """Return domains with nothing but an empty chip graph."""
    domains = new_domains(0, num_chips, 0)
    domains.graph[:] = 0
    domains.chip["open_out"] = domains.chip["open_in"] = 2**64 - 1
    return domains


def pairs_of(graph, out, into):
    """Return the pairs of chips of two opposite masks, which must agree."""
    forward = {(c, d) for c, ds in enumerate(graph[out].tolist()) for d in chips_in(ds)}
    backward = {
        (c, d) for d, cs in enumerate(graph[into].tolist()) for c in chips_in(cs)
    }
    assert forward == backward
    return forward


def chips_in(mask):
    """Return the chips of a mask."""
    return [c for c in range(mask.bit_length()) if mask >> c & 1]


def assert_graph(domains, plain):
    """Compare all masks with the plain chip graph."""
    graph = domains.graph
    assert pairs_of(graph, "arcs_out", "arcs_in") == plain.arcs
    assert pairs_of(graph, "reaches", "reached_by") == plain.reach
    assert pairs_of(graph, "no_path_out", "no_path_in") == plain.no_path
    assert pairs_of(graph, "no_arc_out", "no_arc_in") == plain.no_arc


@pytest.mark.parametrize("chips", [range(6), (0, 1, 30, 33, 62, 63)], ids=str)
def test_masks_equal_the_definition(chips, kernels, tools):
    """Arcs and paths in any order: refused exactly if the rule breaks, and noted."""
    rng = np.random.default_rng(0)
    outcomes = {True: 0, False: 0}
    for _ in range(40):
        domains = empty_graph(max(chips) + 1)
        plain = tools.chip_graph(chips, frozenset(), frozenset())
        pairs = rng.permutation(list(itertools.combinations(chips, 2)))
        for a, b in pairs[:10].tolist():
            is_arc = bool(rng.random() < 0.6)
            taken = bool(kernels[0 if is_arc else 1](a, b, domains))
            arcs = frozenset(plain.arcs | ({(a, b)} if is_arc else set()))
            paths = frozenset(plain.reach | {(a, b)})
            more = tools.chip_graph(chips, arcs, paths)
            assert taken == more.is_legal
            outcomes[taken] += 1
            plain = more if taken else plain
            assert_graph(domains, plain)
    assert min(outcomes.values()) >= 50


def test_restore_goes_back_step_by_step(kernels):
    """Each saved graph comes back, down to the empty one."""
    domains = empty_graph(5)
    graphs = [domains.graph.copy()]
    for a, b in ((0, 1), (1, 2), (2, 4)):
        assert kernels[0](a, b, domains)
        graphs.append(domains.graph.copy())
    for count in (2, 1, 0):
        _chip_graph.restore(count, domains)
        assert (domains.graph == graphs[count]).all()
        assert domains.now["num_saved"][0] == count


def test_a_known_arc_saves_nothing(kernels):
    """An arc that is there, or a path that is known, changes nothing."""
    domains = empty_graph(3)
    assert kernels[0](0, 1, domains)
    assert kernels[0](0, 1, domains)
    assert kernels[1](0, 1, domains)
    assert domains.now["num_saved"][0] == 1


def test_a_path_of_two_arcs(kernels):
    """After 0 -> 1 -> 2 the arc 0 -> 2 is forbidden, and a path 0 ~> 2 is not news."""
    domains = empty_graph(4)
    assert kernels[0](0, 1, domains)
    assert kernels[0](1, 2, domains)
    assert domains.graph["no_arc_out"].tolist() == [0b100, 0, 0, 0]
    assert domains.graph["no_path_out"].tolist() == [0, 0, 0, 0]
    assert not kernels[0](0, 2, domains)


def test_beside_an_arc(kernels):
    """Beside the arc 0 -> 3, once 0 reaches 1, no path may lead from 1 to 3."""
    domains = empty_graph(4)
    assert kernels[0](0, 3, domains)
    assert kernels[1](0, 1, domains)
    assert domains.graph["no_path_out"].tolist() == [0, 0b1000, 0, 0]
    assert not kernels[1](1, 3, domains)
    assert domains.graph["no_path_in"].tolist() == [0, 0, 0, 0b0010]


def test_only_what_concerns_open_blocks_is_stale(kernels):
    """A chip is stale if a newly forbidden arc could still be drawn from or to it."""
    for open_out, stale in ((0b100, 0b001), (0b010, 0)):
        domains = empty_graph(3)
        domains.chip["open_out"], domains.chip["open_in"] = 0, 0
        domains.chip["open_out"][0] = open_out
        assert kernels[0](0, 1, domains)
        assert kernels[0](1, 2, domains)
        assert domains.now["stale"][0] == stale
