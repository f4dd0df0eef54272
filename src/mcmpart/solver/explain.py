"""Whether any partition is valid, and if not, which demands contradict each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mcmpart._rng import new_state
from mcmpart.blocks import Blocks
from mcmpart.errors import InfeasibleError
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.hardware.package import Package
from mcmpart.problem import Problem, UserRules, unmerged_blocks
from mcmpart.solver._arrays import Domains, Rules, lowest_chips
from mcmpart.solver._search import IMPOSSIBLE, SAMPLE, SOLVED, Wish, search
from mcmpart.solver._trail import reset
from mcmpart.solver.setup import make_rules, room_for

FIRST_CONFLICTS = 200
"""Contradictions after which a number of chips is put off for the others."""

MORE_CONFLICTS = 4
"""Factor on that in each further round."""


@dataclass(frozen=True, slots=True, eq=False)
class Feasibility:
    """What an exhaustive search came to.

    Attributes
    ----------
    chip_of
        ``[V] int32``, a valid partition, or None.
    is_impossible
        It is proven that there is none. False with no partition: out of time.
    """

    chip_of: Int32 | None
    is_impossible: bool


def find_any(problem: Problem, is_late: Callable[[], bool]) -> Feasibility:
    """Look for a valid partition until one is found or none is left.

    Every op stands for itself: merged views could be what fills a chip.

    Parameters
    ----------
    is_late
        Asked again and again whether to give up.
    """
    if is_late():
        return Feasibility(None, is_impossible=False)
    blocks = unmerged_blocks(problem)
    rules = make_rules(problem, blocks)
    domains = room_for(rules)
    open_rows = np.flatnonzero(rules.possible).tolist()
    if len(open_rows) > 1:
        # Row 0 leaves open how many chips are used; the others together say as much.
        open_rows.remove(0)
    max_conflicts = FIRST_CONFLICTS
    while open_rows:
        for row in tuple(open_rows):
            if is_late():
                return Feasibility(None, is_impossible=False)
            reset(row, rules, domains)
            outcome = _search_row(problem, blocks, rules, domains, max_conflicts)
            if outcome == SOLVED:
                return Feasibility(
                    blocks.expand(lowest_chips(domains)), is_impossible=False
                )
            if outcome == IMPOSSIBLE:
                open_rows.remove(row)
        max_conflicts *= MORE_CONFLICTS
    return Feasibility(None, is_impossible=True)


def raise_if_contradictory(problem: Problem, is_late: Callable[[], bool]) -> None:
    """Raise where propagation alone refutes the user's demands.

    Silence proves nothing. ``is_late`` ends the search for which of them.

    Raises
    ------
    InfeasibleError
        With a smallest set of demands that contradict each other.
    """
    if not problem.user.binds_chips:
        return
    if not make_rules(problem, unmerged_blocks(problem)).possible.any():
        rule, sentence = contradiction(problem, is_late)
        raise InfeasibleError(rule, f"no plan exists: {sentence}")


def contradiction(problem: Problem, is_late: Callable[[], bool]) -> tuple[str, str]:
    """Return which demands of an impossible problem contradict each other.

    The demands are the package's rules and the user's; the dataflow always holds. None
    can be left out of those returned. Where the time is too short to find out, the
    sentence says so.

    Returns
    -------
    rule, sentence
        The package's rule among them, or ``"rules"`` if it is not one alone; and a
        sentence with the remedy.

    References
    ----------
    Junker, "QuickXplain: preferred explanations and relaxations for over-constrained
    problems", AAAI 2004: a minimal set by divide and conquer.
    """
    demands = _demands(problem)

    def contradict(subset: Sequence[_Demand]) -> bool:
        if is_late():
            raise TimeoutError
        try:
            return find_any(_with_demands(problem, subset), is_late).is_impossible
        except InfeasibleError:
            return True

    try:
        core = _minimal([], [], demands, contradict)
    except TimeoutError:
        kinds = dict.fromkeys(demand.rule or demand.field for demand in demands)
        return "rules", (
            f"among {', '.join(kinds)} some contradict each other, and the time was "
            "too short to find out which: drop some of the demands"
        )
    rules = [demand.rule for demand in core if demand.rule]
    texts = [demand.text for demand in core]
    joined = " and ".join([", ".join(texts[:-1]), texts[-1]] if texts[1:] else texts)
    remedy = "drop it" if len(core) == 1 else "drop one of them"
    if "memory" in rules:
        remedy = (
            "give the chips more memory, choose a smaller --precision, or " + remedy
        )
    fault = "cannot be met" if len(core) == 1 else "contradict each other"
    rule = rules[0] if len(rules) == 1 else "rules"
    return rule, f"{joined} {fault}: {remedy}"


def _search_row(
    problem: Problem,
    blocks: Blocks,
    rules: Rules,
    domains: Domains,
    conflicts_left: int,
) -> int:
    """Return the outcome of a search; only a partition that fits the memory counts."""
    # Pairs apart clash among themselves first.
    num_apart = np.bincount(blocks.arrays.apart.ravel(), minlength=blocks.num_blocks)
    order = np.argsort(-num_apart, kind="stable").astype(np.int32)
    wish = Wish(SAMPLE, np.empty((0, 0)), 0.0, np.empty(0, dtype=np.int32))
    state = new_state(0)
    resume = False
    while True:
        outcome, conflicts = search(
            rules, domains, order, wish, conflicts_left, True, resume, state
        )
        if outcome != SOLVED:
            return outcome
        if evaluate_many(problem, blocks.expand(lowest_chips(domains)), workers=1)[
            1
        ].all():
            return SOLVED
        conflicts_left -= conflicts
        resume = True


@dataclass(frozen=True, slots=True)
class _Demand:
    """A rule of the package (``rule``), or one of the user's (``field``, ``value``)."""

    text: str
    rule: str = ""
    field: str = ""
    value: object = None


def _demands(problem: Problem) -> list[_Demand]:
    user = problem.user
    return [
        *(_Demand(f"the rule {rule}", rule=rule) for rule in problem.package.rules),
        *(
            _Demand(f"the demand for all {problem.num_chips} chips", field="all_chips")
            for _ in range(user.all_chips)
        ),
        *(
            _Demand(f"{op!r} pinned to chip {chip}", field="pins", value=(op, chip))
            for op, chip in user.pins.items()
        ),
        *(
            _Demand(f"{group!r} together", field="together", value=group)
            for group in user.together
        ),
        *(
            _Demand(f"{pair[0]!r} apart from {pair[1]!r}", field="apart", value=pair)
            for pair in user.apart
        ),
    ]


def _with_demands(problem: Problem, demands: Sequence[_Demand]) -> Problem:
    """Return the problem with these demands only."""

    def values(field: str) -> list[object]:
        return [demand.value for demand in demands if demand.field == field]

    user = UserRules(
        pins=dict(values("pins")),  # type: ignore[arg-type]
        together=tuple(values("together")),  # type: ignore[arg-type]
        apart=tuple(values("apart")),  # type: ignore[arg-type]
        all_chips=bool(values("all_chips")),
    )
    rules = tuple(demand.rule for demand in demands if demand.rule)
    package = _with_rules(problem.package, rules)
    return dataclasses.replace(problem, package=package, user=user)


def _with_rules(package: Package, rules: tuple[str, ...]) -> Package:
    # Long edges are forbidden by the triangle rule, and by nothing else.
    long_edges = package.long_edges
    if "triangle" not in rules and long_edges == "forbid":
        long_edges = "direct"
    return dataclasses.replace(package, rules=rules, long_edges=long_edges)


def _minimal(
    kept: list[_Demand],
    added: list[_Demand],
    open_demands: list[_Demand],
    contradict: Callable[[Sequence[_Demand]], bool],
) -> list[_Demand]:
    """Return a minimal part of ``open_demands`` that contradicts itself and ``kept``.

    ``added`` are those of ``kept`` that came last: without news there is no new check.
    """
    if added and contradict(kept):
        return []
    if len(open_demands) == 1:
        return open_demands
    half = len(open_demands) // 2
    first, second = open_demands[:half], open_demands[half:]
    core = _minimal([*kept, *first], first, second, contradict)
    return [*_minimal([*kept, *core], core, first, contradict), *core]
