"""mcmpart: split a machine-learning model over the chips of a multi-chip module.

The public names load on first use, so that ``mcmpart --help`` need not wait for the
libraries behind them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from mcmpart._version import __version__

if TYPE_CHECKING:
    from mcmpart.evaluate import Evaluation, evaluate, evaluate_many
    from mcmpart.frontends.load import import_model, load_graph
    from mcmpart.graph import Graph, GraphBuilder
    from mcmpart.hardware import Package, load_package
    from mcmpart.partition import Partition
    from mcmpart.plan import read_plan, write_result
    from mcmpart.problem import Problem, UserRules
    from mcmpart.solve import Result, make_result, solve
    from mcmpart.solver import Solver, fix_many, sample_many
    from mcmpart.verify import verify, verify_plan

_HOME = {
    "Evaluation": "evaluate",
    "evaluate": "evaluate",
    "evaluate_many": "evaluate",
    "import_model": "frontends.load",
    "load_graph": "frontends.load",
    "Certificate": "bounds.certificate",
    "lower_bound": "certify",
    "Graph": "graph",
    "GraphBuilder": "graph",
    "Package": "hardware",
    "load_package": "hardware",
    "Partition": "partition",
    "read_plan": "plan",
    "write_result": "plan",
    "Problem": "problem",
    "UserRules": "problem",
    "Result": "solve",
    "make_result": "solve",
    "solve": "solve",
    "Solver": "solver",
    "fix_many": "solver",
    "sample_many": "solver",
    "verify": "verify",
    "verify_plan": "verify",
}

__all__ = [
    "Certificate",
    "Evaluation",
    "Graph",
    "GraphBuilder",
    "Package",
    "Partition",
    "Problem",
    "Result",
    "Solver",
    "UserRules",
    "__version__",
    "evaluate",
    "evaluate_many",
    "fix_many",
    "import_model",
    "load_graph",
    "load_package",
    "lower_bound",
    "make_result",
    "read_plan",
    "sample_many",
    "solve",
    "verify",
    "verify_plan",
    "write_result",
]


class _Package(ModuleType):
    """The package itself: no submodule hides the function of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'mcmpart' has no attribute {name!r}")
    return getattr(import_module(f"mcmpart.{home}"), name)


def __dir__() -> list[str]:
    return __all__
