"""The formulas of the cost model, worked by hand; the compiled evaluation must agree.

The package (tests/conftest.py): chips of 10 op/s, 100 B/s of memory, 10 B/s of traffic,
0.5 s per op, 2 J per operation and 0.25 J per byte touched; links of 20 B/s, 0.125 s
and 3 J per byte.
"""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.reference import op_seconds, recompute


def toy_graph(*, outputs=("b.t", "d.t")):
    """Return five ops: a feeds b and the view v, v feeds c, and d joins b, c and x.

    a and d share the weight ``table``; ``b.t`` is a model output that d reads too;
    nobody reads ``c.u``.
    """
    builder = GraphBuilder("toy")
    for name, size in (("x", 30), ("mask", 10)):
        builder.host_tensor(TensorSpec(name, size))
    for name, size in (("table", 1000), ("w", 500)):
        builder.weight(TensorSpec(name, size))
    for name, flops, touched, seconds, reads, weights, writes in (
        ("a", 20, 100, None, ("x",), ("table",), {"a.t": 40}),
        ("b", 10, 300, None, ("a.t",), ("w",), {"b.t": 20}),
        ("v", 0, 0, None, ("a.t",), (), {"v.t": 40}),
        ("c", 7, 0, 4.0, ("v.t", "mask"), (), {"c.t": 50, "c.u": 5}),
        ("d", 5, 10, None, ("b.t", "c.t", "x"), ("table",), {"d.t": 60}),
    ):
        builder.op(
            OpSpec(
                name,
                "Op",
                flops=flops,
                bytes=touched,
                seconds=seconds,
                reads=reads,
                weights=weights,
                writes=tuple(TensorSpec(t, size) for t, size in writes.items()),
            )
        )
    for name in outputs:
        builder.output(name)
    return builder.build()


def figures(graph, package, chip_of):
    """Return the plain figures; the compiled ones are checked to be the same."""
    problem = Problem(graph, package)
    assert problem.graph.op_name == graph.op_name
    found = evaluate(problem, Partition(problem.graph, np.array(chip_of)))
    wanted = recompute(problem.graph, package, chip_of)
    assert found.chips == wanted.chips
    assert found.hops == wanted.hops
    for name in ("bottleneck_s", "latency_s", "energy_j"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-12)
    return wanted


def column(figures, name):
    """Return one figure of every chip."""
    return [getattr(load, name) for load in figures.chips]


def test_seconds_of_an_op(make_package):
    """An op takes overhead + max(flops / peak, bytes / bandwidth); a view nothing."""
    graph, chip = toy_graph(), make_package(1).chips[0]
    # a: .5 + max(20 / 10, 100 / 100); b: .5 + max(10 / 10, 300 / 100); v: a view;
    # c: measured; d: .5 + max(5 / 10, 10 / 100).
    assert [op_seconds(graph, op, chip) for op in range(5)] == [2.5, 3.5, 0, 4, 1]


def test_peak_of_the_dtype(make_package):
    """An op runs at the peak of its dtype, or at the first peak where there is none."""
    graph = replace(toy_graph(), op_dtype=("fp16", "int8", "int8", "int8", "int64"))
    chip = make_package(1, peak_ops_per_s=(("int8", 10), ("fp16", 5))).chips[0]
    # a: .5 + 20 / 5; d: no int64 peak, so int8's .5 + 5 / 10.
    assert op_seconds(graph, 0, chip) == 4.5
    assert op_seconds(graph, 4, chip) == 1.0


def test_three_chips(make_package):
    """A model input, tied weights, an output read elsewhere and a tensor read twice."""
    found = figures(toy_graph(), make_package(3), [0, 1, 1, 1, 2])
    assert column(found, "ops") == [1, 3, 1]
    # Chip 1: b 3.5 + v 0 + c 4.
    assert column(found, "compute_s") == [2.5, 7.5, 1.0]
    # x goes to chips 0 and 2; a.t once to chip 1 although b and v read it; mask to 1.
    assert column(found, "in_bytes") == [30, 40 + 10, 20 + 50 + 30]
    # b.t is an output and read on chip 2: sent once. c.u goes nowhere.
    assert column(found, "out_bytes") == [40, 20 + 50, 60]
    assert column(found, "transfer_s") == [7.0, 12.0, 16.0]
    assert column(found, "stage_s") == [9.5, 19.5, 17.0]
    # hop 0: a.t; hop 1: b.t and c.t; at 20 B/s.
    assert [(hop.bytes, hop.link_s) for hop in found.hops] == [(40, 2.0), (70, 3.5)]
    assert found.bottleneck_s == 19.5
    # 9.5 + 19.5 + 17 and two hops of .125.
    assert found.latency_s == 46.25
    # 42 operations, 410 bytes touched, (40 + 70) bytes over one hop each.
    assert found.energy_j == 42 * 2 + 410 * 0.25 + 110 * 3


def test_memory(make_package):
    """Weights once per chip, traffic twice, and the peak of live tensors."""
    found = figures(toy_graph(), make_package(3), [0, 1, 1, 1, 2])
    # The tied table is stored on chips 0 and 2.
    assert column(found, "weight_bytes") == [1000, 500, 1000]
    # 2 x (30 + 40), 2 x (50 + 70), 2 x (100 + 60).
    assert column(found, "buffer_bytes") == [140, 240, 320]
    # Chip 1: b.t leaves after b; v.t 40 stays for c, which adds c.t 50 and c.u 5.
    assert column(found, "peak_live_bytes") == [40, 95, 60]
    assert column(found, "memory_bytes") == [1180, 835, 1380]


def test_one_chip(make_package):
    """On one chip nothing but inputs and outputs moves, and a weight is stored once."""
    found = figures(toy_graph(), make_package(1), [0] * 5)
    load = found.chips[0]
    assert (load.in_bytes, load.out_bytes) == (40, 80)
    assert load.weight_bytes == 1500
    # a.t 40; + b.t 20; + v.t 40 (a.t ends at v); b.t, v.t + c.t 50 + c.u 5 = 115;
    # b.t, c.t + d.t 60 = 130.
    assert load.peak_live_bytes == 130
    # 11 + 120 / 10; no hop.
    assert found.bottleneck_s == found.latency_s == 23.0
    assert found.hops == ()


def test_overlap(make_package):
    """With overlapped io a stage takes the longer of the two; latency is as before."""
    found = figures(toy_graph(), make_package(3, io="overlap"), [0, 1, 1, 1, 2])
    assert column(found, "stage_s") == [7.0, 12.0, 16.0]
    assert found.bottleneck_s == 16.0
    assert found.latency_s == 46.25


@pytest.mark.parametrize(("limit", "wanted_s"), [(True, 35.0), (False, 19.5)])
def test_link_limit(make_package, limit, wanted_s):
    """A slow hop is the bottleneck only where the package says so."""
    package = make_package(3, bandwidth_bytes_per_s=2.0, link_limit=limit)
    found = figures(toy_graph(), package, [0, 1, 1, 1, 2])
    # hop 1: 70 / 2.
    assert found.hops[1].link_s == 35.0
    assert found.bottleneck_s == wanted_s


def test_long_edge_direct(make_package):
    """direct: a tensor that jumps over a chip takes link traffic only."""
    found = figures(toy_graph(), make_package(3, long_edges="direct"), [0, 2, 1, 1, 2])
    # a.t is read on chips 1 (v) and 2 (b), and sent once.
    assert column(found, "in_bytes") == [30, 40 + 10, 40 + 50 + 30]
    assert column(found, "out_bytes") == [40, 50, 20 + 60]
    assert [hop.bytes for hop in found.hops] == [40, 40 + 50]
    assert found.arcs.keys() == {(0, 1), (0, 2), (1, 2)}


def test_long_edge_relay(make_package):
    """relay: the chip between, which reads the tensor too, sends it on."""
    found = figures(toy_graph(), make_package(3, long_edges="relay"), [0, 2, 1, 1, 2])
    # a.t comes into chip 1 once, for v and for the relay, and goes out again.
    assert column(found, "in_bytes") == [30, 40 + 10, 40 + 50 + 30]
    assert column(found, "out_bytes") == [40, 50 + 40, 20 + 60]
    assert column(found, "buffer_bytes") == [140, 280, 400]
    # 4 + 140 / 10.
    assert found.chips[1].stage_s == 18.0


def test_relay_over_a_chip_that_does_not_read(make_package):
    """relay: a used chip between gets and sends a tensor that only others read."""
    package = make_package(4, long_edges="relay", rules=())
    # b on chip 2 and d on chip 3 read; chip 1 runs only c and v, chip 2 relays c.t.
    found = figures(toy_graph(), package, [0, 2, 1, 1, 3])
    # Chip 2: a.t 40 for b, c.t 50 only passes.
    assert found.chips[2].in_bytes == 40 + 50
    # Chip 2: b.t 20 and c.t 50. Chip 1: a.t 40 passes, c.t 50 is its own.
    assert found.chips[2].out_bytes == 20 + 50
    assert found.chips[1].out_bytes == 40 + 50
    assert [hop.bytes for hop in found.hops] == [40, 90, 70]


def test_relay_skips_an_unused_chip(make_package):
    """relay: a chip without ops passes nothing on, but its hops carry the bytes."""
    package = make_package(3, long_edges="relay", rules=())
    found = figures(toy_graph(), package, [0, 2, 2, 2, 2])
    unused = found.chips[1]
    assert (unused.ops, unused.in_bytes, unused.out_bytes) == (0, 0, 0)
    assert unused.stage_s == unused.memory_bytes == 0
    assert [hop.bytes for hop in found.hops] == [40, 40]
    assert found.used == [0, 2]


def test_an_output_is_relayed_like_any_tensor(make_package):
    """relay: an output costs its producer one sending, and each chip between one."""
    package = make_package(4, long_edges="relay", rules=())
    found = figures(toy_graph(), package, [0, 0, 1, 2, 3])
    # b.t (output, read by d) leaves chip 0 once, with a.t, and passes chips 1 and 2.
    assert column(found, "out_bytes") == [40 + 20, 40 + 20, 50 + 20, 60]
    assert column(found, "in_bytes") == [30, 40 + 20, 40 + 20 + 10, 20 + 50 + 30]


def test_crossbar(make_package):
    """A crossbar charges one hop per pair of chips, whatever lies between them."""
    ring = make_package(4, long_edges="direct", rules=())
    crossbar = make_package(4, topology="crossbar", long_edges="direct", rules=())
    chip_of = [0, 3, 3, 3, 3]
    around, across = (figures(toy_graph(), p, chip_of) for p in (ring, crossbar))
    # a.t 40 B: three hops, or one.
    assert across.hops == ()
    assert around.latency_s - across.latency_s == pytest.approx(2 * 0.125)
    assert around.energy_j - across.energy_j == 2 * 40 * 3
    assert around.bottleneck_s == across.bottleneck_s


def test_crossbar_pairs(make_package):
    """A tensor that two chips read crosses to each; a pair's latency counts once."""
    package = make_package(3, topology="crossbar", long_edges="direct")
    found = figures(toy_graph(), package, [0, 2, 1, 1, 2])
    # Stages 2.5 + 7, 4 + 10, 4.5 + 20; pairs 0-1 (a.t), 0-2 (a.t), 1-2 (c.t).
    assert found.latency_s == 9.5 + 14.0 + 24.5 + 3 * 0.125
    assert found.energy_j == 42 * 2 + 410 * 0.25 + (40 + 40 + 50) * 3


def test_unequal_chips(make_package):
    """Each op runs at the speed of its own chip; a measured time is the same on all."""
    fast = {
        "op_overhead_s": 0.25,
        "memory_bandwidth_bytes_per_s": 150.0,
        "io_bandwidth_bytes_per_s": 40.0,
        "e_flop_j": 1.0,
    }
    package = make_package(3, overrides={1: fast})
    found = figures(toy_graph(), package, [0, 1, 1, 1, 2])
    # b: .25 + max(1, 300 / 150), c: 4.
    assert column(found, "compute_s") == [2.5, 6.25, 1.0]
    assert column(found, "transfer_s") == [7.0, 3.0, 16.0]
    # b and c, 17 operations, at 1 J; a and d, 25, at 2 J.
    assert found.energy_j == 17 * 1 + 25 * 2 + 410 * 0.25 + 110 * 3


def test_unequal_hops(make_package):
    """Each hop has its own bandwidth, latency and energy."""
    package = make_package(3)
    slow = replace(
        package.links[1],
        bandwidth_bytes_per_s=7.0,
        latency_s=1.125,
        e_link_j_per_byte=5.0,
    )
    package = replace(package, links=(package.links[0], slow), base_link=None)
    found = figures(toy_graph(), package, [0, 1, 1, 1, 2])
    assert [hop.link_s for hop in found.hops] == [2.0, 10.0]
    assert found.latency_s == 47.25
    assert found.energy_j == 42 * 2 + 410 * 0.25 + 40 * 3 + 70 * 5


def replica_graph():
    """Return mask -> bias, both replicable, read by two of three layers in a row."""
    builder = GraphBuilder("masked")
    for name, size in (("x", 30), ("ids", 8)):
        builder.host_tensor(TensorSpec(name, size))
    builder.weight(TensorSpec("k", 6))
    for name, flops, reads, weights, size in (
        ("mask", 5, ("ids",), ("k",), 16),
        ("bias", 10, ("mask.t",), (), 12),
        ("l0", 95, ("x", "bias.t"), (), 20),
        ("l1", 95, ("l0.t", "bias.t"), (), 20),
        ("l2", 95, ("l1.t",), (), 20),
    ):
        writes = (TensorSpec(f"{name}.t", size),)
        builder.op(
            OpSpec(
                name,
                "Op",
                flops=flops,
                bytes=4,
                replicable=name in ("mask", "bias"),
                reads=reads,
                weights=weights,
                writes=writes,
            )
        )
    builder.output("l2.t")
    return builder.build()


def test_replicas_on_two_chips(make_package):
    """Each chip that needs a replica runs its whole cone, inputs and weights too."""
    found = figures(replica_graph(), make_package(3), [-1, -1, 0, 1, 2])
    # mask .5 + .5, bias .5 + 1, a layer .5 + 9.5.
    assert column(found, "compute_s") == [12.5, 12.5, 10.0]
    # ids goes to both chips; mask.t and bias.t never leave one.
    assert column(found, "in_bytes") == [30 + 8, 20 + 8, 20]
    assert column(found, "out_bytes") == [20, 20, 20]
    assert column(found, "weight_bytes") == [6, 6, 0]
    # mask.t 16; with bias.t 12; then bias.t with the layer's 20.
    assert column(found, "peak_live_bytes") == [32, 32, 20]
    assert column(found, "ops") == [1, 1, 1]
    # Twice the 15 operations and 8 bytes of the cone, once 285 and 12; two hops.
    assert found.energy_j == (30 + 285) * 2 + (16 + 12) * 0.25 + (20 + 20) * 3


def test_replicas_are_shared_on_a_chip(make_package):
    """Two readers on one chip share one replica, until the last of them has run."""
    found = figures(replica_graph(), make_package(3), [-1, -1, 0, 0, 1])
    assert column(found, "compute_s") == [22.5, 10.0, 0.0]
    assert column(found, "in_bytes") == [38, 20, 0]
    assert column(found, "weight_bytes") == [6, 0, 0]
    # bias.t 12 stays for l1: 12 + l0.t 20 + l1.t 20.
    assert column(found, "peak_live_bytes") == [52, 20, 0]


def test_arcs_name_an_edge(make_package):
    """An arc of the chip graph comes with an edge that makes it."""
    found = figures(toy_graph(), make_package(3), [0, 1, 1, 1, 2])
    assert found.arcs == {(0, 1): (0, 1), (1, 2): (1, 4)}


def test_nothing_costs_nothing(make_package):
    """A graph without ops takes no time, and its throughput is infinite."""
    problem = Problem(GraphBuilder("empty").build(), make_package(2))
    found = evaluate(problem, Partition(problem.graph, np.array([], dtype=np.int32)))
    wanted = recompute(problem.graph, problem.package, [])
    assert found.bottleneck_s == wanted.bottleneck_s == 0
    assert found.latency_s == found.energy_j == 0
    assert found.throughput_per_s == float("inf")
    assert found.valid
