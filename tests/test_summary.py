"""A result in words: table, replicas, warnings, singular and plural."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.solve import make_result
from mcmpart.summary import (
    headline,
    limit,
    one_inference,
    placement,
    ranges,
    table_rows,
    warnings_of,
)


def result_of(problem, *chip_of):
    """Return the result of a partition given by the chip of each op."""
    return make_result(problem, Partition(problem.graph, np.array(chip_of)))


@pytest.fixture
def masked(make_package):
    """Give two layers of 1 s that read a mask of 0.5 s, which is replicated."""
    net = GraphBuilder("masked")
    net.host_tensor(TensorSpec("x", 1))
    for name, seconds, reads in (
        ("mask", 0.5, ("x",)),
        ("first", 1.0, ("x", "mask.t")),
        ("second", 1.0, ("first.t", "mask.t")),
    ):
        net.op(
            OpSpec(
                name,
                "Op",
                seconds=seconds,
                replicable=name == "mask",
                reads=reads,
                writes=(TensorSpec(f"{name}.t", 1),),
            )
        )
    net.output("second.t")
    return Problem(net.build(), make_package(2))


def test_replicas_are_counted_beside_own_ops(masked):
    """A chip with one op of its own and one replica has 1+1 ops."""
    rows = table_rows(result_of(masked, -1, 0, 1))
    assert [row[:3] for row in rows] == [
        ("0", "1+1", "1.50 s"),
        ("1", "1+1", "1.50 s"),
    ]


def test_replicas_are_named_and_add_up(masked):
    """Own ops and replicated ones add up to the model's; names and copies are said."""
    assert placement(result_of(masked, -1, 0, 1)) == [
        "3 ops: 2 on one chip each, 1 replicated",
        "replicated on every chip that needs them: 1 op (mask), 2 copies in all",
    ]
    assert placement(result_of(masked, -1, 0, 0))[1].endswith("(mask), 1 copy in all")


def test_folded_ops_are_counted(make_package):
    """An op that reads only weights is in the model and on no chip: said as folded."""
    net = GraphBuilder("folded")
    net.host_tensor(TensorSpec("x", 1))
    net.weight(TensorSpec("w", 4))
    writes = (TensorSpec("w.t", 4),)
    net.op(OpSpec("turn", "Transpose", weights=("w",), writes=writes))
    out = (TensorSpec("y", 1),)
    net.op(OpSpec("mul", "MatMul", flops=8, reads=("x", "w.t"), writes=out))
    net.output("y")
    assert placement(result_of(Problem(net.build(), make_package(1)), 0)) == [
        "2 ops: 1 on one chip each, 1 that read only weights, folded before the search"
    ]


def test_nothing_to_add_to_the_table(toy):
    """Where each op stands on one chip the table says all."""
    assert placement(result_of(toy, 0, 0, 1, 1, 2, 2)) == []


def test_headline_and_one_inference(toy):
    """Throughput, bottleneck, bound and gap, then latency and energy, by hand.

    Work 16 s on 3 chips: the bound is 5.33 s. Stages are 6.2, 4.2 and 6.2 s, and two
    hops take 0.125 s each. Six ops touch 2 bytes at 0.25 J, two hops carry 1 at 3 J.
    """
    result = result_of(toy, 0, 0, 1, 1, 2, 2)
    assert headline(result) == (
        "0.161 /s on 3 of 3 chips: bottleneck 6.20 s, proven lower bound 5.33 s "
        "(simple), gap 14.0 %"
    )
    assert one_inference(result) == "latency 16.9 s per inference, energy 9 J"


@pytest.mark.parametrize(
    ("energy_j", "words"),
    [
        (0.0, "0 J"),
        (4.1e-2, "41 mJ"),
        (2.8e-6, "2.80 uJ"),
        (3e-9, "3 nJ"),
        (5e-12, "5 pJ"),
        (12.345, "12.3 J"),
    ],
)
def test_energy_has_a_unit(toy, energy_j, words):
    """Energy is said with three digits, from pJ to J."""
    result = result_of(toy, 0, 0, 1, 1, 2, 2)
    metrics = replace(result.metrics, energy_j=energy_j)
    words_of = one_inference(replace(result, metrics=metrics))
    assert words_of.endswith(f"energy {words}")


def test_the_largest_op_may_be_a_replica(make_package, masked):
    """The largest op of the slowest chip is looked for among its replicas too."""
    seconds = np.array([3.0, 1.0, 1.0])
    graph = replace(masked.model, op_seconds=seconds)
    problem = Problem(graph, make_package(2))
    assert limit(result_of(problem, -1, 0, 1)).endswith(
        "its largest op 'mask' takes 75 % of the compute"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], ""),
        ([4], "4"),
        ([4, 5], "4-5"),
        ([0, 2, 3, 7], "0, 2-3, 7"),
        (list(range(4, 36)), "4-35"),
    ],
)
def test_ranges(numbers, words):
    """Runs of neighbours are drawn together."""
    assert ranges(numbers) == words


@pytest.mark.parametrize(
    ("num_chips", "sentence"),
    [
        (2, "1 of the 2 chips stays empty (1)"),
        (36, "35 of the 36 chips stay empty (1-35)"),
    ],
)
def test_empty_chips(make_package, num_chips, sentence):
    """Empty chips are counted, and named as a range."""
    graph = chain(10, flops=10, tensor_bytes=1)
    problem = Problem(graph, make_package(num_chips))
    assert warnings_of(result_of(problem, *[0] * 10)) == [sentence]


def no_memory_rule(make_package, num_chips):
    """Return a package of chips of 10 bytes whose memory is not enforced."""
    return make_package(num_chips, memory_bytes=10, rules=("no_skip", "triangle"))


def test_overflow_that_is_not_enforced(make_package):
    """A chip that needs more than it has is a warning where the rule is off.

    A chain of 4 ops with weights of 20 bytes, tensors of 1: 20 + 2 * 2 + 1 bytes.
    """
    graph = chain(4, flops=10, tensor_bytes=1, weight_bytes=20)
    problem = Problem(graph, no_memory_rule(make_package, 4))
    shown = warnings_of(result_of(problem, 0, 1, 2, 3))
    assert shown == [
        "4 chips exceed their memory, which package 'toy' does not enforce: "
        "chip 0 needs 25 B of 10 B, chip 1 needs 25 B of 10 B, "
        "chip 2 needs 25 B of 10 B and 1 more"
    ]


def test_the_worst_overflow_comes_first(make_package):
    """One chip is said in the singular; of several the fullest comes first."""
    graph = chain(3, flops=10, tensor_bytes=1, weight_bytes=[2, 20, 40])
    problem = Problem(graph, no_memory_rule(make_package, 3))
    (shown,) = warnings_of(result_of(problem, 0, 1, 2))
    assert shown.startswith("2 chips exceed their memory")
    assert shown.index("chip 2 needs 45 B") < shown.index("chip 1 needs 25 B")
    graph = chain(3, flops=10, tensor_bytes=1, weight_bytes=[2, 2, 40])
    problem = Problem(graph, no_memory_rule(make_package, 3))
    (shown,) = warnings_of(result_of(problem, 0, 1, 2))
    assert shown.startswith("1 chip exceeds its memory, which package 'toy'")


@pytest.mark.parametrize(
    ("seconds", "chips", "percents"),
    # Of a stage of 10 + 0.2 s; of 10 + 1 + 0.2 s, with the next op; of 11 + 1 + 0.2 s.
    [(10.0, (1, 1), [98]), (10.0, (0, 1), []), (11.0, (0, 1), [90])],
)
def test_a_dominant_op(make_package, seconds, chips, percents):
    """A single op is called the limit from 90 % of the bottleneck on, not at 89 %."""
    graph = chain(3, flops=0, tensor_bytes=1, seconds=[seconds, 1.0, 1.0])
    problem = Problem(graph, make_package(2))
    shown = warnings_of(result_of(problem, 0, *chips))
    assert shown == [
        f"op 'op_0' alone is {percent} % of the bottleneck: no partition can go far "
        "beyond it"
        for percent in percents
    ]


def test_notes_and_interrupts_are_warnings(toy):
    """What the search notes, and that it was interrupted, is said."""
    result = result_of(toy, 0, 0, 1, 1, 2, 2)
    result = replace(result, stopped_by="interrupt", notes=("a note",))
    assert warnings_of(result) == [
        "the search was interrupted: this is the best plan until then",
        "a note",
    ]
