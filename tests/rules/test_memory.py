"""memory: weights, double buffers and live tensors fit the chip."""

from mcmpart.graph.synthetic import chain
from mcmpart.problem import UserRules
from mcmpart.rules import explain

GRAPH = chain(2, tensor_bytes=1024, weight_bytes=4096)
# Each chip: weight 4,096 + 2 x (1,024 in + 1,024 out) + 1,024 live = 9,216.
DEMAND = 9216


def breaks(package):
    """Return what breaks the rule, with one op on each of two chips."""
    found = explain(GRAPH, package, [0, 1], UserRules())
    return [violation for violation in found if violation.rule == "memory"]


def test_exactly_full_is_fine(make_package):
    """A chip may be filled to its last byte."""
    assert breaks(make_package(2, memory_bytes=DEMAND)) == []


def test_one_byte_too_much(make_package):
    """One byte less is a violation on that chip, with the parts of the demand."""
    package = make_package(
        2, memory_bytes=DEMAND, overrides={1: {"memory_bytes": DEMAND - 1}}
    )
    (found,) = breaks(package)
    assert found.chips == (1,)
    assert found.message == (
        "chip 1 needs 9.0 KiB (4.0 KiB weights, 4.0 KiB transfer buffers, 1.0 KiB live "
        "tensors) and has 9.0 KiB: it does not fit by 1 B"
    )


def test_the_package_may_switch_it_off(make_package):
    """Without the rule a chip of one byte holds everything."""
    package = make_package(2, memory_bytes=1, rules=("no_skip", "triangle"))
    assert breaks(package) == []
