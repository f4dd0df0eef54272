"""The orders that evolve begins with, against plain twins."""

import numpy as np
import pytest

from mcmpart.search._seeds import frugal_order, levels, tails_s


def rows(indptr, indices, n):
    """Return one compressed row as a list."""
    return indices[indptr[n] : indptr[n + 1]].tolist()


@pytest.fixture(params=range(6))
def arrays(request, make_problem):
    """Give the blocks of a random problem."""
    rng = np.random.default_rng(request.param)
    return make_problem(rng, 30, num_chips=3).blocks.arrays


def test_levels_and_tails(arrays):
    """The longest path to a block counts edges, that from it on counts seconds."""
    level, tail_s = levels(arrays), tails_s(arrays)
    for n in range(level.size):
        before = [level[p] + 1 for p in rows(arrays.pred_ptr, arrays.pred, n)]
        after = [tail_s[s] for s in rows(arrays.succ_ptr, arrays.succ, n)]
        own_s = arrays.block_s[:, n].min()
        assert level[n] == max(before, default=0)
        assert tail_s[n] == pytest.approx(max(after, default=0) + own_s, rel=1e-12)


def test_frugal_order(arrays):
    """Each block that is taken adds no more live bytes than any other ready one."""
    taken = []

    def added_bytes(n):
        written = rows(arrays.write_ptr, arrays.write, n)
        freed = [
            t
            for t in rows(arrays.read_ptr, arrays.read, n)
            if set(rows(arrays.consumer_ptr, arrays.consumer, t)) - set(taken) == {n}
        ]
        return arrays.tensor_bytes[written].sum() - arrays.tensor_bytes[freed].sum()

    num_choices = 0
    for n in frugal_order(arrays).tolist():
        ready = [
            m
            for m in range(arrays.first_op.size)
            if m not in taken
            and set(rows(arrays.pred_ptr, arrays.pred, m)) <= set(taken)
        ]
        assert n in ready
        assert added_bytes(n) == min(map(added_bytes, ready))
        num_choices += len(ready) > 1
        taken.append(n)
    assert len(taken) == arrays.first_op.size
    assert num_choices >= 1
