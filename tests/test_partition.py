"""Partition: its checks, its names, and where replicas are computed."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import NO_CHIP, Partition, chip_numbers


@pytest.fixture
def masked():
    """Give a mask of two replicable ops that three of four layers read."""
    builder = GraphBuilder("masked")
    builder.host_tensor(TensorSpec("x", 8))
    for name, reads, replicable in (
        ("mask", ("x",), True),
        ("bias", ("mask.t",), True),
        ("a", ("x", "mask.t"), False),
        ("b", ("a.t", "bias.t"), False),
        ("c", ("b.t",), False),
        ("d", ("c.t", "bias.t"), False),
    ):
        writes = (TensorSpec(f"{name}.t", 8),)
        builder.op(
            OpSpec(name, "Op", replicable=replicable, reads=reads, writes=writes)
        )
    builder.output("d.t")
    return builder.build()


def test_chips_by_name(masked):
    """by_name leaves the replicable ops out."""
    partition = Partition(masked, np.array([-1, -1, 0, 1, 1, 2]))
    assert partition.by_name() == {"a": 0, "b": 1, "c": 1, "d": 2}
    assert partition.num_used_chips == 3


def test_replicas_follow_their_readers(masked):
    """A replica is on each chip that needs it, also through another replica."""
    partition = Partition(masked, np.array([-1, -1, 0, 1, 1, 2]))
    assert partition.replicas() == {
        0: ["mask"],
        1: ["mask", "bias"],
        2: ["mask", "bias"],
    }


def test_a_replica_stands_once_on_a_chip(masked):
    """Several readers on one chip share one replica; other chips have none."""
    partition = Partition(masked, np.array([-1, -1, 3, 3, 3, 3]))
    assert partition.replicas() == {3: ["mask", "bias"]}
    assert partition.num_used_chips == 1


def test_replicas_have_no_chip(masked):
    """What stands in the column of a replicable op is dropped."""
    partition = Partition(masked, np.array([5, -7, 0, 1, 1, 2]))
    assert partition.chip_of.tolist() == [NO_CHIP, NO_CHIP, 0, 1, 1, 2]


def test_no_replicas():
    """A graph without replicable ops has none anywhere."""
    assert Partition(chain(2), np.array([0, 1])).replicas() == {}


def test_unread_replica_is_nowhere(masked):
    """A replicable op that nobody reads is on no chip."""
    unread = replace(masked, use_tensor=masked.use_tensor[:0], use_op=masked.use_op[:0])
    assert Partition(unread, np.zeros(6, dtype=np.int32)).replicas() == {}


def test_empty_graph():
    """A graph without ops has an empty partition."""
    partition = Partition(GraphBuilder("empty").build(), [])
    assert partition.by_name() == {}
    assert partition.num_used_chips == 0


def test_chips_are_a_read_only_copy():
    """The partition keeps int32 chips of its own, whatever array is given."""
    given = np.array([0, 1], dtype=np.int32)
    partition = Partition(chain(2), given)
    given[0] = 1
    assert partition.chip_of.tolist() == [0, 1]
    assert partition.chip_of.dtype == np.int32
    assert not partition.chip_of.flags.writeable
    assert given.flags.writeable


def test_wrong_length():
    """An array of another length is refused with both lengths."""
    message = r"chip_of has shape \(3,\): give one chip for each of the 2 ops"
    with pytest.raises(InputError, match=message):
        Partition(chain(2), np.array([0, 1, 1]))


def test_negative_chip():
    """An op on a negative chip is refused by name."""
    message = "op 'op_1' is on chip -1: chips count from 0"
    with pytest.raises(InputError, match=message):
        Partition(chain(2), np.array([0, -1]))


@pytest.mark.parametrize("values", [[0.0, 0.5], [True, False], ["0", "1"]])
def test_no_whole_numbers(values):
    """Anything but whole numbers is refused, not rounded."""
    with pytest.raises(InputError, match=r"chip_of holds .+: give whole chip numbers"):
        Partition(chain(2), values)


def test_large_numbers_stay_large():
    """A chip number beyond 32 bits does not wrap round to a chip that exists."""
    assert chip_numbers([2**32, -(2**32)]).tolist() == [2**31 - 1, -(2**31)]
    assert chip_numbers(np.array([2**63], dtype=np.uint64)).tolist() == [2**31 - 1]
    assert chip_numbers(np.array([7], dtype=np.uint8)).tolist() == [7]
