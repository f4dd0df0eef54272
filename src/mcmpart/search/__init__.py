"""Search methods, all behind one protocol; ``METHODS`` lists them by name."""

from collections.abc import Callable

from mcmpart.search.anneal import Anneal
from mcmpart.search.auto import Auto
from mcmpart.search.correct import Correct
from mcmpart.search.evolve import Evolve
from mcmpart.search.exact import Exact
from mcmpart.search.greedy import Greedy
from mcmpart.search.local import Local
from mcmpart.search.method import (
    Budget,
    Evaluations,
    Evaluator,
    SearchMethod,
    SearchRecord,
    Setting,
    TracePoint,
    checked,
    pipeline_evaluator,
    relative_gap,
    run_search,
)
from mcmpart.search.random import Random
from mcmpart.search.slice import Slice

METHODS: dict[str, Callable[[Setting], SearchMethod]] = {
    "auto": Auto,
    "greedy": Greedy,
    "random": Random,
    "anneal": Anneal,
    "slice": Slice,
    "evolve": Evolve,
    "local": Local,
    "correct": Correct,
    "exact": Exact,
}

__all__ = [
    "METHODS",
    "Auto",
    "Budget",
    "Evaluations",
    "Evaluator",
    "SearchMethod",
    "SearchRecord",
    "Setting",
    "TracePoint",
    "checked",
    "pipeline_evaluator",
    "relative_gap",
    "run_search",
]
