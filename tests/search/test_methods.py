"""One conformance test for all methods, and the odd problems each must survive."""

import time

import numpy as np
import pytest

from mcmpart.bounds import simple_bound_s
from mcmpart.evaluate import evaluate
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search import METHODS, Budget, Setting, pipeline_evaluator, run_search


def search(method, problem, *, evaluations=20, time_s=0.1, **options):
    """Run a method by name for a moment; return the record."""
    started = time.perf_counter()
    setting = Setting(problem, deadline=started + time_s, **options)
    return run_search(
        METHODS[method](setting),
        pipeline_evaluator(problem, 1),
        Budget(time_s=time_s, evaluations=evaluations),
        simple_bound_s(problem),
        started=started,
        start=setting.start,
    )


@pytest.fixture(params=sorted(METHODS))
def name(request):
    """Give the name of each method."""
    return request.param


def test_a_method_has_its_name(name, toy):
    """The class knows the name it is listed under, and is not done at first."""
    method = METHODS[name](Setting(toy))
    assert method.name == name
    assert not method.done


def test_proposals_are_partitions(name, toy):
    """Every proposal is ``[B, V] int32``, valid, and observed without a fuss."""
    method = METHODS[name](Setting(toy, seed=1))
    judge = pipeline_evaluator(toy, 1)
    num_rows = 0
    for _ in range(6):
        rows = method.propose()
        assert rows.dtype == np.int32
        assert rows.ndim == 2
        assert rows.shape[1] == 6
        if rows.shape[0]:
            found = judge(rows)
            assert found.valid.all()
            method.observe(found)
        num_rows += rows.shape[0]
        if method.done:
            break
    assert num_rows >= 1


def test_the_toy_is_solved(name, toy, toy_optimum_s):
    """Every method finds the optimum of the toy at once."""
    record = search(name, toy)
    assert record.bottleneck_s == pytest.approx(toy_optimum_s, rel=1e-12)


def test_the_trace_names_the_method(name, toy):
    """Each improvement is noted under the method's name, or that of a stage of auto."""
    names = {"greedy", "slice", "local"} if name == "auto" else {name}
    trace = search(name, toy).trace
    assert trace
    assert {point.method for point in trace} <= names


def test_same_seed_same_proposals(name, make_problem):
    """Two runs with one seed propose the same, however fast the machine is."""
    problem = make_problem(np.random.default_rng(11), 30, num_chips=3)
    judge = pipeline_evaluator(problem, 1)

    def proposals():
        method = METHODS[name](Setting(problem, seed=7))
        rows = []
        for _ in range(6):
            proposed = method.propose()
            if proposed.shape[0]:
                method.observe(judge(proposed))
                rows += proposed.tolist()
        return rows

    first, second = proposals(), proposals()
    # The clock decides how many orders one proposal of slice looks at.
    common = min(len(first), len(second))
    assert common >= 1
    assert first[:common] == second[:common]


def test_a_start_is_never_made_worse(name, toy, toy_optimum_s):
    """What comes out is no worse than the start, if the method takes one."""
    start = np.array([0, 1, 1, 1, 2, 2], dtype=np.int32)
    record = search(name, toy, start=start)
    assert record.bottleneck_s <= toy_optimum_s * (1 + 1e-12)


@pytest.mark.parametrize(
    "start",
    [[2, 1, 0, 0, 0, 0], [0, 0, 2, 2, 2, 2], [9, 9, 9, 9, 9, 9], [-1] * 6],
)
def test_a_bad_start_does_no_harm(name, toy, toy_optimum_s, start):
    """A start that breaks dataflow, skips a chip, or is no placement is passed over."""
    record = search(name, toy, start=np.array(start, dtype=np.int32))
    assert record.bottleneck_s == pytest.approx(toy_optimum_s, rel=1e-12)


def net(*ops, outputs):
    """Return a graph of (name, reads, bytes written, FLOPs) tuples; x is HOST."""
    builder = GraphBuilder("odd")
    builder.host_tensor(TensorSpec("x", 8))
    for op, reads, size, flops in ops:
        writes = (TensorSpec(f"{op}.t", size),)
        builder.op(OpSpec(op, "Op", flops=flops, reads=reads, writes=writes))
    for output in outputs:
        builder.output(f"{output}.t")
    return builder.build()


def odd_graph(kind):
    """Return a graph of a kind that breaks tools."""
    if kind == "no ops":
        builder = GraphBuilder("echo")
        builder.host_tensor(TensorSpec("x", 8))
        builder.output("x")
        return builder.build()
    if kind == "star":
        readers = [(f"r{i}", ("hub.t",), 8, 5) for i in range(80)]
        names = [name for name, *_ in readers]
        return net(("hub", ("x",), 8, 50), *readers, outputs=names)
    graphs = {
        "one op": net(("a", ("x",), 8, 10), outputs=["a"]),
        "three ops": chain(3),
        "two islands": net(
            ("a", ("x",), 8, 10),
            ("b", ("x",), 8, 30),
            ("c", ("a.t",), 8, 20),
            ("d", ("b.t",), 8, 10),
            outputs=["c", "d"],
        ),
        "only views": net(("a", ("x",), 8, 0), ("b", ("a.t",), 8, 0), outputs=["b"]),
        "no bytes": net(("a", ("x",), 0, 0), ("b", ("a.t",), 0, 0), outputs=["b"]),
        "dead op": net(
            ("a", ("x",), 8, 10),
            ("dead", ("a.t",), 8, 10),
            ("b", ("a.t",), 8, 10),
            outputs=["b"],
        ),
        "unread input": net(("a", (), 8, 10), ("b", ("a.t",), 8, 10), outputs=["b"]),
    }
    return graphs[kind]


KINDS = [
    *("no ops", "one op", "three ops", "two islands", "only views", "no bytes"),
    *("dead op", "unread input", "star"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_chips", [1, 36])
def test_odd_problems(name, kind, num_chips, make_package, broken):
    """Every method gives a valid plan for graphs and packages at the edges."""
    problem = Problem(odd_graph(kind), make_package(num_chips))
    record = search(name, problem, time_s=0.05)
    assert broken(problem, record.best) == set()
    assert record.bottleneck_s >= simple_bound_s(problem)
    found = evaluate(problem, Partition(problem.graph, record.best))
    assert found.valid
    assert found.bottleneck_s == record.bottleneck_s


@pytest.mark.parametrize("kind", ["one op", "three ops", "two islands"])
def test_all_chips_at_the_edge(name, kind, make_package, broken):
    """A demand for as many chips as there are ops is met, for more is not."""
    graph = odd_graph(kind)
    user = UserRules(all_chips=True)
    enough, too_many = (
        Problem(graph, make_package(count, long_edges="direct"), user=user)
        for count in (graph.num_ops, graph.num_ops + 1)
    )
    record = search(name, enough, time_s=0.05)
    if name != "greedy":
        assert broken(enough, record.best) == set()
    assert search(name, too_many, time_s=0.05).best is None


def test_nothing_fits(name, make_package):
    """Where no partition is valid, a method ends without one."""
    problem = Problem(chain(4, weight_bytes=4096), make_package(2, memory_bytes=4096))
    record = search(name, problem, time_s=0.05)
    assert record.best is None
    assert record.stopped_by in ("done", "time")
