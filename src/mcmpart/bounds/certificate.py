"""Certificates: a bound in a file, and a checker that knows no solver.

The checker works in plain Python on graph and package, by the formulas that the plans
are verified with. It settles bounds of graphs with few ideals; of others it says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcmpart._files import dump_json, read_document, write_atomic
from mcmpart.errors import VerificationError
from mcmpart.graph.file import content_hash
from mcmpart.graph.graph import HOST, Csr, Graph
from mcmpart.hardware import package as hardware
from mcmpart.hardware.package import Chip, Package
from mcmpart.problem import Problem
from mcmpart.reference import op_seconds

FORMAT: Final = "mcmpart.certificate"
VERSION: Final = 1
CERTIFICATE_FILE = "certificate.json"

MAX_STAGES = 400_000
QUICK_STAGES = 20_000
"""Most stages that are costed in plain Python: ten seconds or so, and half of one."""

STAGES_PER_IDEAL = 20
"""A graph may have one ideal for so many stages, or is given up at once."""

MAX_OPS = 5_000
"""Larger graphs are given up at once: sets of ops take their bits each."""

BELOW = 1 - 1e-9
"""What is refuted is this share of the bound: sums in another order round otherwise."""


Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
# Adding 0.0 turns -0.0, which JSON can hold, into 0.0.
Seconds = Annotated[
    float, Field(ge=0, allow_inf_nan=False), AfterValidator(lambda s: s + 0.0)
]
Work = Annotated[list[Seconds], Field(min_length=2, max_length=2)]


class UserDemands(BaseModel):
    """The user's rules that the bound takes for granted, by op name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    pins: dict[str, int] = Field(default_factory=dict)
    together: list[list[str]] = Field(default_factory=list)
    apart: list[Pair] = Field(default_factory=list)
    all_chips: bool = False


class Certificate(BaseModel):
    """A lower bound on the bottleneck of every partition of a problem.

    Attributes
    ----------
    bound_s
        No partition has a smaller bottleneck.
    method
        How it was proven (docs/algorithm.md, "Lower bounds").
    ranges
        Of a chain, for b = 0 to C: least and most work in seconds that the first b
        chips can have done; one range is empty. They are for the reader: whoever checks
        the bound finds them anew.
    graph_sha256, package_sha256
        What it holds for.
    rules
        What the user demanded beside the package's rules.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["mcmpart.certificate"] = FORMAT
    version: Literal[1] = VERSION
    graph_sha256: str
    package_sha256: str
    bound_s: Seconds
    method: str
    ranges: list[Work] = Field(default_factory=list)
    rules: UserDemands = Field(default_factory=UserDemands)

    @property
    def proof(self) -> str:
        """What stands behind the bound, as a sentence."""
        return PROOFS.get(self.method, f"proven by the method {self.method}")


PROOFS = {
    "simple": "the work is shared out evenly, or the largest op decides",
    "exhaustive": "every partition was judged",
    "ideals": "no sequence of stages within the bound runs the whole graph",
    "lump": "no stage that holds a certain op keeps to less, however many chips",
    "chain": "the furthest work that the chips can reach within the bound is not all",
    "exact": "the dual bound of the integer program",
}


WHOLE_METHODS = ("exhaustive", "exact")
"""Methods that look at every rule; the others see what one stage can break alone."""


def make_certificate(
    problem: Problem,
    bound_s: float,
    method: str,
    ranges: tuple[tuple[float, float], ...] = (),
) -> Certificate:
    """Return the certificate of a bound of ``problem``."""
    user = problem.user
    return Certificate(
        graph_sha256=content_hash(problem.graph),
        package_sha256=hardware.content_hash(problem.package),
        bound_s=bound_s,
        method=method,
        ranges=[list(pair) for pair in ranges],
        rules=UserDemands(
            pins=dict(user.pins),
            together=[list(group) for group in user.together],
            apart=[list(pair) for pair in user.apart],
            all_chips=user.all_chips,
        ),
    )


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write ``certificate`` to ``path``, atomically."""
    write_atomic(path, dump_json(certificate.model_dump(), indent=1))


def read_certificate(path: Path) -> Certificate:
    """Return the certificate in ``path``, or in the folder ``path``.

    Raises
    ------
    InputError
        It cannot be read, is no certificate, or holds an unknown key.
    """
    if path.is_dir():
        path = path / CERTIFICATE_FILE
    return read_document(path, "certificate", FORMAT, VERSION, Certificate)


def check(
    certificate: Certificate,
    graph: Graph,
    package: Package,
    max_stages: int = MAX_STAGES,
) -> bool:
    """Return whether the bound was confirmed; False if it cannot be settled here.

    That is where it takes too long, and where a method that looks at the live tensors
    and at all of triangle may know more than the stages one by one tell.

    Raises
    ------
    VerificationError
        The certificate is for another graph or package, or a sequence of stages beats
        the bound.
    """
    raise_if_foreign(certificate, graph, package)
    return is_settled(certificate, graph, package, max_stages)


def is_settled(
    certificate: Certificate,
    graph: Graph,
    package: Package,
    max_stages: int = MAX_STAGES,
) -> bool:
    """Return what :func:`check` does for a certificate of this graph and package."""
    if certificate.bound_s == 0:
        return True
    if graph.num_ops > MAX_OPS:
        return False
    stages = Stages(graph, package, certificate.rules)
    refuted = is_refuted(stages, certificate.bound_s * BELOW, max_stages)
    if refuted is False and not _may_know_more(certificate.method, package):
        raise VerificationError(
            f"the bound of {certificate.bound_s} s is not confirmed: stages that each "
            "take less run the whole graph"
        )
    return refuted is True


def raise_if_foreign(certificate: Certificate, graph: Graph, package: Package) -> None:
    """Refuse a certificate that is not one for this graph and package.

    Raises
    ------
    VerificationError
        Another graph or package, an unknown method, or rules for what is not there.
    """
    if certificate.method not in PROOFS:
        raise VerificationError(
            f"the method of the certificate is {certificate.method!r}, and it is one "
            f"of {', '.join(PROOFS)}"
        )
    if certificate.graph_sha256 != content_hash(graph):
        raise VerificationError("the certificate is for another graph")
    if certificate.package_sha256 != hardware.content_hash(package):
        raise VerificationError("the certificate is for another package")
    if len(certificate.ranges) not in (0, package.num_chips + 1):
        raise VerificationError(
            f"the certificate has {len(certificate.ranges)} ranges, and a package of "
            f"{package.num_chips} chips has {package.num_chips + 1}"
        )
    _raise_if_unknown(certificate.rules, graph, package)


def _may_know_more(method: str, package: Package) -> bool:
    whole_rules = package.has_rule("memory") or package.has_rule("triangle")
    return whole_rules and method in WHOLE_METHODS


def _raise_if_unknown(rules: UserDemands, graph: Graph, package: Package) -> None:
    placed = {
        name
        for name, copied in zip(graph.op_name, graph.op_replicable, strict=True)
        if not copied
    }
    for name in [*rules.pins, *chain(*rules.together, *rules.apart)]:
        if name not in placed:
            raise VerificationError(
                f"the certificate has a rule for op {name!r}, which is none of the "
                "graph's that need a chip"
            )
    for name, chip in rules.pins.items():
        if not 0 <= chip < package.num_chips:
            raise VerificationError(
                f"the certificate pins op {name!r} to chip {chip}, and the package has "
                f"chips 0 to {package.num_chips - 1}"
            )


@dataclass(frozen=True, slots=True)
class _Tensor:
    made: int
    readers: int
    size: int
    is_output: bool


class Stages:
    """What a stage costs: sets of ops are Python integers, bit v for op v.

    A stage is what lies between two ideals; a replicable op is in none.
    """

    def __init__(self, graph: Graph, package: Package, rules: UserDemands) -> None:
        self.graph, self.package, self.rules = graph, package, rules
        index = {name: op for op, name in enumerate(graph.op_name)}
        self.ops = [v for v in range(graph.num_ops) if not graph.op_replicable[v]]
        self.everything = sum(1 << v for v in self.ops)
        self._users = self._needed_by()
        self.tensors = self._tensors()
        self._host = [
            (self._set(graph.consumers.row(t).tolist()), int(graph.tensor_bytes[t]))
            for t in range(graph.num_tensors)
            if graph.tensor_producer[t] == HOST
        ]
        self._weights = [
            (self._set(graph.users_of.row(w).tolist()), int(graph.weight_bytes[w]))
            for w in range(graph.num_weights)
        ]
        self.before = self._all_before()
        self.pins = [(index[op], chip) for op, chip in rules.pins.items()]
        groups = [[index[op] for op in group] for group in rules.together]
        groups += [list(group) for group in graph.together]
        self.groups = [self._bits(group) for group in groups]
        self._behind = self._through_groups(graph.successors)
        self._ahead = self._through_groups(graph.predecessors)
        self._apart = [self._bits([index[a], index[b]]) for a, b in rules.apart]
        self._seconds = {
            chip: [op_seconds(graph, v, chip) for v in range(graph.num_ops)]
            for chip in set(package.chips)
        }
        self.least_s = [
            min(column) for column in zip(*self._seconds.values(), strict=True)
        ]
        self._links = package.links if package.topology == "ring" else ()

    def _bits(self, ops: list[int]) -> int:
        return sum({1 << v for v in ops})

    def _needed_by(self) -> dict[int, int]:
        """Return, for each replicable op, the ops that need it."""
        users: dict[int, int] = {}
        for v in range(self.graph.num_ops - 1, -1, -1):
            if self.graph.op_replicable[v]:
                users[v] = 0
                for reader in self.graph.successors.row(v).tolist():
                    users[v] |= users.get(reader, 1 << reader)
        return users

    def _set(self, ops: list[int]) -> int:
        """Return the ops of stages that need one of ``ops``."""
        found = 0
        for v in ops:
            found |= self._users.get(v, 1 << v)
        return found

    def _tensors(self) -> list[_Tensor]:
        graph = self.graph
        return [
            _Tensor(
                1 << int(graph.tensor_producer[t]),
                self._set(graph.consumers.row(t).tolist()),
                int(graph.tensor_bytes[t]),
                bool(graph.tensor_is_output[t]),
            )
            for t in range(graph.num_tensors)
            if graph.tensor_producer[t] != HOST
            and not graph.op_replicable[graph.tensor_producer[t]]
        ]

    def _all_before(self) -> dict[int, int]:
        """Return all ops before each op."""
        before: dict[int, int] = {}
        for v in self.ops:
            before[v] = 0
            for u in self.graph.predecessors.row(v).tolist():
                if u in before:
                    before[v] |= before[u] | 1 << u
        return before

    def _through_groups(self, edges: Csr) -> dict[int, int]:
        """Return all ops that a walk reaches which may change ops within a group."""
        unit = {v: 1 << v for v in self.ops}
        changed = True
        while changed:
            changed = False
            for group in self.groups:
                inside = [v for v in self.ops if group >> v & 1]
                joined = group
                for v in inside:
                    joined |= unit[v]
                for v in inside:
                    changed |= unit[v] != joined
                    unit[v] = joined
        members = {
            v: [w for w in self.ops if unit[v] >> w & 1]
            for v in self.ops
            if unit[v] != 1 << v
        }
        reached = dict.fromkeys(self.ops, 0)
        changed = True
        while changed:
            changed = False
            for v in self.ops:
                found = reached[v]
                for w in members.get(v, (v,)):
                    for s in edges.row(w).tolist():
                        found |= reached.get(s, 0) | unit.get(s, 0)
                changed |= found != reached[v]
                reached[v] = found
        return reached

    def may_stand_behind(self, level: int, inside: int) -> bool:
        """Return whether chips 0 to ``level`` - 1 may hold exactly ``inside``."""
        for v, pinned in self.pins:
            if (pinned < level) != bool(inside >> v & 1):
                return False
        return all(group & inside in (0, group) for group in self.groups)

    def hop_s(self, hop: int, inside: int) -> float:
        """Return the time of a hop with ``inside`` before it; 0 without a limit."""
        if not self.package.link_limit or hop >= len(self._links):
            return 0.0
        size = sum(
            t.size for t in self.tensors if t.made & inside and t.readers & ~inside
        )
        return size / self._links[hop].bandwidth_bytes_per_s

    def fits(self, kind: Chip, low: int, high: int, limit_s: float) -> bool:
        """Return whether a chip can run what ``high`` has beyond ``low`` in time."""
        stage = high & ~low
        seconds = self._seconds[kind]
        runs = [v for v in self.ops if stage >> v & 1]
        runs += [v for v, users in self._users.items() if users & stage]
        compute_s = math.fsum(seconds[v] for v in runs)
        if compute_s > limit_s or any(pair & stage == pair for pair in self._apart):
            return False
        traffic = sum(size for users, size in self._host if users & stage)
        relay = self.package.long_edges == "relay"
        for t in self.tensors:
            beyond = t.readers & ~high
            if t.made & low:
                traffic += t.size * bool(t.readers & stage or (relay and beyond))
                traffic += t.size * bool(relay and beyond)
            elif t.made & stage:
                traffic += t.size * bool(beyond or t.is_output)
        transfer_s = traffic / kind.io_bandwidth_bytes_per_s
        serial = self.package.io == "serial"
        stage_s = compute_s + transfer_s if serial else max(compute_s, transfer_s)
        if stage_s > limit_s:
            return False
        if self.package.has_rule("memory"):
            stored = sum(size for users, size in self._weights if users & stage)
            if stored + 2 * traffic > kind.memory_bytes:
                return False
        return not (self.package.has_rule("triangle") and self._jumps(low, high))

    def _jumps(self, low: int, high: int) -> bool:
        """Return whether an edge jumps over a stage with an op between its ends."""
        stage = high & ~low
        for u in self.ops:
            if low >> u & 1 and self._behind[u] & stage:
                for v in self.graph.successors.row(u).tolist():
                    if not high >> v & 1 and self._behind[u] & self._ahead[v] & stage:
                        return True
        return False


def is_refuted(
    stages: Stages, limit_s: float, max_stages: int = MAX_STAGES
) -> bool | None:
    """Return whether no chain of ideals keeps every stage to ``limit_s``.

    None if there are too many ideals or stages to tell. What is not looked at (live
    tensors, what triangle says of more than one edge) could only refute more.
    """
    ideals = _ideals(stages, max_stages // STAGES_PER_IDEAL)
    if ideals is None:
        return None
    allowed = {inside: _levels(stages, inside, limit_s) for inside in ideals}
    order = sorted(
        (inside for inside in ideals if allowed[inside]), key=lambda i: i.bit_count()
    )
    reach: dict[int, set[int]] = {inside: set() for inside in order}
    if 0 not in reach:
        return True
    reach[0].add(0)
    may_skip = not (stages.rules.all_chips or stages.package.has_rule("no_skip"))
    looked = 0
    for i, low in enumerate(order):
        if may_skip and low != stages.everything:
            for level in sorted(allowed[low]):
                if level - 1 in reach[low]:
                    reach[low].add(level)
        for high in order[i + 1 :] if reach[low] else ():
            new = {b for b in allowed[high] - reach[high] if b - 1 in reach[low]}
            if low & ~high or not new:
                continue
            looked += 1
            if looked > max_stages:
                return None
            kinds = {stages.package.chips[b - 1] for b in new}
            fit = {kind for kind in kinds if stages.fits(kind, low, high, limit_s)}
            reach[high] |= {b for b in new if stages.package.chips[b - 1] in fit}
    ends = reach.get(stages.everything, set())
    if stages.rules.all_chips:
        ends &= {stages.package.num_chips}
    return not ends


def _levels(stages: Stages, inside: int, limit_s: float) -> set[int]:
    """Return the numbers of chips that can have run exactly ``inside``."""
    num_chips = stages.package.num_chips
    done_s, left_s = _work(stages, inside), _work(stages, stages.everything & ~inside)
    most_s = limit_s * (1 + 1e-9)
    return {
        b
        for b in range(num_chips + 1)
        if done_s <= b * most_s
        and left_s <= (num_chips - b) * most_s
        and stages.may_stand_behind(b, inside)
        and (b == 0 or stages.hop_s(b - 1, inside) <= limit_s)
    }


def _work(stages: Stages, inside: int) -> float:
    return math.fsum(stages.least_s[v] for v in stages.ops if inside >> v & 1)


def _ideals(stages: Stages, most: int) -> list[int] | None:
    """Return every set of ops with all ops before them; None if more than ``most``."""
    found: list[int] = []
    for inside in _walk(stages):
        found.append(inside)
        if len(found) > most:
            return None
    return found


def _walk(stages: Stages) -> Iterator[int]:
    """Yield each ideal once, by adding ops in ascending order."""
    unfinished = [(0, 0)]
    while unfinished:
        inside, first = unfinished.pop()
        yield inside
        for place in range(first, len(stages.ops)):
            v = stages.ops[place]
            if not stages.before[v] & ~inside:
                unfinished.append((inside | 1 << v, place + 1))
