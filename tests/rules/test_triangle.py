"""triangle: no arc of the chip graph has a longer path beside it."""

from dataclasses import dataclass

import numpy as np
import pytest

from mcmpart.evaluate._kernels import new_loads, triangle_holds
from mcmpart.graph.synthetic import chain, diamond, residual
from mcmpart.problem import UserRules
from mcmpart.rules import explain, triangle


@dataclass
class Arcs:
    """All that the rule reads of the loads."""

    arcs: dict[tuple[int, int], tuple[int, int]]


def longest_path(arcs, a, b):
    """Return the number of arcs on the longest path a ~> b; 0 if there is none."""
    lengths = [
        1 + (longest_path(arcs, mid, b) if mid != b else 0)
        for start, mid in arcs
        if start == a and (mid == b or longest_path(arcs, mid, b))
    ]
    return max(lengths, default=0)


def breaks(graph, package, chip_of):
    """Return what breaks the rule."""
    found = explain(graph, package, chip_of, UserRules())
    return [violation for violation in found if violation.rule == "triangle"]


def test_a_bypass_breaks_it(make_package):
    """An arc 0 -> 2 beside 0 -> 1 -> 2 is named with its edge and the chip between."""
    # b0: op_0, op_1, then Add reads b0.op_1 and x; b1.add reads b0.add and b1.op_1.
    graph = residual(2, ops_per_block=2)
    (found,) = breaks(graph, make_package(3), [0, 0, 0, 1, 2, 2])
    assert found.chips == (0, 1, 2)
    assert found.message == (
        "'b0.add' on chip 0 feeds 'b1.add' on chip 2 beside the longer path over chip 1"
    )


@pytest.mark.parametrize("chip_of", [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]])
def test_a_bypass_within_two_chips_is_fine(make_package, chip_of):
    """A residual block on one chip, or cut in two, makes no longer path."""
    assert breaks(residual(2, ops_per_block=2), make_package(3), chip_of) == []


def test_a_jump_over_an_island_is_fine(make_package):
    """An arc may pass over a used chip that stands on no path beside it."""
    # Arms 0 and 1 on chips 1 and 2 next to each other: arcs 0-1, 0-2, 1-3, 2-3.
    assert breaks(diamond(2), make_package(4), [0, 1, 2, 3]) == []


def test_long_edges_switch_it_off(make_package):
    """Where long edges are relayed the rule is off."""
    package = make_package(3, long_edges="relay")
    assert breaks(residual(2, ops_per_block=2), package, [0, 0, 0, 1, 2, 2]) == []


def test_a_chain_never_breaks_it(make_package):
    """A chain over all chips has arcs between neighbours only."""
    assert breaks(chain(5), make_package(5), [0, 1, 2, 3, 4]) == []


@pytest.mark.parametrize("num_chips", [2, 3, 5, 7])
def test_kernel_and_rule_equal_the_longest_path(num_chips):
    """On random chip graphs an arc is broken iff its longest path has two arcs."""
    rng = np.random.default_rng(num_chips)
    met = set()
    for _ in range(150):
        density = rng.uniform(0.1, 0.8)
        arcs = {
            (a, b): (a, b)
            for a in range(num_chips)
            for b in range(a + 1, num_chips)
            if rng.random() < density
        }
        broken = {arc for arc in arcs if longest_path(arcs, *arc) > 1}
        found = triangle.explain(chain(num_chips), Arcs(arcs))
        assert {(v.chips[0], v.chips[2]) for v in found} == broken
        loads = new_loads(num_chips)
        for a, b in arcs:
            loads.arcs[a] |= np.uint64(1 << b)
        assert triangle_holds(loads.arcs) == (not broken)
        met.add(bool(broken))
    assert met == ({True, False} if num_chips > 2 else {False})


def test_kernel_uses_all_64_bits():
    """The last two of 64 chips count like the first."""
    loads = new_loads(64)
    loads.arcs[61] = np.uint64(1 << 62 | 1 << 63)
    assert triangle_holds(loads.arcs)
    loads.arcs[62] = np.uint64(1 << 63)
    assert not triangle_holds(loads.arcs)
