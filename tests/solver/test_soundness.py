"""No rule removes a chip that a valid placement uses, and undoing brings all back."""

import numpy as np
import pytest

from mcmpart.solver.setup import make_rules


@pytest.fixture
def walks(tools, small_problem):
    """Give a generator of walks over random problems, for each number of chips."""

    def make(seed, count, *, full):
        rng = np.random.default_rng(seed)
        for _ in range(count):
            num_chips = int(rng.integers(2, 5))
            num_ops = int(rng.integers(2, (0, 0, 10, 9, 7)[num_chips]))
            problem = small_problem(rng, num_ops, num_chips, views=0.3, replicas=0.2)
            rules = make_rules(problem)
            for used in np.flatnonzero(rules.possible).tolist():
                steps = tools.walk(problem, rng, used, full=full)
                yield problem, rules, used, steps

    return make


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_no_valid_placement_is_lost(full, seed, tools, walks):
    """After any decisions the domains hold each valid placement that agrees."""
    num_steps = num_contradictions = 0
    for problem, _, used, steps in walks(seed, 150, full=full):
        valid = tools.valid_placements(problem)
        if used:
            valid = valid[tools.num_used(valid) == used]
        masks = np.uint64(1) << valid.astype(np.uint64)
        for step in steps:
            agreeing = (masks & step.allowed != 0).all(axis=1)
            if step.consistent:
                chips = step.domains.block["chips"]
                kept = (masks & chips != 0).all(axis=1)
                assert np.array_equal(kept, agreeing), tools.told(problem)
                num_steps += 1
            else:
                assert not agreeing.any(), tools.told(problem)
                num_contradictions += 1
    assert num_steps >= 1000
    assert num_contradictions >= 20


@pytest.mark.parametrize("full", [False, True])
def test_undo_brings_everything_back(full, tools, walks):
    """Domains, paths, chip graph, lists and sums are what they were, and at rest."""
    num_undone = 0
    for problem, _, _, steps in walks(9, 150, full=full):
        for step in steps:
            if step.snapshots:
                before, after = step.snapshots
                assert before == after, tools.told(problem)
                num_undone += 1
            if step.snapshots or step.consistent:
                now = step.domains.now[0]
                assert now["queue_size"] == 0
                assert now["stale"] == now["moved"] == now["fuller"] == 0
                assert not step.domains.block["changed"].any()
    assert num_undone >= 300


@pytest.mark.parametrize("full", [False, True])
def test_sums_follow_from_the_domains(full, tools, walks):
    """What is kept beside the domains equals what they add up to."""
    for problem, rules, used, steps in walks(10, 150, full=full):
        for step in steps:
            if step.consistent:
                assert_sums(problem, rules, used, step.domains, tools)


def assert_sums(problem, rules, used, domains, tools):
    """Compare lists, counts, bytes and masks with sums over the domains."""
    num_chips, blocks = problem.num_chips, problem.blocks.arrays
    chips = [
        {c for c in range(num_chips) if mask >> c & 1}
        for mask in domains.block["chips"].tolist()
    ]
    fixed = {n: min(c) for n, c in enumerate(chips) if len(c) == 1}
    num_open = [sum(c in own for own in chips) for c in range(num_chips)]
    assert np.cumsum(domains.chip["cover"]).tolist() == [*num_open, 0]
    top = max(min(own) for own in chips)
    assert domains.now["top"][0] == top
    required = used - 1 if rules.cover and used else top
    assert domains.now["required"][0] == 2 ** (required + 1) - 1
    assert domains.now["covered"][0] == sum(1 << c for c in set(fixed.values()))
    if rules.memory:
        bound = np.zeros((num_chips, num_chips), dtype=int)
        for n, own in enumerate(chips):
            bound[min(own), max(own)] += rules.extra["need_bytes"][n]
        assert domains.bound_bytes.tolist() == bound.tolist()
    for c in range(num_chips):
        here = [n for n, chip in fixed.items() if chip == c]
        assert sorted(tools.blocks_on(c, domains)) == here
        if not rules.memory:
            continue
        items = [blocks.item[i:j] for i, j in pairs(blocks.item_ptr, here)]
        users = np.bincount(
            np.concatenate([[], *items]).astype(int), minlength=rules.item_bytes.size
        )
        assert domains.item_users[:, c].tolist() == users.tolist()
        own = rules.extra["need_bytes"][here].sum()
        shared = rules.item_bytes[users > 0].sum()
        assert domains.chip["used_bytes"][c] == own + shared


def pairs(indptr, rows):
    """Return where each row begins and ends."""
    return [(indptr[n], indptr[n + 1]) for n in rows]
