"""verify: recompute a plan's rules and figures by code that no search uses."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum
from itertools import chain, islice
from pathlib import Path

from mcmpart.bounds import certificate
from mcmpart.bounds.certificate import Certificate, UserDemands
from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.prove import OPTIMAL, Prover
from mcmpart.errors import McmpartError, VerificationError
from mcmpart.frontends.load import load_graph
from mcmpart.graph.file import content_hash, read_graph
from mcmpart.graph.graph import HOST, Graph
from mcmpart.hardware import package as hardware
from mcmpart.hardware.loader import load_package
from mcmpart.hardware.package import Package
from mcmpart.plan import (
    GRAPH_FILE,
    PACKAGE_FILE,
    Plan,
    Settings,
    make_plan,
    read_plan,
)
from mcmpart.problem import Problem, UserRules
from mcmpart.reference import Reference, op_seconds, recompute
from mcmpart.rewrite._kinds import is_random
from mcmpart.rules import explain
from mcmpart.search.interrupt import is_pressed, noted_interrupts
from mcmpart.solve import Result, solve

RELATIVE = 1e-9
"""Largest relative difference of two sums of the same floats in other orders."""

MAX_PARTITIONS = 5_000
MAX_OPS = 40
"""Most partitions that a search judges for an exhaustive bound, and ops of a graph for
which they are listed in plain Python: a few seconds."""

GAP_ROUNDING = 1e-12
"""A gap is a small difference of two larger numbers."""


def verify(result: Result) -> None:
    """Check ``result`` with plain Python code alone.

    Raises
    ------
    VerificationError
        With every rule that does not hold and every figure that differs.
    """
    plan = make_plan(result)
    _raise_if_any(differences(plan, result.problem.graph, result.problem.package))


def verify_plan(path: Path, model: Path | None = None) -> Plan:
    """Check the plan in ``path`` against the graph and package beside it.

    Parameters
    ----------
    path, model
        As in :func:`find_differences`.

    Returns
    -------
    Plan
        The plan, when all of it holds.

    Raises
    ------
    InputError
        A file is missing or cannot be read.
    VerificationError
        With every rule that does not hold and every figure that differs.
    """
    plan, found = find_differences(path, model)
    _raise_if_any(found)
    return plan


def find_differences(path: Path, model: Path | None = None) -> tuple[Plan, list[str]]:
    """Return the plan in ``path`` and every way in which it does not hold.

    Parameters
    ----------
    path
        plan.json, or the folder that holds it, with graph and package beside it.
    model
        Import this model again, the way the plan says, and compare it too.
    """
    folder = path if path.is_dir() else path.parent
    plan = read_plan(path)
    graph = read_graph(folder / GRAPH_FILE)
    package = load_package(folder / PACKAGE_FILE)
    found = differences(plan, graph, package)
    found = found or _certificate_differences(plan, folder)
    if model is not None:
        found += _model_differences(plan, package, model)
    return plan, found


def differences(plan: Plan, graph: Graph, package: Package) -> list[str]:
    """Return every way in which ``plan`` is not what graph and package say."""
    found = list(_identity(plan, graph, package))
    found += _replica_faults(plan, graph)
    found += _unknown_ops(plan, graph)
    chip_of = [plan.chip_of.get(name, -1) for name in graph.op_name]
    if found:
        return found
    violations = explain(graph, package, chip_of, _user_rules(plan.search.settings))
    found += [f"rule {broken.rule}: {broken.message}" for broken in violations]
    if any(broken.rule == "dataflow" for broken in violations):
        return found
    reference = recompute(graph, package, chip_of)
    found += _metric_differences(plan, graph, package, reference)
    found += _row_differences(plan, reference)
    return found + _copy_differences(plan, graph, chip_of)


def _identity(plan: Plan, graph: Graph, package: Package) -> Iterator[str]:
    if plan.graph.sha256 != content_hash(graph):
        yield "the graph is not the one the plan was made for (its content differs)"
    if plan.package.sha256 != hardware.content_hash(package):
        yield "the package is not the one the plan was made for (its content differs)"
    stated = (plan.rules, plan.long_edges, plan.io, plan.package.chips)
    real = (list(package.rules), package.long_edges, package.io, package.num_chips)
    if stated != real:
        yield f"rules, long_edges, io, chips are {stated}, the package has {real}"
    placed = {
        name
        for name, copied in zip(graph.op_name, graph.op_replicable, strict=True)
        if not copied
    }
    for name in sorted(placed.symmetric_difference(plan.chip_of))[:8]:
        what = "is on no chip" if name in placed else "is no op that needs a chip"
        yield f"op {name!r} {what}"


def _unknown_ops(plan: Plan, graph: Graph) -> list[str]:
    """Return the ops that the user's rules name and the graph does not have."""
    known = set(graph.op_name)
    return [
        f"a rule of the user names op {name!r}, which the graph does not have"
        for name in _named_ops(plan)
        if name not in known
    ]


def _named_ops(plan: Plan) -> list[str]:
    settings = plan.search.settings
    return [*settings.pins, *chain(*settings.together, *settings.apart)]


def _replica_faults(plan: Plan, graph: Graph) -> list[str]:
    """Return the ops that are marked replicable and must not be."""
    found = []
    bound = {*_named_ops(plan), *(graph.op_name[op] for op in chain(*graph.together))}
    for op in range(graph.num_ops):
        if not graph.op_replicable[op]:
            continue
        if graph.op_name[op] in bound:
            found.append(f"{graph.op_name[op]!r} is replicable and bound by a rule")
        if is_random(graph.op_kind[op]):
            found.append(f"{graph.op_name[op]!r} is replicable and random")
        if any(graph.tensor_is_output[t] for t in graph.writes.row(op).tolist()):
            found.append(f"{graph.op_name[op]!r} is replicable and writes an output")
        for t in graph.reads.row(op).tolist():
            producer = int(graph.tensor_producer[t])
            if producer != HOST and not graph.op_replicable[producer]:
                found.append(
                    f"{graph.op_name[op]!r} is replicable and reads what "
                    f"{graph.op_name[producer]!r} makes on one chip"
                )
    return found


def _metric_differences(
    plan: Plan, graph: Graph, package: Package, reference: Reference
) -> list[str]:
    bound_s = _simple_bound_s(graph, package)
    bottleneck_s = reference.bottleneck_s
    stated = plan.metrics
    expected = {
        "bottleneck_s": bottleneck_s,
        "latency_s": reference.latency_s,
        "energy_j": reference.energy_j,
        "throughput_per_s": 1 / bottleneck_s if bottleneck_s else None,
    }
    if stated.lower_bound_method == "simple":
        expected["lower_bound_s"] = bound_s
    found = [
        f"{key} is {getattr(stated, key)}, recomputed {value}"
        for key, value in expected.items()
        if not _same(getattr(stated, key), value)
    ]
    gap = max(0.0, 1 - stated.lower_bound_s / bottleneck_s) if bottleneck_s else 0.0
    if not math.isclose(stated.gap, gap, rel_tol=RELATIVE, abs_tol=GAP_ROUNDING):
        found.append(f"gap is {stated.gap}, recomputed {gap}")
    if stated.lower_bound_method == "exhaustive":
        found += _exhaustive_differences(plan, graph, package, bottleneck_s)
    elif stated.lower_bound_method not in certificate.PROOFS:
        found.append(
            f"the method of the lower bound is {stated.lower_bound_method!r}, and it "
            f"is one of {', '.join(certificate.PROOFS)}"
        )
    elif stated.lower_bound_method != "simple":
        found += _proof_differences(plan, graph, package)
    if stated.lower_bound_s > bottleneck_s * (1 + RELATIVE):
        found.append(
            f"the lower bound {stated.lower_bound_s} s is above the plan's own "
            f"bottleneck {bottleneck_s} s"
        )
    return found


def _proof_differences(plan: Plan, graph: Graph, package: Package) -> list[str]:
    """Return why the bound cannot hold; nothing too where that takes too long."""
    document = certificate_of(plan)
    try:
        if certificate.check(document, graph, package, certificate.QUICK_STAGES):
            return []
    except VerificationError as error:
        return [str(error)]
    best_s = _best_of_all_s(graph, package, _user_rules(plan.search.settings))
    if best_s is None or document.bound_s <= best_s * (1 + RELATIVE):
        return []
    return [
        f"the bound of {document.bound_s} s does not hold: the best of all valid "
        f"partitions takes {best_s} s"
    ]


class Confirmed(Enum):
    """How far a bound is confirmed; the values are for a user."""

    PLAINLY = "confirmed in plain Python, by code that no search uses"
    AGAIN = (
        "beyond plain Python; proven again by the same code, "
        "which is no independent check"
    )
    OPEN = "beyond plain Python, and not proven again in the time given"
    NO = "does not hold"


SEARCH_S = 3.0
RESOLVE_S = 120.0
"""Time for a plan that beats a bound, and then for proving the bound again, where
plain Python can do neither."""


def confirm_certificate(document: Certificate, folder: Path) -> Confirmed:
    """Return how far the certificate is confirmed for what lies in ``folder``.

    Raises
    ------
    InputError
        Graph or package are missing there.
    VerificationError
        The bound is for another graph or package, or does not hold.
    """
    graph = read_graph(folder / GRAPH_FILE)
    package = load_package(folder / PACKAGE_FILE)
    with noted_interrupts():
        confirmed = _confirmed(document, graph, package)
        if is_pressed():
            raise KeyboardInterrupt
    return confirmed


def _confirmed(document: Certificate, graph: Graph, package: Package) -> Confirmed:
    certificate.raise_if_foreign(document, graph, package)
    user = _user_rules(document.rules)
    try:
        problem = Problem(graph, package, user=user, replica_threshold=0.0)
    except McmpartError as error:
        raise VerificationError(
            f"nothing can keep to the rules of the certificate: {error}"
        ) from error
    if document.method == "simple":
        stated, real = document.bound_s, _simple_bound_s(graph, package)
        return Confirmed.PLAINLY if stated <= real * (1 + RELATIVE) else Confirmed.NO
    if certificate.is_settled(document, graph, package):
        return Confirmed.PLAINLY
    if document.method == "exhaustive":
        best_s = _best_of_all_s(graph, package, user)
        if best_s is not None:
            holds = document.bound_s <= best_s * (1 + RELATIVE)
            return Confirmed.PLAINLY if holds else Confirmed.NO
    return _proven_again(problem, document)


def _proven_again(problem: Problem, document: Certificate) -> Confirmed:
    """Look for a plan below the bound, and prove the bound again if there is none."""
    if _is_beaten(problem, document.bound_s):
        return Confirmed.NO
    prover = Prover(problem, time.perf_counter() + RESOLVE_S, is_pressed)
    if prover.confirms(document.bound_s):
        return Confirmed.AGAIN
    if document.method == "exact" and not is_pressed():
        return _exact_again(problem, document.bound_s)
    return Confirmed.OPEN


def _is_beaten(problem: Problem, bound_s: float) -> bool:
    """Return whether a short search finds a plan below the bound, by plain Python."""
    try:
        found = solve(problem, time_s=SEARCH_S, gap=0.0)
    except McmpartError:
        return False
    chip_of = found.partition.chip_of.tolist()
    cost_s = recompute(problem.graph, problem.package, chip_of).bottleneck_s
    is_valid = not explain(problem.graph, problem.package, chip_of, problem.user)
    return is_valid and cost_s < bound_s * (1 - RELATIVE)


def _exact_again(problem: Problem, bound_s: float) -> Confirmed:
    """Solve the integer program again for a partition below the bound."""
    again = exact_bound(problem, RESOLVE_S, best_s=bound_s, is_late=is_pressed)
    if again.chip_of is not None and again.bottleneck_s < bound_s * (1 - OPTIMAL):
        return Confirmed.NO
    holds = again.bound_s >= bound_s * (1 - OPTIMAL)
    return Confirmed.AGAIN if holds else Confirmed.OPEN


def certificate_of(plan: Plan) -> Certificate:
    """Return the certificate of the plan's bound, without the steps of a chain."""
    settings = plan.search.settings
    return Certificate(
        graph_sha256=plan.graph.sha256,
        package_sha256=plan.package.sha256,
        bound_s=plan.metrics.lower_bound_s,
        method=plan.metrics.lower_bound_method,
        rules=UserDemands(
            pins=settings.pins,
            together=settings.together,
            apart=settings.apart,
            all_chips=settings.all_chips,
        ),
    )


def _certificate_differences(plan: Plan, folder: Path) -> list[str]:
    """Compare the certificate beside a plan, if there is one, with its bound."""
    if not (folder / certificate.CERTIFICATE_FILE).exists():
        return []
    stated = certificate.read_certificate(folder).model_dump(exclude={"ranges"})
    return [
        f"{certificate.CERTIFICATE_FILE}: {key} is {stated[key]}, the plan has {value}"
        for key, value in certificate_of(plan).model_dump(exclude={"ranges"}).items()
        if stated[key] != value
    ]


def _exhaustive_differences(
    plan: Plan, graph: Graph, package: Package, bottleneck_s: float
) -> list[str]:
    """Compare the plan's bound with the cost of the best of all valid partitions."""
    stated_s = plan.metrics.lower_bound_s
    user = _user_rules(plan.search.settings)
    best_s = _best_of_all_s(graph, package, user, bottleneck_s)
    if best_s is None:
        return [f"an exhaustive bound is not for a graph of {graph.num_ops} ops"]
    if _same(stated_s, best_s):
        return []
    return [
        f"the exhaustive lower bound is {stated_s} s, and the best of all valid "
        f"partitions takes {best_s} s"
    ]


def _best_of_all_s(
    graph: Graph, package: Package, user: UserRules, known_s: float = math.inf
) -> float | None:
    """Return the least bottleneck, ``known_s`` at most; None if there are too many."""
    if graph.num_ops > MAX_OPS:
        return None
    partitions = list(islice(_partitions(graph, package), MAX_PARTITIONS + 1))
    if len(partitions) > MAX_PARTITIONS:
        return None
    best_s = known_s
    for chip_of in partitions:
        cost_s = recompute(graph, package, chip_of).bottleneck_s
        if cost_s < best_s and not explain(graph, package, chip_of, user):
            best_s = cost_s
    return best_s


def _partitions(graph: Graph, package: Package) -> Iterator[list[int]]:
    """Yield every placement along the dataflow, by extending it op by op."""
    num_chips = package.num_chips
    if package.has_rule("no_skip"):
        num_chips = min(num_chips, int((~graph.op_replicable).sum()))
    unfinished: list[list[int]] = [[]]
    while unfinished:
        placed = unfinished.pop()
        op = len(placed)
        if op == graph.num_ops:
            yield placed
        elif graph.op_replicable[op]:
            unfinished.append([*placed, -1])
        else:
            before = [placed[u] for u in graph.predecessors.row(op).tolist()]
            lowest = max(before, default=0)
            unfinished += [[*placed, chip] for chip in range(max(lowest, 0), num_chips)]


def _user_rules(stated: Settings | UserDemands) -> UserRules:
    """Return what a plan's settings, or a certificate, say of the user's rules."""
    return UserRules(
        pins=stated.pins,
        together=tuple(tuple(group) for group in stated.together),
        apart=tuple((pair[0], pair[1]) for pair in stated.apart),
        all_chips=stated.all_chips,
    )


def _row_differences(plan: Plan, reference: Reference) -> list[str]:
    chips = _table_differences(
        "chip",
        [row.model_dump() for row in plan.chips],
        [asdict(load) for load in reference.chips],
    )
    hops = _table_differences(
        "hop",
        [row.model_dump() for row in plan.links],
        [asdict(load) for load in reference.hops],
    )
    return chips + hops


def _table_differences(
    what: str,
    stated: list[dict[str, float]],
    expected: list[dict[str, float]],
) -> list[str]:
    if len(stated) != len(expected):
        return [f"{len(stated)} {what} rows, recomputed {len(expected)}"]
    return [
        f"{what} {row[what]}: {key} is {row[key]}, recomputed {value}"
        for row, load in zip(stated, expected, strict=True)
        for key, value in load.items()
        if not _same(row[key], value)
    ]


def _copy_differences(plan: Plan, graph: Graph, chip_of: list[int]) -> list[str]:
    """Compare the plan's replicas with those that the placement needs."""
    needed: dict[int, set[int]] = {}
    for op in range(graph.num_ops - 1, -1, -1):
        if graph.op_replicable[op]:
            chips: set[int] = set()
            for reader in graph.successors.row(op).tolist():
                chips |= needed.get(reader, {chip_of[reader]})
            needed[op] = chips
    expected: dict[str, list[str]] = {}
    for op in sorted(needed):
        for chip in sorted(needed[op]):
            expected.setdefault(str(chip), []).append(graph.op_name[op])
    if plan.replicas == expected:
        return []
    return [f"replicas are {plan.replicas}, recomputed {expected}"]


def _simple_bound_s(graph: Graph, package: Package) -> float:
    """Return max(largest t(v), (sum of t) / C) over the ops that are computed."""
    needed = [not copied for copied in graph.op_replicable.tolist()]
    for op in range(graph.num_ops - 1, -1, -1):
        if not needed[op]:
            needed[op] = any(needed[v] for v in graph.successors.row(op).tolist())
    kinds = set(package.chips)
    seconds = [
        min(op_seconds(graph, op, chip) for chip in kinds)
        for op in range(graph.num_ops)
        if needed[op]
    ]
    if not seconds:
        return 0.0
    return max(*seconds, math.fsum(seconds) / package.num_chips)


def _model_differences(plan: Plan, package: Package, model: Path) -> list[str]:
    settings = plan.search.settings
    graph = load_graph(model, dims=settings.dims, op_costs=settings.op_costs)
    try:
        problem = Problem(
            graph,
            package,
            precision=settings.precision,
            user=_user_rules(plan.search.settings),
            replica_threshold=settings.replica_threshold,
        )
    except McmpartError as error:
        return [f"{model} is not the model the plan was made for ({error})"]
    if content_hash(problem.graph) == plan.graph.sha256:
        return []
    return [f"{model} is not the model the plan was made for (its graph differs)"]


def _same(stated: float | None, expected: float | None) -> bool:
    if stated is None or expected is None:
        return stated is expected
    if isinstance(stated, int) and isinstance(expected, int):
        return stated == expected
    # Sums of numbers that are all 0 or more: no cancellation, so no absolute slack.
    return math.isclose(stated, expected, rel_tol=RELATIVE)


def _raise_if_any(found: list[str]) -> None:
    if found:
        shown = "; ".join(found[:8])
        more = f"; and {len(found) - 8} more" if len(found) > 8 else ""
        raise VerificationError(f"the plan does not hold: {shown}{more}")
