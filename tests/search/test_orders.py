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


def test_reads(ordered):
    """Each read knows where its tensor was written, and read before."""
    arrays, order, at = ordered
    for n, position in at.items():
        rows = range(order.read_ptr[position], order.read_ptr[position + 1])
        tensors = csr(arrays.read_ptr, arrays.read, n)
        assert len(rows) == len(tensors)
        for row, tensor in zip(rows, tensors, strict=True):
            before = [p for p in readers_of(arrays, at, tensor) if p < position]
            assert order.read_producer[row] == at[arrays.tensor_producer[tensor]]
            assert order.read_previous[row] == max(before, default=-1)
            assert order.read_bytes[row] == arrays.tensor_bytes[tensor]


def test_writes_and_ends(ordered):
    """Each tensor is listed where it is written, and where it is read last."""
    arrays, order, at = ordered
    written, ended = [], []
    for position in range(len(at)):
        for row in range(order.write_ptr[position], order.write_ptr[position + 1]):
            written.append(
                (
                    position,
                    order.write_last[row],
                    order.write_bytes[row],
                    order.write_is_output[row],
                )
            )
        for row in range(order.end_ptr[position], order.end_ptr[position + 1]):
            ended.append(
                (
                    order.end_producer[row],
                    position,
                    order.end_bytes[row],
                    order.end_is_output[row],
                )
            )
    wanted = [
        (
            at[arrays.tensor_producer[t]],
            readers_of(arrays, at, t)[-1],
            arrays.tensor_bytes[t],
            arrays.tensor_is_output[t],
        )
        for t in range(arrays.tensor_bytes.size)
    ]
    assert sorted(written) == sorted(ended) == sorted(wanted)
    assert wanted


def test_items(ordered):
    """Each shared item knows the user before, -1 for the first."""
    arrays, order, at = ordered
    latest = {}
    for n, position in sorted(at.items(), key=lambda pair: pair[1]):
        found = csr(order.item_ptr, order.item, position)
        assert found == csr(arrays.item_ptr, arrays.item, n)
        previous = csr(order.item_ptr, order.item_previous, position)
        assert previous == [latest.get(item, -1) for item in found]
        latest.update(dict.fromkeys(found, position))


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
