"""dataflow: no edge goes to a lower chip, and every op is on a chip that exists."""

from dataclasses import replace

import numpy as np

from mcmpart.graph.synthetic import chain, diamond
from mcmpart.problem import UserRules
from mcmpart.rules import Violation, explain


def test_edges_to_higher_chips_are_fine(make_package):
    """Equal and rising chips along the edges break nothing."""
    assert explain(chain(4), make_package(3), [0, 1, 1, 2], UserRules()) == []


def test_each_falling_edge_is_named(make_package):
    """Every edge to a lower chip is one violation, with both ops and chips."""
    found = explain(diamond(2), make_package(3), [1, 2, 0, 1], UserRules())
    assert [violation.rule for violation in found] == ["dataflow"] * 2
    assert found[0] == Violation(
        "dataflow",
        "op 'arm_1' on chip 0 reads what 'source' makes on the later chip 1",
        (1, 0),
    )
    assert found[1].message == (
        "op 'sink' on chip 1 reads what 'arm_0' makes on the later chip 2"
    )


def test_chips_that_do_not_exist(make_package):
    """A chip below 0 or beyond the last is a violation that says which there are."""
    found = explain(chain(2), make_package(2), [-1, 2], UserRules())
    assert [violation.message for violation in found] == [
        "op 'op_0' is on chip -1, and package 'toy' has chips 0 to 1",
        "op 'op_1' is on chip 2, and package 'toy' has chips 0 to 1",
    ]


def test_replicas_keep_no_order(make_package):
    """Edges of a replicable op go to any chip, and its column is not read."""
    graph = replace(chain(3), op_replicable=np.array([True, False, False]))
    assert explain(graph, make_package(2), [9, 0, 1], UserRules()) == []


def test_dataflow_is_reported_alone(make_package):
    """Where dataflow is broken nothing else is looked at."""
    rules = UserRules(pins={"op_0": 0}, all_chips=True)
    found = explain(chain(2), make_package(3), [2, 0], rules)
    assert {violation.rule for violation in found} == {"dataflow"}
