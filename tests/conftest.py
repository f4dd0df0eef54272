"""Fixtures of the core's tests: a toy solved by hand, packages, random instances."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from mcmpart.errors import InfeasibleError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.hardware import Chip, Link, Package
from mcmpart.problem import Problem, UserRules
from mcmpart.rules import explain

# What holds must not depend on how busy the machine is, nor on the day.
settings.register_profile(
    "mcmpart",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mcmpart")

CHIP_FIELDS = frozenset(Chip.__dataclass_fields__)
LINK_FIELDS = frozenset(Link.__dataclass_fields__)


def build_package(num_chips=3, *, overrides=None, **changes):
    """Return a package of round numbers, changed by chip, link and package fields.

    ``bandwidth_bytes_per_s`` is the links'; ``overrides`` maps a chip to the chip
    fields it has for itself. Rules follow ``long_edges`` unless given.
    """
    chip = Chip(
        memory_bytes=1_000_000_000,
        memory_bandwidth_bytes_per_s=100.0,
        io_bandwidth_bytes_per_s=10.0,
        op_overhead_s=0.5,
        peak_ops_per_s=(("*", 10.0),),
        e_flop_j=2.0,
        e_mem_j_per_byte=0.25,
    )
    link = Link(bandwidth_bytes_per_s=20.0, latency_s=0.125, e_link_j_per_byte=3.0)
    top = {
        "topology": "ring",
        "long_edges": "forbid",
        "io": "serial",
        "link_limit": changes.get("topology", "ring") == "ring",
    }
    for name, value in changes.items():
        if name in CHIP_FIELDS:
            chip = replace(chip, **{name: value})
        elif name in LINK_FIELDS:
            link = replace(link, **{name: value})
        else:
            top[name] = value
    triangle = ("triangle",) if top["long_edges"] == "forbid" else ()
    top.setdefault("rules", ("no_skip", *triangle, "memory"))
    chips = [chip] * num_chips
    for i, fields in (overrides or {}).items():
        chips[i] = replace(chip, **fields)
    return Package(
        name="toy",
        source="made up",
        chips=tuple(chips),
        links=(link,) * (num_chips - 1),
        **top,
    )


def random_package(rng, *, num_chips=None, long_edges=None):
    """Return a package of the scale of ``random_dag``, what is not given at random."""
    num_chips = num_chips or int(rng.integers(1, 7))
    long_edges = long_edges or str(rng.choice(["forbid", "relay", "direct"]))
    crossbar = long_edges != "relay" and rng.random() < 0.3
    rules = ["triangle"] if long_edges == "forbid" else []
    rules += [rule for rule in ("no_skip", "memory") if rng.random() < 0.7]
    overrides = {
        c: {
            "io_bandwidth_bytes_per_s": float(rng.uniform(2e9, 8e9)),
            "peak_ops_per_s": (("int8", float(rng.uniform(1e12, 4e12))),),
            "memory_bytes": int(rng.integers(100_000, 2_000_000)),
        }
        for c in range(num_chips)
        if rng.random() < 0.3
    }
    package = build_package(
        num_chips,
        topology="crossbar" if crossbar else "ring",
        long_edges=long_edges,
        io=str(rng.choice(["serial", "overlap"])),
        link_limit=bool(not crossbar and rng.random() < 0.7),
        rules=tuple(rules),
        overrides=overrides,
        memory_bytes=int(rng.choice([10**9, 1_500_000, 600_000])),
        memory_bandwidth_bytes_per_s=64e9,
        io_bandwidth_bytes_per_s=8e9,
        op_overhead_s=1e-6,
        peak_ops_per_s=(("int8", 2e12),),
        e_flop_j=5e-13,
        e_mem_j_per_byte=5e-12,
        bandwidth_bytes_per_s=4e9,
        latency_s=1e-6,
        e_link_j_per_byte=1.4e-11,
    )
    if crossbar or rng.random() < 0.5:
        return package
    speeds = rng.uniform(1e9, 8e9, num_chips - 1)
    links = (Link(float(speed), 1e-6, 1.4e-11) for speed in speeds)
    return replace(package, links=tuple(links))


def random_graph(rng, num_ops, **dag):
    """Return a random DAG; now and then with measured times, dead ops or a group."""
    graph = random_dag(num_ops, rng, float(rng.choice([0.1, 0.3, 0.6])), **dag)
    if rng.random() < 0.3:
        seconds = np.where(
            rng.random(num_ops) < 0.5, rng.uniform(0, 1e-5, num_ops), math.nan
        )
        graph = replace(graph, op_seconds=seconds)
    if rng.random() < 0.3:
        kept = graph.tensor_is_output & (rng.random(graph.num_tensors) < 0.5)
        graph = replace(graph, tensor_is_output=kept)
    if rng.random() < 0.2 and num_ops > 1:
        pair = np.sort(rng.choice(num_ops, 2, replace=False))
        graph = replace(graph, together=(tuple(pair.tolist()),))
    return graph


def random_user_rules(rng, graph, num_chips):
    """Return user rules, each now and then; they may contradict each other."""
    names = [str(name) for name in rng.permutation(graph.op_name)]
    pins = {names[0]: int(rng.integers(num_chips))} if rng.random() < 0.2 else {}
    apart = ((names[1], names[2]),) if len(names) > 2 and rng.random() < 0.2 else ()
    together = (tuple(names[3:5]),) if len(names) > 4 and rng.random() < 0.2 else ()
    return UserRules(pins, together, apart, all_chips=bool(rng.random() < 0.1))


def random_problem(
    rng, num_ops, *, num_chips=None, long_edges=None, rules=False, **dag
):
    """Return a problem over a random DAG; ``rules`` adds the user's at random.

    Half of them mark ops replicable at a generous threshold.
    """
    graph = random_graph(rng, num_ops, **dag)
    package = random_package(rng, num_chips=num_chips, long_edges=long_edges)
    threshold = float(rng.choice([0.0, 0.3]))
    while True:
        user = UserRules()
        if rules:
            user = random_user_rules(rng, graph, package.num_chips)
        try:
            return Problem(graph, package, user=user, replica_threshold=threshold)
        except InfeasibleError:
            continue


def random_rows(rng, problem, count):
    """Return ``[count, V] int32`` random partitions that obey dataflow.

    Of every three, one steps up slowly, one leaps, and one is a cut of the op order.
    """
    graph, num_chips = problem.graph, problem.num_chips
    rows = np.full((count, graph.num_ops), -1, dtype=np.int32)
    for row in range(count):
        cuts = np.sort(rng.integers(0, graph.num_ops + 1, num_chips - 1))
        for v in np.flatnonzero(~graph.op_replicable):
            low = max(rows[row, graph.predecessors.row(v)], default=0)
            chip = np.searchsorted(cuts, v, side="right")
            if row % 3 == 0:
                chip = low + (rng.random() < 0.2)
            elif row % 3 == 1:
                chip = rng.integers(max(low, 0), num_chips)
            rows[row, v] = np.clip(max(chip, low), 0, num_chips - 1)
    return rows


def all_rows(problem):
    """Return every placement of the ops, valid or not, ``[C ** V, V] int32``."""
    placed = np.flatnonzero(~problem.graph.op_replicable)
    chips = itertools.product(range(problem.num_chips), repeat=placed.size)
    rows = np.full(
        (problem.num_chips**placed.size, problem.graph.num_ops), -1, np.int32
    )
    rows[:, placed] = np.array(list(chips), dtype=np.int32).reshape(-1, placed.size)
    return rows


def broken_rules(problem, row):
    """Return the names of the rules that the partition breaks, by the plain code."""
    found = explain(problem.graph, problem.package, row.tolist(), problem.user)
    return {violation.rule for violation in found}


@pytest.fixture
def make_package():
    """Give :func:`build_package`."""
    return build_package


@pytest.fixture
def make_problem():
    """Give :func:`random_problem`."""
    return random_problem


@pytest.fixture
def make_rows():
    """Give :func:`random_rows`."""
    return random_rows


@pytest.fixture
def make_all_rows():
    """Give :func:`all_rows`."""
    return all_rows


@pytest.fixture
def broken():
    """Give :func:`broken_rules`."""
    return broken_rules


@pytest.fixture
def toy():
    """Give six ops in a row on three chips, solved by hand.

    Times 4 2 1 3 2 4 s; each tensor is 1 byte and takes 0.1 s in or out. Three chips
    share 16 s in whole seconds, so some chip has 6 s or more; [4 2] [1 3 2] [4],
    [4] [2 1 3] [2 4] and [4 2] [1 3] [2 4] have 6 s, and every chip moves 2 bytes:
    the optimum is 6.2 s.
    """
    graph = chain(6, flops=0, tensor_bytes=1, seconds=[4, 2, 1, 3, 2, 4])
    return Problem(graph, build_package(3))


@pytest.fixture
def toy_optimum_s():
    """Give the toy's smallest bottleneck."""
    return 6.2


@pytest.fixture
def live_tensors():
    """Give two chains of two ops on a fast and a slow chip, of 35 bytes each.

    The ops take 1 s on the fast one and 5.5 s on the other. All on chip 0 would take
    4.3 s, and have the 20 bytes of both chains live at once, which only a look at all
    of its ops can tell. So each chain needs a chip.
    """
    net = GraphBuilder("two_chains")
    net.host_tensor(TensorSpec("x", 1))
    for name, read, size in (
        ("a", "x", 20),
        ("b", "x", 20),
        ("c", "a.t", 1),
        ("d", "b.t", 1),
    ):
        writes = (TensorSpec(f"{name}.t", size),)
        net.op(OpSpec(name, "Op", flops=5, reads=(read,), writes=writes))
    net.output("c.t")
    net.output("d.t")
    slow = {"peak_ops_per_s": (("*", 1.0),)}
    package = build_package(2, memory_bytes=35, overrides={1: slow})
    return Problem(net.build(), package)


@pytest.fixture
def live_optimum_s():
    """Give the smallest bottleneck of the two chains: one on the slow chip."""
    return 11.2
