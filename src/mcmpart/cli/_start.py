"""``--start``: the partition that a plan of the same model holds."""

from __future__ import annotations

import numpy as np

from mcmpart.errors import InputError
from mcmpart.graph import Graph
from mcmpart.partition import NO_CHIP, Partition
from mcmpart.plan import Plan


def partition_of(plan: Plan, graph: Graph) -> Partition:
    """Return the plan's placement of the ops of ``graph``, by name.

    An op that was replicated then and is not now goes to the first chip that had it.

    Raises
    ------
    InputError
        The plan is not one of this graph's ops.
    """
    placed = {
        name: int(chip)
        for chip, names in reversed(plan.replicas.items())
        for name in names
    }
    placed |= plan.chip_of
    lost = [
        name
        for name, copied in zip(graph.op_name, graph.op_replicable, strict=True)
        if name not in placed and not copied
    ]
    extra = sorted(placed.keys() - set(graph.op_name))
    if lost or extra:
        first = f"does not place op {lost[0]!r}" if lost else f"places op {extra[0]!r}"
        raise InputError(
            f"the plan to start from is not one of this model: it {first}; give a plan "
            "of the same model, read with the same options"
        )
    chip_of = [placed.get(name, NO_CHIP) for name in graph.op_name]
    return Partition(graph, np.array(chip_of, dtype=np.int32))
