"""evolve: the genetic algorithm over topological orders."""

import numpy as np
import pytest

from mcmpart.graph import branchy
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem
from mcmpart.search import Setting, pipeline_evaluator
from mcmpart.search._orders import keyed_order
from mcmpart.search.evolve import (
    ELITE,
    POPULATION,
    Evolve,
    memory_keys,
    seed_keys,
)


@pytest.fixture
def branches(make_package):
    """Give a small inception network on four chips."""
    package = make_package(
        4, peak_ops_per_s=(("*", 1e12),), io_bandwidth_bytes_per_s=1e10
    )
    return Problem(branchy.inception(), package)


def run(method, problem, proposals):
    """Drive the method; return the best cost after each proposal."""
    judge = pipeline_evaluator(problem, 1)
    best = [np.inf]
    for _ in range(proposals):
        rows = method.propose()
        found = best[-1]
        if rows.shape[0]:
            judged = judge(rows)
            method.observe(judged)
            found = min(found, judged.valid_s.min())
        best.append(found)
    return best


def test_generations_get_better(branches):
    """Later generations beat the first, which slicing alone comes to."""
    best = run(Evolve(Setting(branches, workers=2)), branches, 3 * POPULATION // 4)
    assert best[-1] < best[POPULATION // 4]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_threads_do_not_matter(branches, seed):
    """The same seed gives the same partitions with one thread and with three."""
    one, three = (
        run(Evolve(Setting(branches, seed=seed, workers=workers)), branches, 20)
        for workers in (1, 3)
    )
    assert one == three


def test_elites_live_on(branches):
    """The best of a generation are the next one's, decoded already."""
    method = Evolve(Setting(branches))
    run(method, branches, POPULATION // 4)
    costs = sorted(one.cost_s for one in method._decoded)[:ELITE]
    method.propose()
    assert sorted(one.cost_s for one in method._decoded)[:ELITE] <= costs
    assert len(method._decoded) <= ELITE + 4


def test_seeds_are_the_orders_they_are_named_for(branches):
    """The first keys give the graph's own order; by level, no block goes back."""
    arrays = branches.blocks.arrays
    keys = seed_keys(branches, None)
    own = keyed_order(arrays, *keys[0])
    assert own.tolist() == list(range(own.size))
    level = np.floor(keys[2][0]).astype(int)
    assert (np.diff(level[keyed_order(arrays, *keys[2])]) >= 0).all()


def test_the_order_of_a_partition(branches):
    """The order of a partition has its chips in ascending order."""
    chip_of = np.zeros(branches.graph.num_ops, dtype=np.int32)
    chip_of[branches.graph.num_ops // 2 :] = 1
    order = keyed_order(branches.blocks.arrays, *seed_keys(branches, chip_of)[-1])
    chips = branches.blocks.contract(chip_of)[order]
    assert (np.diff(chips) >= 0).all()


def test_memory_minimal_order(islands):
    """Of two chains that take turns, one is run to its end before the other begins."""
    order = np.argsort(memory_keys(islands))
    side = order % 2
    assert (np.diff(side) != 0).sum() == 1


def test_a_chain_has_one_order(make_package):
    """On a chain every individual is the same order, and that is enough."""
    problem = Problem(chain(5, tensor_bytes=0), make_package(5))
    best = run(Evolve(Setting(problem)), problem, 2)
    assert best[1] == best[2] < np.inf
