"""greedy: fills the chips in order, and proposes a valid partition or none."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules
from mcmpart.search import Setting
from mcmpart.search.greedy import Greedy


def propose(problem):
    """Return greedy's proposals."""
    return Greedy(Setting(problem)).propose()


def test_fair_shares(toy):
    """Each chip takes ops up to its share of the work left, by hand."""
    # 16 s: chip 0 up to 5.33 takes 4; chip 1 up to 12 / 2 takes 2 1 3; chip 2 the rest.
    assert propose(toy).tolist() == [[0, 1, 1, 1, 2, 2]]


def test_a_chip_takes_one_op_at_least(make_package):
    """An op larger than the share goes on the chip alone."""
    problem = Problem(
        chain(3, flops=0, tensor_bytes=1, seconds=[9, 1, 1]), make_package(3)
    )
    assert propose(problem).tolist() == [[0, 1, 2]]


def test_memory_moves_the_cut(make_package):
    """A chip goes on only while it fits."""
    # Two ops on a chip need 2 x 4,096 of weights, 2 x 2 x 8 of buffers and 16 live.
    graph = chain(4, flops=0, tensor_bytes=8, weight_bytes=4096, seconds=[1, 1, 1, 1])
    narrow, wide = (
        make_package(2, overrides={0: {"memory_bytes": memory_bytes}})
        for memory_bytes in (8192 + 32 + 15, 8192 + 32 + 16)
    )
    assert propose(Problem(graph, narrow)).tolist() == [[0, 1, 1, 1]]
    assert propose(Problem(graph, wide)).tolist() == [[0, 0, 1, 1]]


def test_it_gives_up_where_it_is_stuck(make_package):
    """Where the only cut does not fit, greedy has nothing to propose."""
    problem = Problem(chain(3, weight_bytes=4096), make_package(1, memory_bytes=4096))
    assert propose(problem).shape == (0, 3)


def test_pins_are_kept(toy):
    """A pinned op ends up on its chip, or nothing is proposed."""
    problem = replace(toy, user=UserRules(pins={"op_1": 0}))
    rows = propose(problem)
    assert rows[0, 1] == 0
    assert evaluate_many(problem, rows)[1].all()


def test_cuts_are_corrected(make_package):
    """Where the pin leaves no cut of the op order valid, FIX makes one so."""
    net = GraphBuilder("islands")
    net.host_tensor(TensorSpec("x", 1))
    for name, reads in (("a", "x"), ("b", "a.t"), ("c", "x"), ("d", "c.t")):
        out = (TensorSpec(f"{name}.t", 1),)
        net.op(OpSpec(name, "Op", seconds=1.0, reads=(reads,), writes=out))
    net.output("b.t")
    net.output("d.t")
    user = UserRules(pins={"a": 1})
    rows = propose(Problem(net.build(), make_package(2), user=user))
    # Equal shares would be 0 0 1 1; b follows a, and chip 0 needs an op.
    assert rows.tolist() in ([[1, 1, 0, 0]], [[1, 1, 0, 1]])


def test_one_proposal(toy):
    """After one proposal it is done."""
    method = Greedy(Setting(toy))
    assert not method.done
    method.propose()
    assert method.done


@pytest.mark.parametrize("seed", range(4))
def test_valid_or_nothing(seed, make_problem):
    """On random problems, rules and memories it never proposes an invalid partition."""
    rng = np.random.default_rng(seed)
    num_found = 0
    for _ in range(60):
        problem = make_problem(rng, int(rng.integers(1, 40)), rules=True)
        rows = propose(problem)
        assert rows.shape[1] == problem.graph.num_ops
        num_found += rows.shape[0]
        assert evaluate_many(problem, rows, workers=1)[1].all()
    assert num_found > 20
