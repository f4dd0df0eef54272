"""evolve: the genetic algorithm over topological orders."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph import branchy
from mcmpart.problem import Problem
from mcmpart.search import Setting
from mcmpart.search import evolve as module
from mcmpart.search.evolve import ELITE, POPULATION, Evolve


@pytest.fixture
def branches(make_package):
    """Give an inception network on four chips."""
    package = make_package(
        4, peak_ops_per_s=(("*", 1e12),), io_bandwidth_bytes_per_s=1e10
    )
    return Problem(branchy.inception(), package)


def generations(method, count):
    """Run some generations; return all rows proposed and each generation's costs."""
    rows, costs = [], []
    expand = method._problem.blocks.expand
    while len(costs) < count:
        rows += [expand(chip_of_block).tolist() for chip_of_block in method._advance()]
        if method._next == POPULATION:
            costs.append(np.sort(method._cost_s))
    return rows, costs


def test_later_generations_are_better(branches):
    """The best of the fifth generation beats that of the first; none is worse."""
    _, costs = generations(Evolve(Setting(branches)), 5)
    best = [cost[0] for cost in costs]
    assert best == sorted(best, reverse=True)
    assert best[-1] < best[0]


def test_every_proposal_beats_those_before(branches):
    """Proposals are valid, each better, and cost what the order's cut was said to."""
    rows, costs = generations(Evolve(Setting(branches)), 3)
    cost_s, valid = evaluate_many(branches, np.array(rows))
    assert valid.all()
    assert (np.diff(cost_s) < 0).all()
    assert cost_s[-1] == pytest.approx(costs[-1][0], rel=1e-12)


@pytest.mark.parametrize("blocks_per_task", [1, 500, 100_000])
def test_neither_threads_nor_chunks_matter(branches, blocks_per_task, monkeypatch):
    """One seed gives the same proposals on any number of threads, at any pace."""
    wanted, _ = generations(Evolve(Setting(branches, seed=3)), 2)
    monkeypatch.setattr(module, "BLOCKS_PER_TASK", blocks_per_task)
    found, _ = generations(Evolve(Setting(branches, seed=3, workers=3)), 2)
    assert found == wanted
    assert generations(Evolve(Setting(branches, seed=4)), 2)[0] != wanted


def test_elites_live_on(branches):
    """The next generation begins with the elites and is cut below the worst one."""
    method = Evolve(Setting(branches))
    _, costs = generations(method, 2)
    method._breed()
    assert method._cost_s[:ELITE].tolist() == costs[1][:ELITE].tolist()
    assert np.isinf(method._cost_s[ELITE:]).all()
    assert method._cutoff_s == costs[1][ELITE - 1] < np.inf


def test_without_progress_all_orders_are_drawn_anew(branches, monkeypatch):
    """After some generations without a better order no elite is kept."""
    monkeypatch.setattr(module, "PATIENCE", 1)
    method = Evolve(Setting(branches))
    generations(method, 1)
    method._breed()
    assert method._next == ELITE
    method._breed()
    assert method._next == 0
    assert np.isinf(method._cost_s).all()


def test_the_start_is_met(branches):
    """The first order sorts by the chips of the start, so it costs no more."""
    rows, costs = generations(Evolve(Setting(branches, seed=5)), 4)
    start = np.array(rows[-1], dtype=np.int32)
    method = Evolve(Setting(branches, seed=6, start=start))
    first = method.propose()
    assert evaluate_many(branches, first)[0][0] <= costs[-1][0] * (1 + 1e-12)


def test_one_chip_needs_one_generation(make_package):
    """On one chip there is nothing to breed."""
    method = Evolve(Setting(Problem(branchy.inception(), make_package(1))))
    assert method.propose().shape[0] == 1
    assert method.done
