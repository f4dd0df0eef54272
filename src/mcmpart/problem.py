"""Problem: a graph, a package and the user's rules, checked once and immutable."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from mcmpart.blocks import Blocks, LiveArrays, make_blocks, make_live_arrays
from mcmpart.cost.table import CostTable, cost_table
from mcmpart.errors import InfeasibleError, InputError
from mcmpart.graph.graph import Float64, Graph, Int32, Int64
from mcmpart.hardware.package import Package
from mcmpart.rewrite.coarsen import coarsen
from mcmpart.rewrite.fold import fold_weights
from mcmpart.rewrite.precision import set_precision
from mcmpart.rewrite.replicate import mark_replicable

REPLICA_THRESHOLD = 0.002
"""Share of the graph's cost below which an op may be replicable by default."""


class PackageArrays(NamedTuple):
    """What the compiled kernels read of a package.

    Attributes
    ----------
    chip_class
        ``[C] int32``: row of the cost table for each chip.
    io_bytes_per_s, memory_bytes
        ``[C]`` float64 and int64.
    class_io_bytes_per_s
        ``[K] float64``: the same by class.
    hop_bytes_per_s
        ``[max(C - 1, 0)] float64``.
    serial_io, relay, link_limit, no_skip, triangle, memory
        The package's switches.
    """

    chip_class: Int32
    io_bytes_per_s: Float64
    memory_bytes: Int64
    class_io_bytes_per_s: Float64
    hop_bytes_per_s: Float64
    serial_io: bool
    relay: bool
    link_limit: bool
    no_skip: bool
    triangle: bool
    memory: bool


@dataclass(frozen=True, slots=True)
class UserRules:
    """What a user demands beside the package's rules, by op name.

    Attributes
    ----------
    pins
        Op name to chip.
    together
        Groups of ops that must share a chip, beside the graph's own groups.
    apart
        Pairs of ops that must not share a chip.
    all_chips
        Every chip must get an op.
    """

    pins: Mapping[str, int] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    all_chips: bool = False

    def __post_init__(self) -> None:
        # A copy that the caller cannot change; a mapping proxy could not be pickled.
        object.__setattr__(self, "pins", dict(self.pins))

    @property
    def binds_chips(self) -> bool:
        """Whether anything is demanded of which chips are used, and by which op."""
        return bool(self.pins or self.apart or self.all_chips)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The question which chip should run which op, for the fastest slowest stage.

    Parameters
    ----------
    model
        The computation graph as imported.
    package
        The multi-chip module.
    precision
        Dtype that float tensors are deployed in; ``"auto"`` keeps the graph's own
        where the package gives it a peak and else takes the package's first one.
    user
        What the user demands beside the package's rules.
    replica_threshold
        Largest share of the graph's compute and weight bytes that a replicable op's
        ancestors may cost (docs/concepts.md, "Replicated ops"); 0 replicates only what
        the model marks itself. None is ``REPLICA_THRESHOLD``, and leaves ``solve`` free
        to try larger ones.

    Attributes
    ----------
    graph
        The graph after the rewrites: weight-only ops folded, precision set, replicable
        ops marked. Partitions index its ops.
    costs
        Seconds of each op on each class of chip.
    ops, blocks
        The graph with one op a block, and with views and groups merged: what
        evaluation and what searches work on.

    Raises
    ------
    InputError
        An op name, a chip or a precision that does not exist.
    InfeasibleError
        The user's rules contradict each other.
    """

    model: Graph
    package: Package
    precision: str = "auto"
    user: UserRules = field(default_factory=UserRules)
    replica_threshold: float | None = None
    graph: Graph = field(init=False, repr=False)
    costs: CostTable = field(init=False, repr=False)
    ops: Blocks = field(init=False, repr=False)
    blocks: Blocks = field(init=False, repr=False)
    live: LiveArrays = field(init=False, repr=False)
    package_arrays: PackageArrays = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for value, kind in ((self.model, Graph), (self.package, Package)):
            if not isinstance(value, kind):
                raise InputError(
                    f"a problem needs a {kind.__name__} and got {value!r:.60}: make it "
                    "with load_graph and load_package"
                )
        threshold = self.replica_threshold
        if threshold is None:
            threshold = REPLICA_THRESHOLD
        if not 0 <= threshold <= 1:
            raise InputError(
                f"replica_threshold is {threshold}: give a share from 0 to 1"
            )
        peaks = tuple(name for name, _ in self.package.classes[0].peak_ops_per_s)
        graph = set_precision(fold_weights(self.model), self.precision, peaks)
        names = _OpNames(graph)
        pin_of_op = {
            names.index(op, "pin"): chip for op, chip in self.user.pins.items()
        }
        self._check_chips()
        groups = (
            *graph.together,
            *(
                tuple(names.index(op, "together") for op in g)
                for g in self.user.together
            ),
        )
        apart = [
            (names.index(a, "apart"), names.index(b, "apart"))
            for a, b in self.user.apart
        ]
        bound_ops = frozenset(pin_of_op).union(*apart)
        costs = cost_table(graph, self.package)
        graph = mark_replicable(
            graph,
            costs.op_s.min(axis=0),
            threshold=threshold,
            keep=bound_ops.union(*groups),
        )
        self._set("graph", graph)
        self._set("costs", costs)
        each_op = np.where(graph.op_replicable, -1, np.cumsum(~graph.op_replicable) - 1)
        # A view that is a block of its own can fill a chip that a rule wants used.
        merge_views = not (pin_of_op or self.user.all_chips)
        merged = coarsen(graph, groups, keep=bound_ops, merge_views=merge_views)
        _check_user_rules(graph, merged, pin_of_op, apart)
        for name, block_of in (("ops", each_op.astype(np.int32)), ("blocks", merged)):
            blocks = make_blocks(
                graph,
                costs.op_s,
                block_of,
                pin_of_op=pin_of_op,
                together=groups,
                apart=apart,
            )
            self._set(name, blocks)
        self._set("live", make_live_arrays(graph))
        self._set("package_arrays", _package_arrays(self.package))

    @property
    def num_chips(self) -> int:
        """Number of chips C."""
        return self.package.num_chips

    @property
    def chips_are_alike(self) -> bool:
        """Whether every chip, its hops and what is pinned to it are as the next's."""
        package = self.package_arrays
        return (
            np.unique(package.chip_class).size == 1
            and (not package.link_limit or np.unique(package.hop_bytes_per_s).size <= 1)
            and not self.user.pins
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Every guess made on the way here, one sentence each."""
        return (*self.graph.assumptions, *self.costs.assumptions)

    def with_costs(self, op_s: Float64) -> Problem:
        """Return the same problem with other op times, all else shared.

        Parameters
        ----------
        op_s
            ``[C, V] float64``: seconds of each op of :attr:`graph` on each chip.

        Notes
        -----
        Each chip becomes a class of its own in ``costs`` and ``package_arrays``. Which
        ops are replicated or merged into blocks stays, whatever they cost now.
        """
        other = copy.copy(self)
        other._set("costs", CostTable(op_s.copy(), self.costs.assumptions))
        for name, blocks in (("ops", self.ops), ("blocks", self.blocks)):
            first_op, pin = blocks.arrays.first_op, blocks.arrays.pin
            pinned = np.flatnonzero(pin >= 0).tolist()
            other_blocks = make_blocks(
                self.graph,
                op_s,
                blocks.block_of,
                pin_of_op={int(first_op[n]): int(pin[n]) for n in pinned},
                together=map(tuple, first_op[blocks.arrays.same].tolist()),
                apart=map(tuple, first_op[blocks.arrays.apart].tolist()),
            )
            other._set(name, other_blocks)
        arrays = self.package_arrays
        one_each = np.arange(self.num_chips, dtype=np.int32)
        other._set(
            "package_arrays",
            arrays._replace(
                chip_class=one_each, class_io_bytes_per_s=arrays.io_bytes_per_s.copy()
            ),
        )
        return other

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_chips(self) -> None:
        for op, chip in self.user.pins.items():
            if not 0 <= chip < self.num_chips:
                raise InputError(
                    f"op {op!r} is pinned to chip {chip}, and package "
                    f"{self.package.name!r} has chips 0 to {self.num_chips - 1}"
                )


def unmerged_blocks(problem: Problem) -> Blocks:
    """Return blocks in which each op stands for itself, but for groups.

    A proof needs them: a view alone on a chip can be what fills it.
    """
    ops, first_op = problem.ops.arrays, problem.ops.arrays.first_op
    groups = [first_op[pair].tolist() for pair in ops.same]
    pinned = np.flatnonzero(ops.pin >= 0)
    block_of = coarsen(problem.graph, groups, merge_views=False)
    if int(block_of.max(initial=-1)) + 1 == problem.blocks.num_blocks:
        return problem.blocks
    return make_blocks(
        problem.graph,
        problem.costs.op_s,
        block_of,
        pin_of_op={int(first_op[n]): int(ops.pin[n]) for n in pinned},
        together=groups,
        apart=[(int(first_op[a]), int(first_op[b])) for a, b in ops.apart],
    )


class _OpNames:
    """Looks ops up by name, and says what was meant when there is none."""

    def __init__(self, graph: Graph) -> None:
        self._index = {name: i for i, name in enumerate(graph.op_name)}

    def index(self, name: str, rule: str) -> int:
        """Return the op's index."""
        found = self._index.get(name)
        if found is None:
            near = get_close_matches(name, self._index, n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise InputError(
                f"the rule {rule!r} names op {name!r}, which the graph does not have "
                f"(ops that read only weights are folded){hint}"
            )
        return found


def _check_user_rules(
    graph: Graph,
    block_of: Int32,
    pin_of_op: dict[int, int],
    apart: list[tuple[int, int]],
) -> None:
    pinned: dict[int, int] = {}
    for op, chip in pin_of_op.items():
        other = pinned.setdefault(int(block_of[op]), op)
        if pin_of_op[other] != chip:
            raise InfeasibleError(
                "pin",
                f"no plan exists: {graph.op_name[other]!r} is pinned to chip "
                f"{pin_of_op[other]} and {graph.op_name[op]!r} to chip {chip}, but "
                "they must share a chip: drop one pin or the together group",
            )
    for a, b in apart:
        if block_of[a] == block_of[b]:
            raise InfeasibleError(
                "apart",
                f"no plan exists: {graph.op_name[a]!r} and {graph.op_name[b]!r} must "
                "be apart, but they must also share a chip: drop one of the two rules",
            )


def _package_arrays(package: Package) -> PackageArrays:
    return PackageArrays(
        chip_class=np.array(package.chip_class, dtype=np.int32),
        io_bytes_per_s=np.array(
            [chip.io_bandwidth_bytes_per_s for chip in package.chips], dtype=np.float64
        ),
        memory_bytes=np.array(
            [chip.memory_bytes for chip in package.chips], dtype=np.int64
        ),
        class_io_bytes_per_s=np.array(
            [chip.io_bandwidth_bytes_per_s for chip in package.classes],
            dtype=np.float64,
        ),
        hop_bytes_per_s=np.array(
            [link.bandwidth_bytes_per_s for link in package.links], dtype=np.float64
        ),
        serial_io=package.io == "serial",
        relay=package.long_edges == "relay",
        link_limit=package.link_limit and package.topology == "ring",
        no_skip=package.has_rule("no_skip"),
        triangle=package.has_rule("triangle"),
        memory=package.has_rule("memory"),
    )
