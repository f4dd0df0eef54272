"""successive halving: who runs on, and on which rung."""

import numpy as np

from mcmpart.search._halving import Candidate, Halving

NOWHERE = np.zeros(1, dtype=np.int32)


def halving_of(*costs):
    """Return one with these candidates on rung 0."""
    halving = Halving()
    for cost_s in costs:
        halving.add(0, Candidate(cost_s, NOWHERE))
    return halving


def test_nobody_to_promote():
    """One candidate alone has no better half."""
    assert Halving().promote() is None
    assert halving_of(1.0).promote() is None
    assert halving_of(1.0).num_entrants == 1


def test_the_better_half_is_promoted_once():
    """Of five the best two run on, the best one first, and each once."""
    halving = halving_of(5.0, 2.0, 4.0, 1.0, 3.0)
    promoted = [halving.promote() for _ in range(3)]
    assert [(rung, who.cost_s) for rung, who in promoted[:2]] == [(1, 1.0), (1, 2.0)]
    assert promoted[2] is None


def test_the_highest_rung_first():
    """Of two that may run on, the one on the higher rung does."""
    halving = halving_of(2.0, 1.0)
    rung, winner = halving.promote()
    halving.add(rung, winner)
    halving.add(1, Candidate(0.5, NOWHERE))
    halving.add(0, Candidate(0.7, NOWHERE))
    halving.add(0, Candidate(0.6, NOWHERE))
    promoted = [halving.promote() for _ in range(3)]
    assert [(rung, who.cost_s) for rung, who in promoted[:2]] == [(2, 0.5), (1, 0.6)]
    # 0.7 is in the better half of four too, once 0.6 is through.
    assert promoted[2][1].cost_s == 0.7
