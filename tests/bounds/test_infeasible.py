"""Proofs that there is no plan: each by hand, and none of them wrong."""

import itertools

import numpy as np
import pytest

from mcmpart.bounds.infeasible import raise_if_impossible
from mcmpart.errors import InfeasibleError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.problem import Problem, UserRules
from mcmpart.rules import explain


def refused(problem):
    """Return the error that the problem is refused with."""
    with pytest.raises(InfeasibleError) as caught:
        raise_if_impossible(problem)
    return caught.value


def pinned(graph, package, **pins):
    """Return the problem with these pins."""
    return Problem(graph, package, user=UserRules(pins=pins))


def test_all_chips(make_package):
    """Two ops cannot fill three chips."""
    error = refused(
        Problem(chain(2), make_package(3), user=UserRules(all_chips=True)),
    )
    assert (error.rule, error.exit_code) == ("all_chips", 1)
    assert str(error) == (
        "no plan exists: all 3 chips are demanded and the graph has 2 ops that "
        "can stand on chips of their own: ask for 2 chips or fewer"
    )


def test_all_chips_with_groups(make_package):
    """Ops that must share a chip count once."""
    user = UserRules(together=(("op_0", "op_1"),), all_chips=True)
    error = refused(Problem(chain(3), make_package(3), user=user))
    assert "the graph has 2 ops" in str(error)


def test_pins_against_the_dataflow(make_package):
    """A pin below that of an op it depends on, however far back."""
    error = refused(pinned(chain(3), make_package(3), op_0=2, op_2=1))
    assert (error.rule, error.exit_code) == ("dataflow", 1)
    assert str(error) == (
        "no plan exists: 'op_2' is pinned to chip 1 and depends on 'op_0', pinned to "
        "the later chip 2: data flows to higher chips only"
    )


def test_pin_above_the_ops(make_package):
    """Two ops do not reach chip 2 without a gap."""
    error = refused(pinned(chain(2), make_package(3), op_1=2))
    assert error.rule == "no_skip"
    assert str(error) == (
        "no plan exists: 'op_1' cannot stand below chip 2, and the graph's ops (2) "
        "are too few for chips 0 to 2: pin to a lower chip"
    )


def test_pins_leave_a_gap(make_package):
    """Pins 0 0 2 in a row leave nothing for chip 1."""
    error = refused(pinned(chain(3), make_package(3), op_0=0, op_1=0, op_2=2))
    assert error.rule == "no_skip"
    assert str(error) == (
        "no plan exists: with the pins no op can stand on chip 1, but 'op_2' stands "
        "on chip 2 or later and no chip before a used one may stay empty: pin to a "
        "lower chip"
    )


def test_gaps_may_be_allowed(make_package):
    """Without no_skip a gap is no fault."""
    package = make_package(3, rules=("triangle",))
    raise_if_impossible(pinned(chain(3), package, op_0=0, op_1=0, op_2=2))
    raise_if_impossible(pinned(chain(2), package, op_1=2))


def test_one_op_is_too_large(make_package):
    """100 B of weights, 2 * 10 B from the host and 10 B live are 130 B, not 120."""
    graph = chain(2, tensor_bytes=10, weight_bytes=[100, 0])
    error = refused(Problem(graph, make_package(2, memory_bytes=120)))
    assert error.rule == "memory"
    assert str(error) == (
        "no plan exists: op 'op_0' alone needs 130 B and the roomiest chip has 120 B: "
        "it does not fit by 10 B; give chips more memory or choose a smaller "
        "--precision"
    )
    raise_if_impossible(Problem(graph, make_package(2, memory_bytes=130)))


def test_one_op_is_too_large_for_its_pin(make_package):
    """A pinned op has its own chip's memory: 2 * 10 B out and 10 B live, not 25 B."""
    package = make_package(2, memory_bytes=120, overrides={1: {"memory_bytes": 25}})
    error = refused(pinned(chain(2, tensor_bytes=10), package, op_1=1))
    assert "op 'op_1' alone needs 30 B" in str(error)
    assert "chip 1, to which it is pinned, has 25 B: it does not fit by 5 B" in str(
        error
    )


def shared():
    """Return two ops that share a weight of 40 B and a HOST tensor of 10 B."""
    net = GraphBuilder("shared")
    net.host_tensor(TensorSpec("x", 10))
    net.weight(TensorSpec("w", 40))
    for name, reads in (("a", ("x",)), ("b", ("x", "a.t"))):
        out = (TensorSpec(f"{name}.t", 1),)
        net.op(OpSpec(name, "Op", reads=reads, weights=("w",), writes=out))
    net.output("b.t")
    return net.build()


def test_shared_items_count_for_each_op(make_package):
    """What two ops share each of them needs: b 40 + 2 * 10 + 2 * 1 + 1 = 63 B."""
    error = refused(Problem(shared(), make_package(2, memory_bytes=62)))
    assert "op 'b' alone needs 63 B" in str(error)
    assert "does not fit by 1 B" in str(error)


def test_shared_items_count_once_in_all(make_package):
    """One chip that holds both ops needs the weight once: nothing is proven."""
    # Together 40 + 2 * (10 + 1) + 2 live bytes.
    raise_if_impossible(Problem(shared(), make_package(1, memory_bytes=64)))


def test_all_together_are_too_large(make_package):
    """3 * 50 B of weights and 2 * (5 + 5) B of buffers are 170 B, two chips 140."""
    graph = chain(3, tensor_bytes=5, weight_bytes=50)
    error = refused(Problem(graph, make_package(2, memory_bytes=70)))
    assert error.rule == "memory"
    assert str(error) == (
        "no plan exists: the model needs at least 170 B (150 B weights, 20 B input "
        "and output buffers) and the 2 chips have 140 B together; at 70 B a chip it "
        "takes at least 3 chips"
    )
    raise_if_impossible(Problem(graph, make_package(2, memory_bytes=85)))


def test_memory_may_be_off(make_package):
    """Without the rule memory nothing is too large."""
    package = make_package(2, memory_bytes=1, rules=("no_skip", "triangle"))
    raise_if_impossible(Problem(chain(3, weight_bytes=50), package))


def hard_rules(rng, graph, num_chips):
    """Return user rules that often contradict each other or the graph."""
    names = [str(name) for name in rng.permutation(graph.op_name)]
    count = int(rng.integers(0, len(names) + 1))
    pins = {name: int(rng.integers(num_chips)) for name in names[:count]}
    together = (tuple(names[-2:]),) if len(names) > 1 and rng.random() < 0.3 else ()
    apart = ((names[0], names[-1]),) if len(names) > 1 and rng.random() < 0.3 else ()
    return UserRules(pins, together, apart, all_chips=bool(rng.random() < 0.3))


def has_plan(graph, package, user):
    """Return whether any placement of the ops obeys all rules, in plain Python."""
    free = [op for op in range(graph.num_ops) if not graph.op_replicable[op]]
    for chips in itertools.product(range(package.num_chips), repeat=len(free)):
        row = [-1] * graph.num_ops
        for op, chip in zip(free, chips, strict=True):
            row[op] = chip
        if not explain(graph, package, row, user):
            return True
    return False


def proof(graph, package, user, threshold):
    """Return the problem, if it can be made, and the proof that it has no plan."""
    problem = None
    try:
        problem = Problem(graph, package, user=user, replica_threshold=threshold)
        raise_if_impossible(problem)
    except InfeasibleError as error:
        return problem, error
    return problem, None


@pytest.mark.parametrize("long_edges", ["forbid", "relay", "direct"])
def test_proofs_are_never_wrong(long_edges, make_package):
    """Where a proof is given, brute force finds no valid partition either."""
    rng = np.random.default_rng(1)
    proven = dict.fromkeys(
        ("all_chips", "apart", "pin", "dataflow", "no_skip", "memory"), 0
    )
    num_open = 0
    for _ in range(250):
        num_chips = int(rng.integers(1, 4))
        graph = random_dag(int(rng.integers(1, 5)), rng, 0.5)
        # From what a single op needs up to what all of them need.
        memory_bytes = int(np.exp(rng.uniform(np.log(5e4), np.log(2e6))))
        rules = ("triangle",) if long_edges == "forbid" else ()
        rules += ("memory",) if rng.random() < 0.6 else ()
        rules += ("no_skip",) if rng.random() < 0.6 else ()
        package = make_package(
            num_chips, long_edges=long_edges, rules=rules, memory_bytes=memory_bytes
        )
        user = hard_rules(rng, graph, num_chips)
        problem, error = proof(graph, package, user, float(rng.choice([0.0, 0.5])))
        if error is None:
            num_open += 1
            continue
        proven[error.rule] += 1
        graph = graph if problem is None else problem.graph
        assert not has_plan(graph, package, user), str(error)
    assert min(proven.values()) > 0, proven
    assert num_open > 20
