"""correct: the fit of the factors, and the search on the corrected model."""

import time

import numpy as np
import pytest

from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.evaluate import evaluate
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import transformer
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search import (
    METHODS,
    Budget,
    Evaluations,
    Setting,
    pipeline_evaluator,
    run_search,
)
from mcmpart.search import _factors as factors_module
from mcmpart.search._factors import Factors, op_classes, posterior
from mcmpart.search.correct import Correct
from mcmpart.solve import solve


class Machine:
    """An evaluator of the true op times, with or without stage times and faults."""

    def __init__(self, truth, *, stages=True, faults=lambda row: False):
        self.truth, self.stages, self.faults = truth, stages, faults
        self.rows = []

    def __call__(self, chip_of):
        """Judge partitions ``[B, V]``."""
        self.rows += chip_of.tolist()
        found = [self.evaluated(row) for row in chip_of]
        stage_s = np.array([[chip.stage_s for chip in one.chips] for one in found])
        return Evaluations(
            chip_of,
            np.array([one.bottleneck_s for one in found]),
            np.array(
                [
                    one.valid and not self.faults(row)
                    for one, row in zip(found, chip_of, strict=True)
                ]
            ),
            stage_s if self.stages else None,
        )

    def evaluated(self, row):
        """Return every true figure of one partition."""
        return evaluate(self.truth, Partition(self.truth.graph, row))


def kinds_graph(num_ops, seconds=None):
    """Return a chain whose ops are of kinds A, B, C in turn, 2 s each by default."""
    builder = GraphBuilder("kinds")
    builder.host_tensor(TensorSpec("t0", 1))
    for i in range(num_ops):
        builder.op(
            OpSpec(
                f"op{i}",
                "ABC"[i % 3],
                seconds=2.0 if seconds is None else seconds[i],
                reads=(f"t{i}",),
                writes=(TensorSpec(f"t{i + 1}", 1),),
            )
        )
    builder.output(f"t{num_ops}")
    return builder.build()


def quirky(problem, by_kind, by_chip):
    """Return the problem with op times multiplied per kind and per chip."""
    kind = np.array([by_kind[kind] for kind in problem.graph.op_kind])
    op_s = problem.costs.op_s[problem.package_arrays.chip_class]
    return problem.with_costs(op_s * kind * np.array(by_chip)[:, None])


def search(problem, machine, *, time_s=5.0, evaluations=20):
    """Run correct; return the record."""
    started = time.perf_counter()
    setting = Setting(problem, deadline=started + time_s)
    budget = Budget(time_s, evaluations)
    return run_search(Correct(setting), machine, budget, 0.0, started=started)


@pytest.fixture
def kinds(make_package):
    """Give nine ops of three kinds on three chips, and the same on a quirky machine.

    By the model the best plan has three ops on each chip, 6.2 s. On the machine A
    takes 3 times as long, C half as long, and all on chip 2 twice as long.
    """
    problem = Problem(kinds_graph(9), make_package(3))
    return problem, quirky(problem, {"A": 3.0, "B": 1.0, "C": 0.5}, [1.0, 1.0, 2.0])


def test_with_costs_charges_each_chip_its_own(toy):
    """Each op takes the seconds given for its chip, and nothing else has changed."""
    op_s = np.arange(18.0).reshape(3, 6)
    other = toy.with_costs(op_s)
    row = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)
    before, after = (
        evaluate(problem, Partition(problem.graph, row)) for problem in (toy, other)
    )
    assert [chip.compute_s for chip in after.chips] == [0 + 1, 8 + 9, 16 + 17]
    for old, new in zip(before.chips, after.chips, strict=True):
        assert new.transfer_s == old.transfer_s
        assert new.memory_bytes == old.memory_bytes
    assert [chip.compute_s for chip in before.chips] == [6, 4, 6]


def test_with_costs_keeps_the_users_rules(make_package):
    """Pins, groups and pairs apart hold in the problem with other costs."""
    user = UserRules({"op0": 0}, (("op1", "op2"),), (("op3", "op4"),), all_chips=True)
    problem = Problem(kinds_graph(6), make_package(2), user=user)
    other = problem.with_costs(np.ones((2, 6)))
    for old, new in ((problem.ops, other.ops), (problem.blocks, other.blocks)):
        assert np.array_equal(new.block_of, old.block_of)
        for name in ("pin", "same", "apart"):
            assert np.array_equal(getattr(new.arrays, name), getattr(old.arrays, name))
        assert new.arrays.pin.max() == 0


@pytest.mark.parametrize("seed", range(8))
def test_with_costs_of_its_own_costs_is_the_same(make_problem, make_rows, seed):
    """With the op times it has, a problem judges every partition as before."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 12, num_chips=4)
    op_s = problem.costs.op_s[problem.package_arrays.chip_class]
    rows = make_rows(rng, problem, 30)
    old = pipeline_evaluator(problem, 1)(rows)
    new = pipeline_evaluator(problem.with_costs(op_s), 1)(rows)
    np.testing.assert_allclose(new.bottleneck_s, old.bottleneck_s, rtol=1e-12)
    assert np.array_equal(new.valid, old.valid)


def test_classes_are_kinds_and_shapes():
    """Ops share a class if kind, work and what they write are the same."""
    graph = transformer(2)
    class_of, kind_of = op_classes(graph, np.ones((1, graph.num_ops)))
    kinds_of_ops = kind_of[class_of]
    for u in range(graph.num_ops):
        for v in range(u):
            same_kind = graph.op_kind[u] == graph.op_kind[v]
            assert (kinds_of_ops[u] == kinds_of_ops[v]) == same_kind
            if class_of[u] == class_of[v]:
                assert graph.op_flops[u] == graph.op_flops[v]
                assert graph.op_bytes[u] == graph.op_bytes[v]
    assert len(set(graph.op_kind)) < kind_of.size < graph.num_ops / 2


def test_cheap_classes_of_a_kind_are_joined(monkeypatch):
    """Beyond the limit, only the costliest classes stand for themselves."""
    graph = transformer(1)
    seconds = np.arange(1.0, graph.num_ops + 1)
    monkeypatch.setattr(factors_module, "MOST_CLASSES", 3)
    class_of, kind_of = op_classes(graph, seconds[None])
    assert kind_of.size <= 3 + len(set(graph.op_kind))
    assert class_of.max() == kind_of.size - 1
    assert len({kind_of[c] for c in class_of}) == len(set(graph.op_kind))


@pytest.mark.parametrize("seed", range(10))
def test_class_seconds_add_up(make_problem, make_rows, seed):
    """The seconds of the classes on a chip are its compute time, replicas included."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 20, num_chips=4)
    factors = Factors(problem)
    for row in make_rows(rng, problem, 6):
        found = evaluate(problem, Partition(problem.graph, row))
        compute_s = [chip.compute_s for chip in found.chips]
        np.testing.assert_allclose(
            factors._class_seconds(row).sum(axis=1), compute_s, rtol=1e-12
        )


def observed(problem, truth, rows, **options):
    """Return factors that have seen the partitions on a machine."""
    factors = Factors(problem)
    judged = Machine(truth, **options)(rows)
    for i, row in enumerate(rows):
        stage_s = None if judged.stage_s is None else judged.stage_s[i]
        factors.observe(row, float(judged.bottleneck_s[i]), stage_s)
    return factors


def random_cuts(rng, num_chips, num_ops, count):
    """Return random cuts of a chain, ``[count, V] int32``, no chip empty."""
    rows = np.zeros((count, num_ops), dtype=np.int32)
    for row in rows:
        cuts = rng.choice(np.arange(1, num_ops), num_chips - 1, replace=False)
        row[:] = np.searchsorted(np.sort(cuts), np.arange(num_ops), side="right")
    return rows


@pytest.mark.parametrize("io", ["serial", "overlap"])
def test_the_fit_finds_the_factors(make_package, io):
    """After ten plans, the times of ops on chips are within 5 % of the hidden ones."""
    problem = Problem(kinds_graph(12), make_package(3, io=io))
    truth = quirky(problem, {"A": 3.0, "B": 1.0, "C": 0.5}, [1.0, 1.3, 2.0])
    rows = random_cuts(np.random.default_rng(0), 3, 12, 10)
    factors = observed(problem, truth, rows)
    fitted_s = factors.op_seconds(factors.fit())
    assert np.abs(fitted_s / truth.costs.op_s - 1).max() < 0.05
    assert np.abs(problem.costs.op_s / truth.costs.op_s - 1).max() > 0.5


def test_what_was_hardly_seen_follows_its_kind(make_package):
    """A shape of which nothing is known takes the factor of the kind's other shapes.

    Op 0 writes 2 bytes, so it has a shape of its own; it stands in for nothing seen.
    """
    builder = GraphBuilder("shapes")
    builder.host_tensor(TensorSpec("t0", 1))
    for i, (kind, size) in enumerate([("A", 2), ("A", 1), ("A", 3), ("B", 1)]):
        spec = OpSpec(
            f"op{i}",
            kind,
            seconds=1.0,
            reads=("t0",),
            writes=(TensorSpec(f"t{i + 1}", size),),
        )
        builder.op(spec)
        builder.output(f"t{i + 1}")
    problem = Problem(builder.build(), make_package(4, long_edges="direct"))
    truth = quirky(problem, {"A": 2.0, "B": 1.0}, [1.0] * 4)
    factors = Factors(problem)
    row = np.arange(4, dtype=np.int32)
    seen = Machine(truth)(row[None])
    stage_s = np.where(row == 0, np.nan, seen.stage_s[0])
    factors.observe(row, float(seen.bottleneck_s[0]), stage_s)
    factor = np.diag(factors.op_seconds(factors.fit()))
    assert factor[0] > 1.3
    assert factor[3] == pytest.approx(1.0, abs=0.15)


def test_bottlenecks_alone_tell_something(kinds):
    """Without stage times, bottlenecks alone bring the model nearer to the machine."""
    problem, truth = kinds
    rng = np.random.default_rng(1)
    factors = observed(problem, truth, random_cuts(rng, 3, 9, 25), stages=False)
    corrected = problem.with_costs(factors.op_seconds(factors.fit()))
    unseen = random_cuts(rng, 3, 9, 25)
    true_s = Machine(truth)(unseen).bottleneck_s
    error, error_before = (
        np.abs(np.log(pipeline_evaluator(model, 1)(unseen).bottleneck_s / true_s))
        for model in (corrected, problem)
    )
    assert error.mean() < 0.1
    assert error_before.mean() > 0.4


def test_without_observations_nothing_changes(kinds):
    """A fit of nothing leaves the analytical model as it is."""
    factors = Factors(kinds[0])
    op_s = kinds[0].costs.op_s[[0, 0, 0]]
    assert np.array_equal(factors.op_seconds(factors.fit()), op_s)


def test_a_stage_that_only_transfers_tells_nothing(make_package):
    """Where a transfer hides the ops, their factors stay as they were."""
    slow = make_package(2, io="overlap", io_bandwidth_bytes_per_s=1e-3)
    problem = Problem(kinds_graph(4), slow)
    truth = quirky(problem, {"A": 3.0, "B": 1.0, "C": 0.5}, [1.0, 2.0])
    factors = observed(problem, truth, random_cuts(np.random.default_rng(0), 2, 4, 5))
    assert not factors.fit().any()


def test_slopes_match_differences(kinds):
    """Each slope is the derivative of a logarithm of a stage time."""
    problem, truth = kinds
    rng = np.random.default_rng(2)
    factors = observed(problem, truth, random_cuts(rng, 3, 9, 3))
    factors._mean = 0.3 * rng.standard_normal(factors._mean.size)
    slope, _ = factors._linearised()
    stages = [
        (seen.class_s, seen.transfer_s, chip)
        for seen in factors._seen
        for chip in range(3)
    ]

    def logarithms(exponents):
        grown = factors._class_factors(exponents)
        return np.log(
            [(c * grown)[chip].sum() + transfer[chip] for c, transfer, chip in stages]
        )

    for p in range(factors._mean.size):
        step = np.zeros_like(factors._mean)
        step[p] = 1e-6
        difference = logarithms(factors._mean + step) - logarithms(factors._mean - step)
        np.testing.assert_allclose(slope[:, p], difference / 2e-6, atol=1e-7)


def test_the_posterior_is_the_one_of_ridge_regression():
    """Mean and variances agree with the normal equations, solved at once."""
    rng = np.random.default_rng(3)
    slope, wanted = rng.standard_normal((7, 4)), rng.standard_normal(7)
    prior, noise = rng.uniform(0.1, 1, 4), 0.2
    covariance = np.linalg.inv(slope.T @ slope / noise**2 + np.diag(1 / prior))
    mean, variance = posterior(slope, wanted, prior, noise)
    expected = covariance @ slope.T @ wanted / noise**2
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-9)


def test_draws_scatter_as_the_posterior_says(kinds):
    """Draws have the mean of the fit and the variances of what it leaves open."""
    problem, truth = kinds
    rows = random_cuts(np.random.default_rng(4), 3, 9, 2)
    factors = observed(problem, truth, rows)
    mean = factors.fit()
    slope, wanted = factors._linearised()
    prior = factors._spread[factors._group_of] ** 2
    centre, variance = posterior(slope, wanted, prior, factors._noise)
    rng = np.random.default_rng(5)
    draws = np.array([factors.draw(rng) for _ in range(4000)])
    error = np.sqrt(variance / 4000)
    assert (np.abs(draws.mean(axis=0) - centre) < 5 * error + 1e-9).all()
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(variance), rtol=0.1)
    wide = np.array([factors.draw(rng, 2.0) for _ in range(500)])
    assert (wide - mean).std() > 1.5 * (draws - mean).std()


@pytest.mark.parametrize(("stages", "excess"), [(True, 1e-12), (False, 0.1)])
def test_the_machines_optimum_is_found(kinds, stages, excess):
    """What is chosen is the machine's optimum, without stage times nearly so."""
    problem, truth = kinds
    optimum_s = best_of_all(truth).bottleneck_s
    machine = Machine(truth, stages=stages)
    models_best = best_of_all(problem).chip_of
    assert machine.evaluated(models_best).bottleneck_s > 1.15 * optimum_s
    record = search(problem, machine)
    assert record.bottleneck_s <= optimum_s * (1 + excess)
    assert record.evaluations <= 20


def test_nothing_is_judged_twice(kinds):
    """No partition is proposed a second time."""
    problem, truth = kinds
    machine = Machine(truth)
    record = search(problem, machine, time_s=30.0, evaluations=8)
    assert record.evaluations == len(machine.rows) >= 5
    assert len({tuple(row) for row in machine.rows}) == len(machine.rows)


def test_the_end_is_noticed(make_package):
    """Where every partition was judged, it is done before the time is up."""
    problem = Problem(kinds_graph(2), make_package(1))
    record = search(problem, Machine(problem), time_s=60.0, evaluations=None)
    assert record.stopped_by == "done"
    assert record.evaluations == 1


def test_faults_are_avoided(kinds):
    """Where the machine rejects the best plans, the best of the others is found."""
    problem, truth = kinds
    rows = list(_cuts(9, 3))
    judged = Machine(truth)(np.array(rows, dtype=np.int32))
    by_cost = np.argsort(judged.bottleneck_s, kind="stable")
    rejected = {tuple(rows[i]) for i in by_cost[:3]}
    machine = Machine(truth, faults=lambda row: tuple(row.tolist()) in rejected)
    record = search(problem, machine, evaluations=40)
    assert record.bottleneck_s == judged.bottleneck_s[by_cost[3]]
    tried = [tuple(row) for row in machine.rows]
    assert all(tried.count(row) <= 1 for row in rejected)


def _cuts(num_ops, num_chips):
    """Return every cut of a chain into runs on the first chips."""
    if num_chips == 1:
        return [[0] * num_ops]
    return [
        [0] * first + [chip + 1 for chip in rest]
        for first in range(1, num_ops)
        for rest in _cuts(num_ops - first, num_chips - 1)
    ] + [[0] * num_ops]


def test_all_rejected_is_survived(kinds):
    """A machine that takes nothing is asked until the budget ends, never twice."""
    problem, truth = kinds
    machine = Machine(truth, faults=lambda row: True)
    record = search(problem, machine, time_s=1.0, evaluations=8)
    assert record.best is None
    assert record.stopped_by in ("evaluations", "done", "time")
    assert len({tuple(row) for row in machine.rows}) == len(machine.rows) >= 2


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_odd_times_are_passed_over(toy, value):
    """Times of 0, NaN or infinity teach nothing and stop nothing."""

    def judge(rows):
        judged = Machine(toy.with_costs(toy.costs.op_s[[0, 0, 0]]))(rows)
        judged.stage_s[:, 1] = value
        judged.bottleneck_s[::2] = value if np.isfinite(value) else np.inf
        return judged

    record = search(toy, judge, time_s=0.5, evaluations=10)
    assert record.evaluations >= 1


def test_calls_return_in_time(kinds):
    """A proposal is made in several calls, which return nothing in between."""
    setting = Setting(kinds[0], deadline=time.perf_counter() + 60)
    method = METHODS["correct"](setting)
    judge = Machine(kinds[1])
    method.observe(judge(method.propose()))
    sizes = [method.propose().shape[0] for _ in range(4)]
    assert sizes == [0, 0, 0, 0]


def test_solve_takes_an_evaluator(kinds):
    """The result has what the machine measured and the model's figures beside it."""
    problem, truth = kinds
    optimum_s = best_of_all(truth).bottleneck_s
    result = solve(
        problem, method="correct", evaluator=Machine(truth), time_s=5, evaluations=20
    )
    assert result.measured_s == pytest.approx(optimum_s, rel=1e-12)
    model = evaluate(problem, result.partition)
    assert result.metrics.bottleneck_s == model.bottleneck_s
    assert result.stopped_by in ("evaluations", "done")


def test_the_bound_does_not_stop_an_evaluator(kinds):
    """A machine faster than the model allows is searched on, not proven optimal."""
    problem = kinds[0]
    fast = problem.with_costs(problem.costs.op_s[[0, 0, 0]] / 100)
    result = solve(
        problem, method="slice", evaluator=Machine(fast), time_s=0.5, evaluations=200
    )
    assert result.stopped_by != "gap"
    assert result.measured_s < result.lower_bound_s


@pytest.mark.parametrize("method", ["auto", "correct"])
def test_without_an_evaluator_nothing_is_measured(toy, method, toy_optimum_s):
    """The analytical model's judgement is no measurement."""
    result = solve(toy, method=method, time_s=0.3)
    assert result.measured_s is None
    assert result.metrics.bottleneck_s == pytest.approx(toy_optimum_s)
