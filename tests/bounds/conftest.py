"""Fixtures of the bounds' tests: problems that were solved by hand."""

from dataclasses import replace

import pytest

from mcmpart.graph import HOST, GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, diamond
from mcmpart.problem import Problem, UserRules


def build_net(*ops):
    """Return ops given as (name, seconds, reads, bytes of what each writes).

    An op writes one tensor for each entry of bytes: ``name.0``, ``name.1``, ... The
    last op's first tensor is the output. Without seconds an op is a view.
    """
    net = GraphBuilder("by_hand")
    net.host_tensor(TensorSpec("x", 1))
    for name, seconds, reads, sizes in ops:
        writes = tuple(TensorSpec(f"{name}.{i}", size) for i, size in enumerate(sizes))
        kind = "Reshape" if seconds is None else "Op"
        net.op(OpSpec(name, kind, seconds=seconds, reads=reads, writes=writes))
    net.output(f"{ops[-1][0]}.0")
    return net.build()


def arms(make_package, long_edges, num_chips=4):
    """Return source, two arms, sink of 3 s each; a tensor takes 0.1 s in or out."""
    graph = diamond(2, flops=25, tensor_bytes=1)
    return Problem(graph, make_package(num_chips, long_edges=long_edges))


def skip(make_package, long_edges):
    """Return u -> w -> v of 3 s each, and 10 bytes, 1 s in or out, from u to v."""
    graph = build_net(
        ("u", 3.0, ("x",), (1, 10)),
        ("w", 3.0, ("u.0",), (1,)),
        ("v", 3.0, ("w.0", "u.1"), (1,)),
    )
    return Problem(graph, make_package(3, long_edges=long_edges))


def hop(make_package, link_limit, *, is_output=False):
    """Return two ops of 3 s and 10 bytes between: 5 s of a slow link."""
    package = make_package(2, bandwidth_bytes_per_s=2.0, link_limit=link_limit)
    graph = build_net(("u", 3.0, ("x",), (10,)), ("v", 3.0, ("u.0",), (1,)))
    outputs = graph.tensor_is_output | is_output
    outputs[graph.tensor_producer == HOST] = False
    return Problem(replace(graph, tensor_is_output=outputs), package)


def passed_over(make_package):
    """Return u -> v with 10 bytes between, and a slow chip in the middle.

    An empty chip relays nothing, however slow it is.
    """
    package = make_package(
        3,
        long_edges="relay",
        rules=(),
        overrides={1: {"io_bandwidth_bytes_per_s": 0.5}},
    )
    graph = build_net(("u", 3.0, ("x",), (10,)), ("v", 3.0, ("u.0",), (1,)))
    return Problem(graph, package)


def stepping_stone(make_package):
    """Return u -> view -> w, v and w -> v, 4 s each: u and v lie two chips apart.

    Under triangle the view must be with w: joined to u it would leave an edge u -> v.
    """
    graph = build_net(
        ("u", 4.0, ("x",), (1,)),
        ("view", None, ("u.0",), (1,)),
        ("w", 4.0, ("view.0",), (1,)),
        ("v", 4.0, ("w.0", "view.0"), (1,)),
    )
    return Problem(graph, make_package(3, rules=("triangle",)))


def filler(make_package):
    """Return op -> view -> op on three chips, the middle one being slow.

    Under no_skip only the view alone on it lets the ops have a fast chip each: 10.5 s
    there and 100.5 s on the slow one.
    """
    graph = chain(3, flops=[100, 0, 100], tensor_bytes=1)
    bytes_of = graph.op_bytes.copy()
    bytes_of[1] = 0
    package = make_package(
        3,
        long_edges="direct",
        rules=("no_skip",),
        overrides={1: {"peak_ops_per_s": (("*", 1.0),)}},
    )
    return Problem(replace(graph, op_bytes=bytes_of), package)


def with_user(problem, **rules):
    """Return the problem with rules of a user."""
    return Problem(problem.model, problem.package, user=UserRules(**rules))


BY_HAND = {
    # An op a chip. An edge jumps over each arm's chip, but no path between its ends
    # leads there, so triangle holds. The sink moves 3 bytes; as a relay the second
    # arm's chip moves 4: the first arm's tensor passes over it.
    "arms_forbid": (lambda make: arms(make, "forbid"), 3.3),
    "arms_direct": (lambda make: arms(make, "direct"), 3.3),
    "arms_relay": (lambda make: arms(make, "relay"), 3.4),
    # [u w] [v] and [u] [w v] have 12 bytes; else u has 12, and w 22 as a relay.
    "skip_forbid": (lambda make: skip(make, "forbid"), 7.2),
    "skip_direct": (lambda make: skip(make, "direct"), 4.2),
    "skip_relay": (lambda make: skip(make, "relay"), 5.2),
    # Each op moves 11 bytes; the hop takes longer than that, if it counts.
    "hop_counts": (lambda make: hop(make, True), 5.0),
    "hop_of_an_output": (lambda make: hop(make, True, is_output=True), 5.0),
    "hop_is_free": (lambda make: hop(make, False), 4.1),
    # As there, on the first chip and the last.
    "passed_over": (passed_over, 4.1),
    # w sends its own tensor and the view's.
    "stepping_stone": (stepping_stone, 4.3),
    "filler": (filler, 10.7),
}


@pytest.fixture(params=BY_HAND)
def by_hand(request, make_by_hand):
    """Give each of ``BY_HAND``: a problem and its smallest bottleneck in seconds."""
    return make_by_hand(request.param)


@pytest.fixture
def make_by_hand(make_package):
    """Give a function that returns one of ``BY_HAND``, and its optimum, by name."""

    def make_one(name):
        make, optimum_s = BY_HAND[name]
        return make(make_package), optimum_s

    return make_one


@pytest.fixture
def net():
    """Give :func:`build_net`."""
    return build_net


@pytest.fixture
def demand():
    """Give :func:`with_user`."""
    return with_user
