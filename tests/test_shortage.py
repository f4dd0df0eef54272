"""A search that ends without a plan: what is said, and what is tried before."""

import numpy as np
import pytest

from mcmpart import shortage
from mcmpart.bounds.exhaustive import Exhausted
from mcmpart.bounds.infeasible import raise_if_impossible
from mcmpart.errors import InfeasibleError, NoPlanFoundError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules
from mcmpart.rules import explain
from mcmpart.search.warm import warm_up
from mcmpart.shortage import last_resort
from mcmpart.solver.explain import Feasibility

SPENT = "partitions judged: 7, time: 1.0 s"


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Compile the kernels before the seconds for a hint begin to count."""
    warm_up()


@pytest.fixture
def tight(make_package):
    """Give two ops on one chip that need 60 B of 50 B, which no proof notices.

    Buffers are 2 * (10 in + 10 out); while op_1 writes its 10 B those of op_0 live.
    Each op alone, on a chip of its own, needs 2 * 20 + 10 B.
    """
    package = make_package(2, memory_bytes=50).with_chips(1)
    problem = Problem(chain(2, flops=0, tensor_bytes=10, seconds=[1, 1]), package)
    raise_if_impossible(problem)
    return problem


@pytest.fixture
def unfinished(monkeypatch):
    """Let the looks at all partitions end before they are complete."""
    none = Exhausted(None, np.inf, 7, complete=False)
    monkeypatch.setattr(shortage, "best_of_all", lambda problem, limit: none)
    unknown = Feasibility(None, is_impossible=False)
    monkeypatch.setattr(shortage, "find_any", lambda problem, is_late: unknown)


def triangle_on_three_chips(make_package):
    """Return a, b, c in a row with a shortcut, which cannot stand on three chips."""
    net = GraphBuilder("shortcut")
    net.host_tensor(TensorSpec("x", 1))
    for name, reads in (("a", ("x",)), ("b", ("a.t",)), ("c", ("a.t", "b.t"))):
        out = (TensorSpec(f"{name}.t", 1),)
        net.op(OpSpec(name, "Op", seconds=1.0, reads=reads, writes=out))
    net.output("c.t")
    return Problem(net.build(), make_package(3), user=UserRules(all_chips=True))


def test_a_valid_partition_is_returned(toy, toy_optimum_s, broken):
    """Where there is one among all, it is the answer, the best of them."""
    row = last_resort(toy, SPENT)
    assert not broken(toy, row)
    stages = [
        sum([4, 2, 1, 3, 2, 4][op] for op in np.flatnonzero(row == chip)) + 0.2
        for chip in range(3)
    ]
    assert max(stages) == pytest.approx(toy_optimum_s)


def test_what_is_missing_and_what_is_enough(tight):
    """The overflow of the closest plan, its chip and ops, and the chips it takes."""
    with pytest.raises(InfeasibleError) as caught:
        last_resort(tight, SPENT)
    assert (caught.value.rule, caught.value.exit_code) == ("memory", 1)
    assert str(caught.value) == (
        "no plan exists (all partitions were looked at): the closest plan does not fit "
        "by 10 B on chip 0 (ops op_0, op_1), which needs 60 B and has 50 B; 2 chips of "
        "the same kind would be enough"
    )
    # The hint is true.
    wider = Problem(tight.model, tight.package.with_chips(2))
    assert not explain(wider.graph, wider.package, [0, 1], wider.user)


def test_no_number_of_chips_is_enough(make_package):
    """Where ops must share a chip, more chips do not help."""
    package = make_package(2, memory_bytes=50)
    graph = chain(2, flops=0, tensor_bytes=10, seconds=[1, 1])
    user = UserRules(together=(("op_0", "op_1"),))
    with pytest.raises(
        InfeasibleError, match="give chips more memory, or choose a smaller --precision"
    ):
        last_resort(Problem(graph, package, user=user), SPENT)


def test_a_chip_that_cannot_be_joined(make_package):
    """A package of one chip without a link gets the hint on memory alone."""
    package = make_package(1, memory_bytes=50)
    assert package.base_link is None
    graph = chain(2, flops=0, tensor_bytes=10, seconds=[1, 1])
    with pytest.raises(InfeasibleError, match="needs 60 B and has 50 B; give chips"):
        last_resort(Problem(graph, package), SPENT)


def test_rules_that_contradict_each_other(make_package):
    """Where memory is no help the demands that clash are named, and no others."""
    problem = triangle_on_three_chips(make_package)
    raise_if_impossible(problem)
    with pytest.raises(InfeasibleError) as caught:
        last_resort(problem, SPENT)
    assert (caught.value.rule, caught.value.exit_code) == ("triangle", 1)
    assert str(caught.value) == (
        "no plan exists (all partitions were looked at): the rule triangle and the "
        "demand for all 3 chips contradict each other: drop one of them"
    )


def test_endless_memory(make_package):
    """Chips of the most memory there can be are not enlarged beyond it."""
    problem = triangle_on_three_chips(
        lambda count: make_package(count, memory_bytes=2**63 - 1)
    )
    with pytest.raises(InfeasibleError, match="contradict each other"):
        last_resort(problem, SPENT)


@pytest.mark.usefixtures("unfinished")
def test_not_found_is_no_proof(tight):
    """Too many partitions to look at: another error, with what was spent and a hint."""
    with pytest.raises(NoPlanFoundError) as caught:
        last_resort(tight, SPENT)
    assert caught.value.exit_code == 3
    assert str(caught.value) == (
        "no valid plan was found (partitions judged: 7, time: 1.0 s), and none is "
        "proven impossible: the closest plan does not fit by 10 B on chip 0 (ops op_0, "
        "op_1), which needs 60 B and has 50 B; 2 chips of the same kind would be enough"
    )


@pytest.mark.usefixtures("unfinished")
def test_not_found_without_a_hint(make_package):
    """Without the rule memory there is nothing to enlarge: more time, another seed."""
    package = make_package(2, rules=("triangle",))
    with pytest.raises(NoPlanFoundError, match="give it more --time, another --seed"):
        last_resort(Problem(chain(2), package), SPENT)


@pytest.mark.usefixtures("unfinished")
def test_many_ops_are_not_all_named(make_package):
    """Of the ops on the chip that overflows three are named."""
    # Five weights of 10 B, buffers of 2 * 2 B and 2 B of live tensors.
    graph = chain(5, flops=0, tensor_bytes=1, weight_bytes=10, seconds=[1] * 5)
    package = make_package(2, memory_bytes=55).with_chips(1)
    with pytest.raises(
        NoPlanFoundError, match=r"by 1 B on chip 0 \(ops op_0, op_1, op_2, \.\.\.\)"
    ):
        last_resort(Problem(graph, package), SPENT)
