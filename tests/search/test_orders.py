"""Topological orders and what slicing reads of them, against plain twins."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.problem import UserRules
from mcmpart.search._orders import keyed_order, order_arrays


def csr(indptr, indices, row):
    """Return one compressed row as a list."""
    return indices[indptr[row] : indptr[row + 1]].tolist()


def plain_order(arrays, keys, *, depth_first):
    """Return the order that takes the ready block with the smallest key, plainly.

    Depth first, what became ready at the latest step goes first.
    """
    missing = np.diff(arrays.pred_ptr).tolist()
    rank = {n: (0, keys[n]) for n, count in enumerate(missing) if count == 0}
    order = []
    while rank:
        n = min(rank, key=rank.get)
        del rank[n]
        order.append(n)
        for successor in csr(arrays.succ_ptr, arrays.succ, n):
            missing[successor] -= 1
            if missing[successor] == 0:
                step = -len(order) if depth_first else 0
                rank[successor] = (step, keys[successor])
    return order


def problems(make_problem, count=25):
    """Yield random problems with a random order of their blocks."""
    rng = np.random.default_rng(4)
    while count:
        problem = make_problem(rng, int(rng.integers(1, 40)), rules=True)
        num_blocks = problem.blocks.num_blocks
        if num_blocks:
            count -= 1
            keys = rng.random(num_blocks)
            yield problem.blocks.arrays, keys


@pytest.mark.parametrize("depth_first", [False, True])
def test_keyed_order(make_problem, depth_first):
    """Both modes give the plain twin's order, with every edge forward."""
    for arrays, keys in problems(make_problem):
        order = keyed_order(arrays, keys, depth_first).tolist()
        assert order == plain_order(arrays, keys, depth_first=depth_first)
        assert sorted(order) == list(range(keys.size))
        at = {n: position for position, n in enumerate(order)}
        for n, position in at.items():
            successors = csr(arrays.succ_ptr, arrays.succ, n)
            assert all(at[successor] > position for successor in successors)


def test_rising_keys_give_the_own_order(make_problem):
    """Blocks stand in a topological order, so rising keys keep it."""
    for arrays, random_keys in problems(make_problem, 5):
        keys = np.arange(random_keys.size) / random_keys.size
        assert keyed_order(arrays, keys, False).tolist() == list(range(keys.size))


@pytest.fixture(params=range(3))
def ordered(request, make_problem):
    """Give a problem's arrays, a random order, its arrays, and block -> position."""
    rng = np.random.default_rng(request.param)
    problem = make_problem(rng, 30, num_chips=3, rules=True)
    arrays = problem.blocks.arrays
    order = keyed_order(arrays, rng.random(problem.blocks.num_blocks), False)
    at = {int(n): position for position, n in enumerate(order)}
    return arrays, order_arrays(arrays, order), at


def readers_of(arrays, at, tensor):
    """Return the positions that read a cut tensor, ascending."""
    row = csr(arrays.consumer_ptr, arrays.consumer, tensor)
    return sorted(at[n] for n in row)


def rows_of(indptr, position):
    """Return the numbers of the rows at a position."""
    return range(indptr[position], indptr[position + 1])


def test_reads(ordered):
    """Each read knows its tensor's next reader; a position, its earliest producer."""
    arrays, order, at = ordered
    for n, position in at.items():
        tensors = csr(arrays.read_ptr, arrays.read, n)
        rows = rows_of(order.read_ptr, position)
        for row, tensor in zip(rows, tensors, strict=True):
            after = [p for p in readers_of(arrays, at, tensor) if p > position]
            assert order.read_next[row] == min(after, default=len(at))
            assert order.read_bytes[row] == arrays.tensor_bytes[tensor]
        producers = [at[arrays.tensor_producer[tensor]] for tensor in tensors]
        assert order.read_from[position] == min(producers, default=len(at))


def test_writes(ordered):
    """Each write knows its tensor's first and last reader."""
    arrays, order, at = ordered
    for n, position in at.items():
        tensors = csr(arrays.write_ptr, arrays.write, n)
        rows = rows_of(order.write_ptr, position)
        for row, tensor in zip(rows, tensors, strict=True):
            readers = readers_of(arrays, at, tensor)
            assert order.write_first[row] == readers[0]
            assert order.write_last[row] == readers[-1]
            assert order.write_bytes[row] == arrays.tensor_bytes[tensor]
            assert order.write_is_output[row] == arrays.tensor_is_output[tensor]
        lasts = order.write_last[order.write_ptr[position] :][: len(tensors)]
        assert order.read_until[position] == max(lasts, default=-1)


def test_items(make_problem):
    """Each need of a shared item knows its users before and behind it."""
    num_shared = 0
    for arrays, keys in problems(make_problem):
        order = order_arrays(arrays, keyed_order(arrays, keys, False))
        at = {int(n): position for position, n in enumerate(order.block)}
        for n, position in at.items():
            items = csr(arrays.item_ptr, arrays.item, n)
            rows = rows_of(order.item_ptr, position)
            for row, item in zip(rows, items, strict=True):
                users = sorted(at[u] for u in csr(arrays.user_ptr, arrays.user, item))
                before = [p for p in users if p < position]
                behind = [p for p in users if p > position]
                assert order.item[row] == item
                assert order.item_previous[row] == max(before, default=-1)
                assert order.item_next[row] == min(behind, default=len(at))
                num_shared += 1
    assert num_shared > 20


def test_cuts(ordered):
    """What crosses a cut, and how far it goes, follows from producers and readers."""
    arrays, order, at = ordered
    spans = [
        (at[arrays.tensor_producer[t]], readers_of(arrays, at, t)[-1], size)
        for t, size in enumerate(arrays.tensor_bytes)
    ]
    for cut in range(len(at) + 1):
        crossing = [size for start, last, size in spans if start < cut <= last]
        assert order.cut_bytes[cut] == sum(crossing)
        reach = [last for start, last, _ in spans if start < cut]
        assert order.furthest[cut] == max(reach, default=0)


def test_work_left(ordered):
    """The work from a position on takes each block at its fastest."""
    arrays, order, _ = ordered
    fastest = arrays.block_s.min(axis=0)[order.block]
    for position in range(fastest.size + 1):
        wanted = fastest[position:].sum()
        assert order.work_left_s[position] == pytest.approx(wanted, rel=1e-12)


def test_apart_floor(toy):
    """A segment with the later block of a pair must start behind the earlier one."""
    rules = UserRules(apart=(("op_1", "op_4"), ("op_4", "op_3"), ("op_0", "op_5")))
    problem = replace(toy, user=rules)
    order = order_arrays(problem.blocks.arrays, np.arange(6, dtype=np.int32))
    assert order.apart_floor.tolist() == [0, 0, 0, 0, 4, 1]


def test_next_pin(toy):
    """Each position knows the first pinned block from it on."""
    problem = replace(toy, user=UserRules(pins={"op_1": 0, "op_4": 2}))
    order = order_arrays(problem.blocks.arrays, np.arange(6, dtype=np.int32))
    assert order.next_pin.tolist() == [1, 1, 4, 4, 4, 6, 6]
