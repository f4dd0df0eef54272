"""no_skip: the used chips are 0, 1, ..., m - 1."""

import pytest

from mcmpart.graph.synthetic import chain
from mcmpart.problem import UserRules
from mcmpart.rules import Violation, explain


def breaks(package, chip_of):
    """Return what breaks the rule."""
    found = explain(chain(len(chip_of)), package, chip_of, UserRules())
    return [violation for violation in found if violation.rule == "no_skip"]


@pytest.mark.parametrize("chip_of", [[0, 0, 0], [0, 1, 1], [0, 1, 2]])
def test_a_prefix_is_fine(make_package, chip_of):
    """Chips 0 to m - 1 in use, the others empty, is what the rule demands."""
    assert breaks(make_package(4), chip_of) == []


def test_gaps_are_named(make_package):
    """Each empty chip below the last used one is a violation."""
    message = "chip {} is empty, but chip 3 is used"
    assert breaks(make_package(5), [1, 3, 3]) == [
        Violation("no_skip", message.format(0), (0,)),
        Violation("no_skip", message.format(2), (2,)),
    ]


def test_the_package_may_allow_gaps(make_package):
    """Without the rule any chip may stay empty."""
    assert breaks(make_package(5, rules=("triangle",)), [1, 3, 3]) == []
