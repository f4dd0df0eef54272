"""Solver: the domains of one problem, decided from Python."""

import itertools
import re

import numpy as np
import pytest

from mcmpart.errors import InfeasibleError, InputError
from mcmpart.graph.synthetic import chain, transformer
from mcmpart.problem import Problem, UserRules
from mcmpart.solver import Solver


@pytest.fixture
def four(make_package):
    """Give a maker of four ops in a row on four chips, none to be skipped."""

    def make(**user):
        package = make_package(4, long_edges="relay", rules=("no_skip",))
        rules = UserRules(**user)
        return Problem(chain(4), package, user=rules, replica_threshold=0.0)

    return make


def domains_of(solver, num_ops=4):
    """Return the domains of all ops."""
    return [solver.domain(op) for op in range(num_ops)]


def test_before_any_decision(four):
    """Op i of a row can be on chips 0 to i: the ops before it fill those below."""
    solver = Solver(four())
    assert domains_of(solver) == [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)]
    assert solver.num_decisions == 0
    assert not solver.is_solved
    assert solver.chip_of.tolist() == [0, 0, 0, 0]


def test_a_given_number_of_chips(four):
    """With exactly three, the last op is on chip 2 and the one before next to it."""
    solver = Solver(four(), num_used=3)
    assert domains_of(solver) == [(0,), (0, 1), (1, 2), (2,)]


def test_assign_and_undo(four):
    """A decision restricts what follows from it, and undo gives that back."""
    solver = Solver(four())
    before = domains_of(solver)
    assert solver.assign(2, [1, 2]) == 1
    assert domains_of(solver) == [(0,), (0, 1), (1, 2), (1, 2, 3)]
    assert solver.assign(3, 1) == 2
    assert domains_of(solver) == [(0,), (0, 1), (1,), (1,)]
    assert solver.num_decisions == 2
    assert solver.undo() == 1
    assert domains_of(solver) == [(0,), (0, 1), (1, 2), (1, 2, 3)]
    assert solver.undo() == 0
    assert domains_of(solver) == before


def test_until_solved(four):
    """Deciding the open ops one by one ends in a partition."""
    solver = Solver(four())
    for op, chip in ((3, 2), (2, 1), (1, 1)):
        assert not solver.is_solved
        solver.assign(op, chip)
    assert solver.is_solved
    assert solver.chip_of.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("chip", [1, np.int64(1), np.uint8(1)])
def test_chips_of_any_whole_number_type(chip, four):
    """One chip, or several in any iterable; what is not possible is left out."""
    for chips in (chip, [chip], {chip, 3}, iter([chip, chip, 77])):
        solver = Solver(four())
        assert solver.assign(1, chips) == 1
        assert solver.domain(1) == (1,)


def test_a_decision_that_changes_nothing_counts(four):
    """All of the domain: one decision more, the same domains."""
    solver = Solver(four())
    assert solver.assign(3, range(4)) == 1
    assert solver.domain(3) == (0, 1, 2, 3)


@pytest.fixture
def apart(make_package, tools):
    """Give a maker of four ops without edges, the first few apart, on three chips."""

    def make(count):
        graph = tools.edge_graph(4, [])
        package = make_package(3, long_edges="relay", rules=())
        pairs = itertools.combinations(graph.op_name[:count], 2)
        user = UserRules(apart=tuple(pairs))
        return Problem(graph, package, user=user, replica_threshold=0.0)

    return make


def test_a_contradiction_takes_decisions_back(apart):
    """Three ops apart cannot all stay on chips 0 and 1, as was decided.

    The fourth decision shows it. Both its chips are refuted, then the third decision:
    its opposite holds, and the two before stand.
    """
    solver = Solver(apart(3))
    for op, stands in ((0, 1), (1, 2), (2, 3)):
        assert solver.assign(op, [0, 1]) == stands
    assert solver.assign(0, 0) == 2
    assert [solver.domain(op) for op in range(3)] == [(0, 1), (0, 1), (2,)]


def test_every_decision_refuted(apart):
    """Four ops apart on three chips: each chip of the first is refuted, one by one."""
    solver = Solver(apart(4))
    for chip, left in ((0, (1, 2)), (1, (2,))):
        assert solver.assign(0, chip) == 1
        assert solver.assign(1, left[-1]) == 0
        assert solver.domain(0) == left
    text = "no partition is left: every decision was refuted"
    with pytest.raises(InfeasibleError, match=f"^{text}$"):
        solver.assign(1, 0)


def test_no_more_decisions_than_ops(four):
    """The fifth decision over four ops is refused."""
    solver = Solver(four())
    for _ in range(4):
        solver.assign(3, range(4))
    text = "there are as many decisions as ops: take one back first"
    with pytest.raises(InputError, match=f"^{text}$"):
        solver.assign(3, 2)
    assert solver.undo() == 3
    assert solver.assign(3, 2) == 4


def test_nothing_to_take_back(four):
    """Undo without a decision is an error."""
    text = "there is no decision to take back: assign an op first"
    with pytest.raises(InputError, match=f"^{text}$"):
        Solver(four()).undo()


@pytest.mark.parametrize("op", [-1, 4])
def test_an_op_that_does_not_exist(op, four):
    """The message says which there are."""
    text = f"there is no op {op}: the graph has ops 0 to 3"
    solver = Solver(four())
    with pytest.raises(InputError, match=f"^{text}$"):
        solver.domain(op)
    with pytest.raises(InputError, match=f"^{text}$"):
        solver.assign(op, 0)


@pytest.mark.parametrize("chips", [3, [], [2, 3], -1, [64]])
def test_chips_that_are_not_possible(chips, four):
    """The message has the domain and what was asked; nothing is decided."""
    solver = Solver(four())
    wanted = [chips] if isinstance(chips, int) else chips
    text = (
        f"op 'op_1' can stand on chips (0, 1) and was assigned to {wanted}: choose "
        "from its domain"
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        solver.assign(1, chips)
    assert solver.num_decisions == 0


def test_a_replicable_op_has_no_domain(make_package):
    """It stands on no chip of its own; ``chip_of`` has -1 there."""
    problem = Problem(transformer(2), make_package(3, memory_bytes=10**12))
    solver = Solver(problem)
    replica = int(np.flatnonzero(problem.graph.op_replicable)[0])
    name = problem.graph.op_name[replica]
    text = (
        f"op {name!r} is replicable: every chip that needs it computes it, so it has "
        "no domain"
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        solver.domain(replica)
    assert ((solver.chip_of == -1) == problem.graph.op_replicable).all()


def test_ops_of_a_block_share_a_domain(four):
    """A decision on one of two ops that stay together is one on the other."""
    solver = Solver(four(together=(("op_1", "op_2"),)))
    solver.assign(1, 1)
    assert solver.domain(1) == solver.domain(2) == (1,)


@pytest.mark.parametrize("num_used", [0, 5, -1])
def test_no_such_number_of_chips(num_used, four):
    """From one to all of them."""
    text = f"num_used is {num_used}: give a number of chips from 1 to 4"
    with pytest.raises(InputError, match=f"^{text}$"):
        Solver(four(), num_used=num_used)


def test_a_number_of_chips_that_may_be_skipped(make_package):
    """The number means nothing where a chip may stay empty."""
    package = make_package(4, long_edges="relay", rules=())
    text = (
        "num_used is 2, but the package 'toy' allows chips to be skipped: leave it open"
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        Solver(Problem(chain(4), package, replica_threshold=0.0), num_used=2)


def test_all_chips(four):
    """Where every chip must be used, four ops in a row have no choice."""
    solver = Solver(four(all_chips=True))
    assert solver.is_solved
    assert solver.chip_of.tolist() == [0, 1, 2, 3]
    with pytest.raises(InfeasibleError, match="the rules contradict each other"):
        Solver(four(all_chips=True), num_used=3)


def test_rules_that_contradict(four):
    """A pin past what the ops before can fill."""
    text = "no partition of the blocks is left: the rules contradict each other"
    with pytest.raises(InfeasibleError, match=f"^{text}$"):
        Solver(four(pins={"op_1": 2}))


def test_decisions_reach_exactly_the_valid_placements(tools, small_problem):
    """Walking all choices with assign and undo meets each valid placement once."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        problem = small_problem(rng, 5, 3, rules=("no_skip", "triangle"))
        valid = tools.valid_placements(problem)
        if not len(valid):
            continue
        solver, found = Solver(problem), []
        _explore(solver, problem, found)
        rows = problem.blocks.contract(np.array(found))
        assert sorted(rows.tolist()) == valid.tolist(), tools.told(problem)


def _explore(solver, problem, found):
    """Decide the first open op in every way, each as deep as it goes."""
    ops = problem.blocks.arrays.first_op.tolist()
    is_open = [op for op in ops if len(solver.domain(op)) > 1]
    if not is_open:
        found.append(solver.chip_of)
        return
    level = solver.num_decisions
    for chip in solver.domain(is_open[0]):
        if chip not in solver.domain(is_open[0]):
            continue
        if len(solver.domain(is_open[0])) == 1:
            _explore(solver, problem, found)
            return
        if solver.assign(is_open[0], chip) == level + 1:
            _explore(solver, problem, found)
            solver.undo()


def test_nothing_after_the_last_refutation(make_package):
    """Once every decision is refuted, the solver has no partition and no domains."""
    user = UserRules(
        apart=tuple((f"op_{b}", f"op_{a}") for a in range(3) for b in range(a))
    )
    package = make_package(2, rules=(), long_edges="direct")
    solver = Solver(Problem(chain(3), package, user=user, replica_threshold=0.0))
    with pytest.raises(InfeasibleError, match="every decision was refuted"):
        solver.assign(0, 0)
    assert not solver.is_solved
    with pytest.raises(InfeasibleError, match="every decision was refuted"):
        solver.domain(0)


@pytest.mark.parametrize("op", [1.5, "a", None])
def test_ops_are_whole_numbers(make_package, op):
    """Another type of op is refused in a sentence."""
    solver = Solver(Problem(chain(3), make_package(2), replica_threshold=0.0))
    with pytest.raises(InputError, match=r"op is .*: give a whole number"):
        solver.domain(op)


def test_restart(make_package):
    """After a restart all is as before the first decision, refutations forgotten."""
    solver = Solver(Problem(chain(3), make_package(3), replica_threshold=0.0))
    before = [solver.domain(op) for op in range(3)]
    solver.assign(2, 0)
    solver.restart()
    assert [solver.domain(op) for op in range(3)] == before
    assert solver.num_decisions == 0
