"""The main path: methods, budgets, tiny problems, starts, interrupts, refusals."""

import functools
import itertools
import time

import numpy as np
import pytest

from mcmpart.errors import InfeasibleError, InputError, NoPlanFoundError
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.reference import recompute
from mcmpart.rules import explain
from mcmpart.search import METHODS, Evaluations, Greedy, Slice
from mcmpart.search.warm import warm_up
from mcmpart.solve import make_result, solve
from mcmpart.summary import warnings_of
from mcmpart.verify import verify

GOOD = (0, 0, 1, 1, 2, 2)
"""A partition of the toy: stages of 6.2, 4.2 and 6.2 s."""


@pytest.fixture(scope="session", autouse=True)
def _compiled():
    warm_up()


@pytest.fixture
def branchy(make_package):
    """Give 60 ops with branches on four chips, far from tiny."""
    graph = random_dag(60, np.random.default_rng(3), 0.2)
    package = make_package(
        4,
        long_edges="direct",
        memory_bandwidth_bytes_per_s=64e9,
        io_bandwidth_bytes_per_s=8e9,
        op_overhead_s=1e-6,
        peak_ops_per_s=(("int8", 2e12),),
        bandwidth_bytes_per_s=40e9,
        latency_s=1e-6,
    )
    return Problem(graph, package)


def of(problem, *chips):
    """Return the partition with these chips."""
    return Partition(problem.graph, np.array(chips))


class Stub:
    """A method that proposes what it is told, then is done or raises."""

    def __init__(self, setting, *rows, error=None):
        self.name = "stub"
        self.done = False
        self.start = setting.start
        self._rows = list(rows)
        self._error = error

    def propose(self):
        """Return the next row."""
        if self._rows:
            return np.array([self._rows.pop(0)], dtype=np.int32)
        if self._error is not None:
            raise self._error
        self.done = True
        return np.empty((0, 6), dtype=np.int32)

    def observe(self, evaluations):
        """Learn nothing."""


def stub(*rows, error=None):
    """Return the maker of a stub."""

    def make_stub(setting):
        return Stub(setting, *rows, error=error)

    return make_stub


@pytest.mark.parametrize("method", METHODS)
def test_each_method(method, branchy):
    """Every method gives a verified plan well below the time of one chip."""
    result = solve(branchy, method=method, time_s=0.3, workers=1)
    verify(result)
    alone = make_result(branchy, of(branchy, *[0] * 60))
    assert result.lower_bound_s <= result.metrics.bottleneck_s
    assert result.metrics.bottleneck_s < 0.8 * alone.metrics.bottleneck_s
    assert (result.method, result.seed, result.workers) == (method, 0, 1)


@pytest.mark.parametrize("method", ["slice", "local"])
def test_the_toy_by_search(toy, toy_optimum_s, method):
    """A search that is not told that the toy is tiny finds its optimum, and proves it.

    The proof runs beside the search, and its success ends it.
    """
    result = solve(toy, method=method, time_s=30, gap=0, workers=1)
    verify(result)
    assert result.metrics.bottleneck_s == pytest.approx(toy_optimum_s)
    assert (result.lower_bound_method, result.problem) == ("ideals", toy)
    assert result.lower_bound_s == pytest.approx(toy_optimum_s, rel=1e-8)
    assert result.gap < 1e-8
    assert result.stopped_by == "gap"
    assert result.trace[-1].lower_bound_s == result.lower_bound_s


@pytest.mark.parametrize("method", ["slice", "local"])
def test_a_limit_of_evaluations_leaves_the_proof_out(toy, toy_optimum_s, method):
    """With a number of evaluations no thread takes part, and the bound is simple."""
    result = solve(toy, method=method, time_s=0.2, evaluations=10**9, workers=1)
    assert result.metrics.bottleneck_s == pytest.approx(toy_optimum_s)
    assert result.lower_bound_method == "simple"
    assert result.lower_bound_s == pytest.approx(16 / 3)
    assert result.gap == pytest.approx(1 - 16 / 3 / toy_optimum_s)


def test_the_trace(branchy):
    """Points get better, later and closer; the last is the result; all are told."""
    told = []
    result = solve(
        branchy, method="slice", time_s=0.2, workers=1, on_improvement=told.append
    )
    assert tuple(told) == result.trace
    plans = [point for point in told if point.method != "bound"]
    assert len(plans) > 1
    for before, after in itertools.pairwise(plans):
        assert after.bottleneck_s < before.bottleneck_s
        assert after.evaluations > before.evaluations
    for before, after in itertools.pairwise(told):
        assert after.seconds >= before.seconds
        assert after.lower_bound_s >= before.lower_bound_s
        if after.method == "bound":
            assert after.lower_bound_s > before.lower_bound_s
            assert after.bottleneck_s == before.bottleneck_s
    assert result.trace[-1].bottleneck_s == pytest.approx(result.metrics.bottleneck_s)
    assert {point.method for point in told} <= {"slice", "ideals", "bound"}
    assert result.trace[-1].lower_bound_s <= result.lower_bound_s


def test_the_gap_ends_the_search(toy):
    """A gap of 14.0 % is enough for 15 %."""
    result = solve(toy, method="local", gap=0.15, time_s=30, workers=1)
    assert result.stopped_by == "gap"
    assert result.seconds < 10


@pytest.mark.parametrize("limit", [1, 3])
def test_evaluations_end_the_search(branchy, limit):
    """Exactly as many partitions are judged as are allowed."""
    result = solve(branchy, method="local", evaluations=limit, gap=0, workers=1)
    assert (result.stopped_by, result.evaluations) == ("evaluations", limit)


def test_rows_beyond_the_limit_are_not_judged(toy):
    """Of a proposal of several rows only the allowed ones count."""

    def both(setting):
        method = Stub(setting)
        method.propose = lambda: np.array([[0] * 6, GOOD])
        return method

    result = solve(toy, method=both, evaluations=1)
    assert result.evaluations == 1
    assert result.partition.chip_of.tolist() == [0] * 6


def test_a_start_counts_as_an_evaluation(toy):
    """With a limit of one only the start is judged."""
    result = solve(toy, method="slice", start=of(toy, *GOOD), evaluations=1)
    assert (result.stopped_by, result.evaluations) == ("evaluations", 1)
    assert result.partition.chip_of.tolist() == list(GOOD)
    assert result.trace[0].method == "start"


def test_time_ends_the_search(branchy):
    """The time limit is kept within half a second."""
    result = solve(branchy, method="local", time_s=0.3, gap=0, workers=1)
    assert result.stopped_by == "time"
    assert 0.3 <= result.seconds < 0.8


def test_a_method_that_is_done(branchy):
    """Greedy has one proposal and then nothing more."""
    result = solve(branchy, method="greedy", time_s=30, gap=0, evaluations=9)
    assert (result.stopped_by, result.evaluations) == ("done", 1)


@pytest.mark.parametrize(("method", "limit"), [("slice", 3), ("local", 8), ("auto", 3)])
def test_same_seed_same_plan(branchy, method, limit):
    """Method, seed, workers and a number of evaluations decide the result."""
    runs = [
        solve(
            branchy,
            method=method,
            evaluations=limit,
            time_s=60,
            gap=0,
            seed=5,
            workers=2,
        )
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].partition.chip_of, runs[1].partition.chip_of)
    first, second = (
        [(point.evaluations, point.bottleneck_s) for point in run.trace] for run in runs
    )
    assert first == second


def test_another_seed(branchy):
    """The seed decides something."""
    plans = {
        solve(
            branchy, method="local", evaluations=3, gap=0, seed=seed, workers=1
        ).partition.chip_of.tobytes()
        for seed in range(4)
    }
    assert len(plans) > 1


def best_by_hand(problem):
    """Return the least bottleneck of all valid placements, in plain Python."""
    graph = problem.graph
    free = np.flatnonzero(~graph.op_replicable)
    costs = []
    for chips in itertools.product(range(problem.num_chips), repeat=free.size):
        row = np.full(graph.num_ops, -1)
        row[free] = chips
        if not explain(graph, problem.package, row.tolist(), problem.user):
            costs.append(recompute(graph, problem.package, row.tolist()).bottleneck_s)
    return min(costs, default=np.inf)


def test_tiny_problems_are_solved_in_full(make_problem):
    """Auto gives the optimum of a tiny problem, says so, and the gap is exactly 0."""
    rng = np.random.default_rng(0)
    num_infeasible = 0
    for _ in range(60):
        num_ops, num_chips = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        problem = make_problem(rng, num_ops, num_chips=num_chips, rules=True)
        least_s = best_by_hand(problem)
        if np.isinf(least_s):
            num_infeasible += 1
            with pytest.raises(InfeasibleError):
                solve(problem)
            continue
        result = solve(problem)
        verify(result)
        assert result.metrics.bottleneck_s == pytest.approx(least_s, rel=1e-12)
        assert (result.lower_bound_method, result.gap) == ("exhaustive", 0)
        assert result.stopped_by == "gap"
    assert 0 < num_infeasible < 30


def test_the_toy_in_full(toy, toy_optimum_s):
    """Its 28 partitions are judged, and the one point of the trace says by whom."""
    told = []
    result = solve(toy, on_improvement=told.append)
    assert result.metrics.bottleneck_s == pytest.approx(toy_optimum_s)
    assert (result.evaluations, result.gap, result.method) == (28, 0, "auto")
    assert [point.method for point in result.trace] == ["exhaustive"]
    assert tuple(told) == result.trace


def test_fewer_evaluations_than_partitions(toy):
    """A limit below the number of all partitions is kept; nothing is proven then."""
    result = solve(toy, evaluations=2, time_s=0.3)
    assert result.evaluations <= 2
    assert result.lower_bound_method == "simple"


def test_a_tiny_infeasible_problem_takes_no_time(make_package):
    """All partitions of a tiny problem are looked at first, not after the search."""
    # Buffers of 2 * 20 B and live tensors of 20 B; no proof looks at the latter.
    graph = chain(6, flops=0, tensor_bytes=10, seconds=[1] * 6)
    problem = Problem(graph, make_package(1, memory_bytes=50))
    began = time.perf_counter()
    with pytest.raises(InfeasibleError, match="all partitions were looked at"):
        solve(problem, time_s=60)
    assert time.perf_counter() - began < 10


def test_proofs_come_before_the_search(make_package):
    """What is provably impossible is refused with the rule, whatever the method."""
    user = UserRules(pins={"op_0": 1, "op_1": 0})
    problem = Problem(chain(2), make_package(2), user=user)
    with pytest.raises(InfeasibleError, match="data flows to higher chips") as caught:
        solve(problem, method=stub())
    assert caught.value.rule == "dataflow"


def test_a_small_problem_is_looked_at_after_all(toy, toy_optimum_s):
    """A method that finds nothing on a small problem still ends in its best plan."""
    result = solve(toy, method=stub())
    assert result.metrics.bottleneck_s == pytest.approx(toy_optimum_s)
    assert (result.stopped_by, result.trace) == ("done", ())


def test_a_method_of_your_own(toy):
    """A function that makes a method is run, judged and named."""
    result = solve(toy, method=stub([0] * 6, GOOD), seed=7, evaluations=9)
    assert result.partition.chip_of.tolist() == list(GOOD)
    assert (result.method, result.evaluations) == ("make_stub", 2)
    assert result.lower_bound_method == "simple"
    assert result.trace[0].method == "stub"
    verify(result)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (Greedy, "Greedy"),
        (functools.partial(Slice, max_orders=2), "partial"),
    ],
)
def test_names_of_makers(toy, method, name):
    """A class is called by its name; a partial has none and is called by its kind."""
    assert solve(toy, method=method, gap=0, time_s=30).method == name


def test_a_proposal_of_the_wrong_shape(toy):
    """A method that proposes one row without an axis of rows is told so."""

    def flat(setting):
        method = Stub(setting)
        method.propose = lambda: np.zeros(6, dtype=np.int32)
        return method

    with pytest.raises(InputError, match=r"'stub' proposed an array of shape \(6,\)"):
        solve(toy, method=flat)


def test_interrupt_before_any_plan(toy):
    """Ctrl-C before there is a plan is passed on."""
    with pytest.raises(KeyboardInterrupt):
        solve(toy, method=stub(error=KeyboardInterrupt()))


def test_interrupt_after_a_plan(toy):
    """Ctrl-C ends the search and keeps the best plan, and the result says so."""
    result = solve(toy, method=stub(GOOD, error=KeyboardInterrupt()))
    assert result.partition.chip_of.tolist() == list(GOOD)
    assert result.stopped_by == "interrupt"
    assert "the search was interrupted" in warnings_of(result)[-1]
    verify(result)


def test_other_errors_of_a_method_pass(toy):
    """A fault of a method of your own is not hidden, plan or not."""
    with pytest.raises(ZeroDivisionError):
        solve(toy, method=stub(GOOD, error=ZeroDivisionError()))


@pytest.mark.parametrize("method", METHODS)
def test_a_valid_start(branchy, method):
    """A start is judged first, handed to the method, and no note is made of it."""
    start = solve(branchy, method="slice", time_s=0.2, workers=1).partition
    start_s = make_result(branchy, start).metrics.bottleneck_s
    result = solve(branchy, method=method, start=start, time_s=0.1, workers=1)
    verify(result)
    assert result.trace[0].method == "start"
    assert result.metrics.bottleneck_s <= start_s
    assert result.notes == ()


@pytest.mark.parametrize(
    ("chips", "reason"),
    [
        ((2, 0, 1, 1, 2, 2), "dataflow: op 'op_1' on chip 0 reads what 'op_0' makes"),
        ((0, 0, 0, 0, 0, 9), "dataflow: op 'op_5' is on chip 9"),
        ((1, 1, 1, 1, 2, 2), "no_skip: chip 0 is empty, but chip 2 is used"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_start_that_is_not_valid(toy, method, chips, reason):
    """It is a hint only, which is noted and warned of; the result is valid."""
    result = solve(toy, method=method, start=of(toy, *chips), time_s=0.1, workers=1)
    verify(result)
    (note,) = result.notes
    assert note.startswith(
        f"the partition to start from is not valid here (rule {reason}"
    )
    assert note.endswith("so it was only a hint")
    assert note in warnings_of(result)


def test_start_from_other_replicas(make_package):
    """A start made with other replicated ops is read the way this problem has them."""
    graph = random_dag(30, np.random.default_rng(4), 0.3)
    package = make_package(3, long_edges="direct")
    none = Problem(graph, package, replica_threshold=0.0)
    some = Problem(graph, package, replica_threshold=0.3)
    assert not none.graph.op_replicable.any()
    assert some.graph.op_replicable.any()
    for given, asked in itertools.permutations((none, some)):
        start = solve(given, method="slice", time_s=0.1, workers=1).partition
        for method in METHODS:
            result = solve(asked, method=method, start=start, time_s=0.1, workers=1)
            verify(result)
            assert np.array_equal(
                result.partition.chip_of == -1, asked.graph.op_replicable
            )


def test_start_from_another_graph(toy, make_package):
    """A partition of another number of ops is refused."""
    other = Problem(chain(5), make_package(3))
    with pytest.raises(InputError, match="is for 5 ops, and the graph has 6"):
        solve(toy, start=of(other, 0, 0, 1, 1, 2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": -1}, "the seed is -1: give 0 or more"),
        ({"workers": 0}, "the number of workers is 0: give at least 1"),
        ({"time_s": 0}, "the time limit is 0 s: give more than 0"),
        ({"time_s": float("inf")}, "the time limit is inf s"),
        ({"time_s": float("nan")}, "the time limit is nan s"),
        ({"evaluations": 0}, "give at least 1"),
        ({"gap": -0.1}, "the gap is -0.1: give"),
        ({"gap": float("inf")}, "the gap is inf: give"),
        ({"gap": float("nan")}, "the gap is nan: give"),
        (
            {"method": "magic"},
            "there is no method 'magic': choose one of auto, greedy, random, anneal, ",
        ),
    ],
)
def test_options_out_of_range(toy, options, sentence):
    """Each is refused in one sentence with the value met, before any search."""
    with pytest.raises(InputError) as caught:
        solve(toy, **options)
    assert sentence in str(caught.value)
    assert caught.value.exit_code == 2


def test_make_result(toy):
    """A valid partition of one's own is a result with every figure, which verifies."""
    result = make_result(toy, of(toy, *GOOD))
    assert result.metrics.bottleneck_s == pytest.approx(6.2)
    assert (result.method, result.lower_bound_method) == ("given", "simple")
    assert (result.trace, result.evaluations, result.stopped_by) == ((), 1, "done")
    verify(result)


@pytest.mark.parametrize(
    ("chips", "sentence"),
    [
        ((1, 0, 1, 1, 2, 2), "the partition breaks the rule dataflow: op 'op_1' on"),
        ((0, 0, 0, 0, 2, 2), "the partition breaks the rule no_skip: chip 1 is empty"),
        ((0, 0, 0, 0, 0, 3), "op 'op_5' is on chip 3, and package 'toy' has chips 0"),
    ],
)
def test_make_result_of_an_invalid_partition(toy, chips, sentence):
    """What breaks a rule is refused with the rule and the reason."""
    with pytest.raises(InputError) as caught:
        make_result(toy, of(toy, *chips))
    assert sentence in str(caught.value)


def test_make_result_checks_the_users_rules(toy):
    """The user's rules count as well."""
    asked = Problem(toy.model, toy.package, user=UserRules(pins={"op_0": 1}))
    with pytest.raises(InputError, match="rule pin: op 'op_0' is on chip 0, not on 1"):
        make_result(asked, of(asked, *GOOD))


def test_make_result_of_another_graph(toy, make_package):
    """A partition of another number of ops is refused."""
    other = Problem(chain(5), make_package(3))
    with pytest.raises(InputError, match=r"chip_of has shape \(5,\)"):
        make_result(toy, of(other, 0, 0, 1, 1, 2))


def test_workers_default_to_all_cores(toy):
    """The result says how many threads there were, by default one or more."""
    assert solve(toy).workers >= 1


def answering(bottleneck_s, valid):
    """Return an evaluator that says the same of every partition."""

    def judge(rows):
        return Evaluations(
            rows,
            np.full(len(rows), bottleneck_s),
            np.full(len(rows), valid),
        )

    return judge


def test_an_evaluator_that_refuses_all(toy):
    """What an evaluator calls invalid is no plan, also where the cost model has one."""
    refuse = answering(1.0, False)
    with pytest.raises(NoPlanFoundError, match="the evaluator called every partition"):
        solve(toy, evaluator=refuse, evaluations=5, time_s=60)


def test_what_an_evaluator_measured_is_noted(toy):
    """The value stands in the result, and a sentence says whose the others are."""
    result = solve(toy, evaluator=answering(7.5, True), evaluations=3, time_s=60)
    assert result.measured_s == 7.5
    assert result.notes[0].startswith(
        "an evaluator judged the partitions and measured 7.5"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda rows: (1.0, True), "returned a tuple: return mcmpart.search.Eval"),
        (
            lambda rows: Evaluations(rows, np.ones(len(rows) + 1), np.ones(1, bool)),
            "bottleneck_s has shape (2,): give one entry for each of the 1 part",
        ),
        (
            lambda rows: Evaluations(rows, np.ones(len(rows)), np.ones(9, bool)),
            "valid has shape (9,)",
        ),
        (answering(np.nan, True), "says nan s of a partition that it calls valid"),
        (answering(-1.0, True), "says -1.0 s of a partition"),
    ],
)
def test_an_evaluator_that_makes_no_sense(toy, answer, words):
    """Its answer is refused in one sentence."""
    with pytest.raises(InputError) as caught:
        solve(toy, method="greedy", evaluator=answer, time_s=60)
    assert words in str(caught.value)


def test_no_time_of_an_invalid_partition_counts(toy):
    """Of what is invalid an evaluator may say anything, NaN too."""
    with pytest.raises(NoPlanFoundError):
        solve(toy, method="greedy", evaluator=answering(np.nan, False), time_s=60)
