"""chain: its steps by hand, and never against a plan that is known."""

import numpy as np
import pytest

from mcmpart.bounds import chain as chain_module
from mcmpart.bounds.chain import lump, make_chain, refute
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.bounds.ideals import proof_blocks
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem

ABOVE, BELOW = 1 + 1e-9, 1 - 1e-5
"""A limit that the optimum keeps to, and one that a chain can tell from it."""


def try_limit(problem, limit_s, left_s=lambda: 60.0, is_late=lambda: False):
    """Return the ranges that refute a limit, or None."""
    steps = make_chain(problem, proof_blocks(problem))
    attempt = refute(steps, limit_s, left_s, is_late)
    return attempt.ranges if attempt.refuted else None


def try_lump(problem, limit_s, left_s=lambda: 60.0, is_late=lambda: False):
    """Return the block that no stage within a limit can hold, or None."""
    steps = make_chain(problem, proof_blocks(problem))
    return lump(steps, limit_s, left_s, is_late)


def new_ends(problem, limit_s):
    """Return both ends of a chain, before their first steps."""
    steps = make_chain(problem, proof_blocks(problem))
    return chain_module._Ends(steps, limit_s, lambda: 60.0, lambda: False, ())


@pytest.mark.parametrize("seed", range(5))
def test_against_all_partitions(seed, make_problem):
    """The optimum is never refuted, and what is just below it mostly is."""
    rng = np.random.default_rng(seed)
    num_solvable = num_refuted = 0
    for _ in range(50):
        problem = make_problem(rng, int(rng.integers(1, 7)), rules=True)
        best_s = best_of_all(problem).bottleneck_s
        if not 0 < best_s < np.inf:
            continue
        num_solvable += 1
        assert try_limit(problem, best_s * ABOVE) is None
        assert try_lump(problem, best_s * ABOVE) is None
        num_refuted += try_limit(problem, best_s * BELOW) is not None
    assert num_solvable > 25
    assert num_refuted >= 0.5 * num_solvable


def test_never_against_a_known_plan(make_problem, make_rows):
    """On graphs too large to look at in full, no plan's value is refuted."""
    rng = np.random.default_rng(0)
    num_tried = num_refuted = 0
    for _ in range(12):
        problem = make_problem(rng, 20)
        cost, valid = evaluate_many(problem, make_rows(rng, problem, 400))
        if not valid.any():
            continue
        num_tried += 1
        best_s = cost[valid].min()
        assert try_limit(problem, best_s * ABOVE) is None
        assert try_lump(problem, best_s * ABOVE) is None
        num_refuted += try_limit(problem, best_s / 2) is not None
    assert num_tried > 6
    assert num_refuted > 3


def test_by_hand(by_hand):
    """The optimum is not refuted, and half of it is."""
    problem, optimum_s = by_hand
    assert try_limit(problem, optimum_s * ABOVE) is None
    assert try_limit(problem, optimum_s / 2) is not None


def test_the_toy_step_by_step(toy, toy_optimum_s):
    """Within 6.1 s the first chip gets through [4], the last one through [4].

    A block's work is its time, and 0.1 s each for the tensors from and to the host:
    4.1 2 1 3 2 4.1, 16.2 s in all. [4 2] would take 6.2 s. What the last two chips
    leave to the first is at least 16.2 - 2 * 6.1 = 4 s, and the middle chip cannot
    get from 4.1 to 12.1 s.
    """
    ranges = try_limit(toy, 6.1)
    least, most = zip(*ranges, strict=True)
    assert least[0] == most[0] == 0
    assert least[3] == most[3] == pytest.approx(16.2)
    assert most[1] == pytest.approx(4.1, abs=1e-4)
    assert least[2] == pytest.approx(12.1, abs=1e-4)
    assert any(low > high for low, high in ranges)
    assert try_limit(toy, toy_optimum_s * BELOW) is not None
    assert try_limit(toy, toy_optimum_s * ABOVE) is None


def test_from_the_front_alone(toy):
    """[4] is as far as the first chip gets, and [2 1 3] is too much for the second.

    10.1 s must be done by then, so that 6.1 s are left.
    """
    ends = new_ends(toy, 6.1)
    assert ends.least == pytest.approx([0, 4.0, 10.1, 16.2])
    assert ends.most == pytest.approx([0, 6.1, 12.2, 16.2])
    assert not ends._step_forward()
    assert ends.most[1] == pytest.approx(4.1, abs=1e-4)
    assert ends._step_forward()
    assert ends.most[2] < ends.least[2]


def test_from_the_back_alone(toy):
    """The last chip takes [4], and the one before it cannot take [1 3 2]."""
    ends = new_ends(toy, 6.1)
    assert not ends._step_back()
    assert ends.least[2] == pytest.approx(12.1, abs=1e-4)
    assert ends._step_back()
    assert ends.least[1] > ends.most[1]


def test_both_ends_of_what_fits(toy):
    """Within 6.2 s the first chip gets to 6.1 s, and the last one begins at 10.1 s."""
    ends = new_ends(toy, 6.2 * ABOVE)
    assert not ends._step_forward()
    assert not ends._step_back()
    assert ends.most[1] == pytest.approx(6.1, abs=1e-4)
    assert ends.least[2] == pytest.approx(10.1, abs=1e-4)
    assert not ends._step_forward()


def test_a_standstill_is_seen(make_package, monkeypatch):
    """Where no chip can go on, the chips that are left need no program each.

    Ops of 1 s with 9 s in the middle and a limit of 5 s: from both ends it takes a few
    programs to see, of 2 for each of 40 chips.
    """
    seconds = [1.0] * 3 + [9.0] + [1.0] * 3
    graph = chain(7, flops=0, tensor_bytes=1, seconds=seconds)
    problem = Problem(graph, make_package(40, rules=("triangle",)))
    solved = []
    solve = chain_module.solve_program

    def counted(program, *arguments, **options):
        solved.append(program.num_columns)
        return solve(program, *arguments, **options)

    monkeypatch.setattr(chain_module, "solve_program", counted)
    assert try_limit(problem, 5.0) is not None
    assert len(solved) < 20


def test_without_jump_rows(by_hand, monkeypatch):
    """Rows that are left out weaken the bound, and never make it wrong."""
    monkeypatch.setattr(chain_module, "MOST_JUMP_ROWS", 0)
    problem, optimum_s = by_hand
    assert try_limit(problem, optimum_s * ABOVE) is None


def test_jump_rows_count(make_package, net):
    """Under triangle the rows for jumps prove 7.2 s; without triangle 4.2 s are left.

    u -> w -> v of 3 s each, and 10 bytes from u to v.
    """
    graph = net(
        ("u", 3.0, ("x",), (1, 10)),
        ("w", 3.0, ("u.0",), (1,)),
        ("v", 3.0, ("w.0", "u.1"), (1,)),
    )
    for long_edges, optimum_s in (("forbid", 7.2), ("direct", 4.2)):
        problem = Problem(graph, make_package(3, long_edges=long_edges))
        assert try_limit(problem, optimum_s * BELOW) is not None
        assert try_limit(problem, optimum_s * ABOVE) is None


@pytest.mark.parametrize("seed", range(3))
def test_ranges_hold_the_best_partition(seed, make_problem):
    """Of a limit that is not refuted the ranges hold the work of the best partition.

    Also where a first attempt at a higher limit says what is known.
    """
    rng = np.random.default_rng(seed)
    num_tried = 0
    for _ in range(30):
        problem = make_problem(rng, int(rng.integers(2, 7)), rules=True)
        best = best_of_all(problem)
        if not 0 < best.bottleneck_s < np.inf:
            continue
        num_tried += 1
        blocks = proof_blocks(problem)
        steps = make_chain(problem, blocks)
        known = ()
        for factor in (1.5, 1.1, ABOVE):
            attempt = refute(
                steps,
                best.bottleneck_s * factor,
                lambda: 60.0,
                lambda: False,
                known,
            )
            assert not attempt.refuted
            known = attempt.ranges
            chip_of = best.chip_of[blocks.arrays.first_op]
            for b, (least, most) in enumerate(known):
                work = steps.work_s[chip_of < b].sum()
                assert least * (1 - 1e-5) <= work <= most * (1 + 1e-5)
    assert num_tried > 15


def test_known_ranges_are_used(toy):
    """What is known of a higher limit narrows the ranges of a lower one."""
    steps = make_chain(toy, proof_blocks(toy))
    known = ((0.0, 0.0), (4.05, 4.15), (12.0, 12.2), (16.2, 16.2))
    attempt = refute(steps, 6.2, lambda: 0.0, lambda: False, known)
    assert not attempt.refuted
    assert attempt.ranges[1] == (4.05, 4.15)
    # With no time for programs at all, so what was known is all there is.
    assert refute(steps, 6.2, lambda: 0.0, lambda: False).ranges[1] != (4.05, 4.15)


def test_a_lump(make_package, net):
    """A tensor of 100 bytes costs 10 s on either side, and together the ops take 8 s.

    So no stage holds u, alone or not, within 7 s; within 8.2 s all ops are one stage.
    """
    graph = net(("u", 4.0, ("x",), (100,)), ("v", 4.0, ("u.0",), (1,)))
    problem = Problem(graph, make_package(2))
    assert try_lump(problem, 7.0) in (0, 1)
    assert try_lump(problem, 8.2 * ABOVE) is None
    assert try_lump(problem, 20.0) is None
    assert try_lump(problem, 7.0, is_late=lambda: True) is None
    assert try_lump(problem, 7.0, left_s=lambda: 0.0) is None


def test_no_lumps_of_unlike_chips(make_package, net):
    """Which stage could hold a block depends on the chip then: nothing is said."""
    graph = net(("u", 4.0, ("x",), (100,)), ("v", 4.0, ("u.0",), (1,)))
    overrides = {1: {"op_overhead_s": 1.0}}
    problem = Problem(graph, make_package(2, overrides=overrides))
    assert try_lump(problem, 7.0) is None


def test_stopped(toy):
    """When it is late, or no time is left, nothing is refuted."""
    assert try_limit(toy, 3.0, is_late=lambda: True) is None
    assert try_limit(toy, 3.0, left_s=lambda: 0.0) is None
    assert try_limit(toy, 3.0) is not None


def test_little_time_is_safe(make_problem):
    """Programs that stop at once give wider ranges: the optimum is not refuted."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        problem = make_problem(rng, int(rng.integers(2, 7)), rules=True)
        best_s = best_of_all(problem).bottleneck_s
        if 0 < best_s < np.inf:
            assert try_limit(problem, best_s * ABOVE, lambda: 1e-9) is None


@pytest.mark.parametrize(("seed", "stages"), [(303, 2), (308, 2), (276, 3), (363, 3)])
def test_wider_windows_prove_more(make_problem, monkeypatch, seed, stages):
    """Just below the optimum, windows of so many stages refute, and narrower do not."""
    problem = make_problem(np.random.default_rng(seed), 7)
    best_s = best_of_all(problem).bottleneck_s
    for widest in range(1, 4):
        monkeypatch.setattr(chain_module, "MOST_STAGES", widest)
        assert try_limit(problem, best_s * ABOVE) is None
        is_refuted = try_limit(problem, best_s * BELOW) is not None
        assert is_refuted == (widest >= stages)
