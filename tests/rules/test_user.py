"""The user's rules: pin, together, apart, and a demand for all chips."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.graph.synthetic import chain
from mcmpart.problem import UserRules
from mcmpart.rules import Violation, explain

GRAPH = chain(4)


@pytest.mark.parametrize(
    ("rules", "violation"),
    [
        (
            UserRules(pins={"op_1": 2}),
            Violation("pin", "op 'op_1' is on chip 0, not on 2"),
        ),
        (
            UserRules(together=(("op_0", "op_2", "op_3"),)),
            Violation("together", "'op_0', 'op_2', 'op_3' must share a chip", (0, 1)),
        ),
        (
            UserRules(apart=(("op_2", "op_3"),)),
            Violation("apart", "ops 'op_2' and 'op_3' share chip 1"),
        ),
        (
            UserRules(all_chips=True),
            Violation("all_chips", "chip 2 is empty", (2,)),
        ),
    ],
)
def test_each_rule_speaks(make_package, rules, violation):
    """A broken user rule is named with its ops and chips."""
    assert explain(GRAPH, make_package(3), [0, 0, 1, 1], rules) == [violation]


@pytest.mark.parametrize(
    "rules",
    [
        UserRules(),
        UserRules(pins={"op_1": 0, "op_3": 1}),
        UserRules(together=(("op_0", "op_1"), ("op_2", "op_3"))),
        UserRules(apart=(("op_0", "op_3"), ("op_2", "op_1"))),
    ],
)
def test_what_holds_is_silent(make_package, rules):
    """A user rule that holds gives no violation."""
    assert explain(GRAPH, make_package(3), [0, 0, 1, 1], rules) == []


def test_all_chips_in_use(make_package):
    """The demand for all chips is met when each has an op."""
    rules = UserRules(all_chips=True)
    assert explain(GRAPH, make_package(3), [0, 0, 1, 2], rules) == []


def test_the_graph_has_groups_too(make_package):
    """The groups of the graph count like the user's; long ones are cut short."""
    graph = replace(chain(6), together=((0, 1, 2, 3, 5),))
    (found,) = explain(graph, make_package(2), [0, 0, 0, 0, 1, 1], UserRules())
    assert found.message == "'op_0', 'op_1', 'op_2', 'op_3' must share a chip"


def test_replicas_are_in_no_group(make_package):
    """A replicable op of a group may be anywhere."""
    graph = replace(
        chain(3),
        together=((0, 1),),
        op_replicable=np.array([True, False, False]),
    )
    assert explain(graph, make_package(2), [-1, 0, 1], UserRules()) == []


def test_several_violations_come_together(make_package):
    """All that is broken is reported at once, the package's rules first."""
    rules = UserRules(pins={"op_0": 1}, all_chips=True)
    found = explain(GRAPH, make_package(3), [0, 0, 2, 2], rules)
    assert [violation.rule for violation in found] == ["no_skip", "pin", "all_chips"]
