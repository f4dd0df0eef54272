"""Whatever comes back solved is valid, on graphs, packages and rules of all kinds."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcmpart.solver import ORDERS, fix_many, sample_many

cases = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "num_ops": st.integers(1, 40),
        "order": st.sampled_from(ORDERS),
        "uniform_share": st.sampled_from([0.0, 0.02, 1.0]),
        "sharpness": st.sampled_from([0.0, 1.0, 20.0]),
        "nearest": st.booleans(),
    }
)


@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=cases)
def test_solved_rows_break_no_rule(case, make_problem, broken):
    """Solved draws and corrections have no violation; the others are all -1."""
    rng = np.random.default_rng(case["seed"])
    problem = make_problem(rng, case["num_ops"], rules=True)
    weights = rng.random((problem.graph.num_ops, problem.num_chips))
    drawn = sample_many(
        problem,
        weights ** case["sharpness"],
        range(4),
        order=case["order"],
        uniform_share=case["uniform_share"],
    )
    candidates = rng.integers(-1, problem.num_chips + 1, (4, problem.graph.num_ops))
    fixed = fix_many(
        problem, candidates, range(4), order=case["order"], nearest=case["nearest"]
    )
    for rows, solved in (drawn, fixed):
        for row, done in zip(rows, solved, strict=True):
            if done:
                assert broken(problem, row) == set()
            else:
                assert (row == -1).all()


def test_all_are_solved_without_memory(make_problem):
    """All ops on the first chip would do, so each draw and correction succeeds."""
    rng = np.random.default_rng(0)
    num_rows = 0
    for _ in range(80):
        problem = make_problem(rng, int(rng.integers(1, 41)))
        if problem.package.has_rule("memory"):
            continue
        _, drawn = sample_many(problem, None, range(4))
        candidates = rng.integers(problem.num_chips, size=(4, problem.graph.num_ops))
        _, fixed = fix_many(problem, candidates, range(4))
        assert drawn.all()
        assert fixed.all()
        num_rows += 8
    assert num_rows >= 100
