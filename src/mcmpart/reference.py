"""The cost model in plain Python: the slow twin that plans are verified with.

Nothing here is shared with the compiled evaluation or with any search: it works on the
graph and the package alone, op by op and tensor by tensor, as docs/concepts.md says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mcmpart.graph.graph import HOST, Graph
from mcmpart.hardware.package import Chip, Package
from mcmpart.loads import ChipLoad, HopLoad


@dataclass(frozen=True, slots=True)
class Reference:
    """Every figure of one partition.

    Attributes
    ----------
    chips, hops
        All chips, used or not; hops of a ring only.
    arcs
        Arc of the chip graph -> one edge (u, v) that makes it.
    """

    chips: tuple[ChipLoad, ...]
    hops: tuple[HopLoad, ...]
    arcs: dict[tuple[int, int], tuple[int, int]]
    bottleneck_s: float
    latency_s: float
    energy_j: float

    @property
    def used(self) -> list[int]:
        """Chips with at least one op, ascending."""
        return [load.chip for load in self.chips if load.ops]


def op_seconds(graph: Graph, op: int, chip: Chip) -> float:
    """Return t(v, c): measured, zero for views, else overhead plus the roofline."""
    measured = float(graph.op_seconds[op])
    if not math.isnan(measured):
        return measured
    flops, size = int(graph.op_flops[op]), int(graph.op_bytes[op])
    if flops == 0 and size == 0:
        return 0.0
    peak = chip.peak(graph.op_dtype[op]) or chip.peak_ops_per_s[0][1]
    return chip.op_overhead_s + max(
        flops / peak, size / chip.memory_bandwidth_bytes_per_s
    )


def recompute(graph: Graph, package: Package, chip_of: Sequence[int]) -> Reference:
    """Return every figure of the partition ``chip_of`` (chips of replicas ignored).

    The partition may break any rule but ``dataflow``.
    """
    places = _places(graph, chip_of)
    runs: list[list[int]] = [[] for _ in package.chips]
    for op, chips in enumerate(places):
        for c in chips:
            runs[c].append(op)
    own = [0] * package.num_chips
    for op, chips in enumerate(places):
        if not graph.op_replicable[op]:
            own[chips[0]] += 1
    received, sent, hops, pairs = _traffic(graph, package, places, own)
    loads = [
        _chip_load(graph, package, c, runs[c], own[c], received[c], sent[c])
        for c in range(package.num_chips)
    ]
    links = [
        HopLoad(i, hops[i], hops[i] / package.links[i].bandwidth_bytes_per_s)
        for i in range(package.num_chips - 1)
        if package.topology == "ring"
    ]
    slowest = [load.stage_s for load in loads]
    if package.link_limit:
        slowest += [link.link_s for link in links]
    return Reference(
        chips=tuple(loads),
        hops=tuple(links),
        arcs=_arcs(graph, places),
        bottleneck_s=max(slowest),
        latency_s=_latency_s(package, loads, links, pairs),
        energy_j=_energy_j(graph, package, runs, links, pairs),
    )


def _places(graph: Graph, chip_of: Sequence[int]) -> list[list[int]]:
    """Return the chips that compute each op: one, or all that need a replica."""
    places: list[list[int]] = [[int(c)] for c in chip_of]
    for op in range(graph.num_ops - 1, -1, -1):
        if graph.op_replicable[op]:
            readers = graph.successors.row(op).tolist()
            places[op] = sorted({c for reader in readers for c in places[reader]})
    return places


def _traffic(
    graph: Graph, package: Package, places: list[list[int]], own: list[int]
) -> tuple[list[int], list[int], list[int], dict[tuple[int, int], int]]:
    """Return bytes in and out per chip, per hop, and per pair of chips."""
    received = [0] * package.num_chips
    sent = [0] * package.num_chips
    hops = [0] * package.num_chips
    pairs: dict[tuple[int, int], int] = defaultdict(int)
    for t in range(graph.num_tensors):
        producer, size = int(graph.tensor_producer[t]), int(graph.tensor_bytes[t])
        readers = {c for v in graph.consumers.row(t).tolist() for c in places[v]}
        if producer == HOST:
            for c in readers:
                received[c] += size
            continue
        if graph.op_replicable[producer]:
            continue
        source = places[producer][0]
        targets = readers - {source}
        for c in targets:
            received[c] += size
            pairs[source, c] += size
        if targets or graph.tensor_is_output[t]:
            sent[source] += size
        last = max(targets, default=source)
        for c in range(source, last):
            hops[c] += size
        if package.long_edges == "relay":
            for c in range(source + 1, last):
                if own[c]:
                    sent[c] += size
                    received[c] += 0 if c in targets else size
    return received, sent, hops, dict(pairs)


def _chip_load(
    graph: Graph,
    package: Package,
    c: int,
    ops: list[int],
    own: int,
    received: int,
    sent: int,
) -> ChipLoad:
    chip = package.chips[c]
    compute_s = math.fsum(op_seconds(graph, op, chip) for op in ops)
    transfer_s = (received + sent) / chip.io_bandwidth_bytes_per_s
    stored = {w for op in ops for w in graph.weights_of.row(op).tolist()}
    weight_bytes = sum(int(graph.weight_bytes[w]) for w in stored)
    buffer_bytes = 2 * (received + sent)
    peak = _peak_live_bytes(graph, ops)
    serial = package.io == "serial"
    return ChipLoad(
        chip=c,
        ops=own,
        compute_s=compute_s,
        in_bytes=received,
        out_bytes=sent,
        transfer_s=transfer_s,
        stage_s=compute_s + transfer_s if serial else max(compute_s, transfer_s),
        weight_bytes=weight_bytes,
        buffer_bytes=buffer_bytes,
        peak_live_bytes=peak,
        memory_bytes=weight_bytes + buffer_bytes + peak,
    )


def _peak_live_bytes(graph: Graph, ops: list[int]) -> int:
    """Return the largest sum of live tensors while ``ops`` run in order on one chip."""
    last_reader: dict[int, int] = {}
    for op in ops:
        for t in (*graph.writes.row(op).tolist(), *graph.reads.row(op).tolist()):
            last_reader[t] = op
    freed_after: dict[int, int] = defaultdict(int)
    now = peak = 0
    for op in ops:
        for t in graph.writes.row(op).tolist():
            now += int(graph.tensor_bytes[t])
            freed_after[last_reader[t]] += int(graph.tensor_bytes[t])
        peak = max(peak, now)
        now -= freed_after[op]
    return peak


def _arcs(
    graph: Graph, places: list[list[int]]
) -> dict[tuple[int, int], tuple[int, int]]:
    arcs: dict[tuple[int, int], tuple[int, int]] = {}
    for u in range(graph.num_ops):
        if graph.op_replicable[u]:
            continue
        for v in graph.successors.row(u).tolist():
            arc = (places[u][0], places[v][0])
            if arc[0] != arc[1]:
                arcs.setdefault(arc, (u, v))
    return arcs


def _latency_s(
    package: Package,
    loads: list[ChipLoad],
    links: list[HopLoad],
    pairs: dict[tuple[int, int], int],
) -> float:
    stages = [load.compute_s + load.transfer_s for load in loads]
    if package.topology == "ring":
        hops = [package.links[link.hop].latency_s for link in links if link.bytes]
    else:
        hops = [package.links[0].latency_s for size in pairs.values() if size]
    return math.fsum(stages) + math.fsum(hops)


def _energy_j(
    graph: Graph,
    package: Package,
    runs: list[list[int]],
    links: list[HopLoad],
    pairs: dict[tuple[int, int], int],
) -> float:
    terms = []
    for chip, ops in zip(package.chips, runs, strict=True):
        terms += [int(graph.op_flops[op]) * chip.e_flop_j for op in ops]
        terms += [int(graph.op_bytes[op]) * chip.e_mem_j_per_byte for op in ops]
    if package.topology == "ring":
        terms += [
            link.bytes * package.links[link.hop].e_link_j_per_byte for link in links
        ]
    else:
        terms += [size * package.links[0].e_link_j_per_byte for size in pairs.values()]
    return math.fsum(terms)
