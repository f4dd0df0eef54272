"""import_onnx: the main path of the ONNX frontend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcmpart.frontends.onnx.assemble import assemble
from mcmpart.frontends.onnx.dims import Dims
from mcmpart.frontends.onnx.domains import short_domain
from mcmpart.frontends.onnx.initializers import Initializers
from mcmpart.frontends.onnx.inputs import main_scope
from mcmpart.frontends.onnx.model import open_model
from mcmpart.frontends.onnx.qdq import group_qdq
from mcmpart.frontends.onnx.reader import Reader, Step
from mcmpart.frontends.onnx.records import Record, record_of, split_dead
from mcmpart.frontends.onnx.scope import Context
from mcmpart.frontends.onnx.structure import Block, block_of, kind_of
from mcmpart.frontends.onnx.verdict import check_costs, check_resolved, kind_keys
from mcmpart.frontends.report import (
    ImportReport,
    Sentences,
    UnruledKind,
    counted,
    shortened,
)
from mcmpart.graph import Graph


def import_onnx(
    path: Path, *, dims: Mapping[str, int], op_costs: Mapping[str, int], strict: bool
) -> tuple[Graph, ImportReport]:
    """Return the graph of the model in ``path``, and what was found on the way.

    Parameters
    ----------
    dims
        Sizes of symbolic dimensions by name; an open one that is missing becomes 1,
        as an assumption.
    op_costs
        FLOPs of one op, by kind (``domain::Kind``).
    strict
        Refuse op kinds that have no rule, instead of assuming.

    Raises
    ------
    InputError
        The file is no usable model, or a shape in it cannot be found.
    """
    assumptions, notes = Sentences(), Sentences()
    model = open_model(path, assumptions)
    graph = model.proto.graph
    context = Context(
        dims=Dims(dims, assumptions),
        initializers=Initializers(path.parent, assumptions),
        functions={
            (short_domain(f.domain), f.name, f.overload): f
            for f in model.proto.functions
        },
        op_costs=kind_keys(op_costs),
        assumptions=assumptions,
        notes=notes,
    )
    scope = main_scope(model, context)
    inputs = [value for value in scope.values.values() if value.tensor]
    outputs = [value.name for value in graph.output]
    block = block_of(graph, list(scope.values), outputs)
    steps = list(Reader(context).steps(block, scope))
    found = [(name, scope.get(name, "the model's outputs")) for name in outputs]
    check_resolved(context)
    check_costs(context, {kind_of(step.node.proto) for step in steps}, strict=strict)
    context.dims.check_all_used()
    records = [record_of(step) for step in steps if not step.outcome.is_constant]
    live, idle = split_dead(records, outputs)
    _note_order(block, idle, notes)
    grouped = group_qdq(live, frozenset(outputs), assumptions, notes)
    built = assemble(model, context, inputs, found, grouped)
    return built, _report(context, block, steps, grouped.records)


def _note_order(block: Block, idle: Sequence[Record], notes: Sentences) -> None:
    if not block.was_sorted:
        notes.add("the nodes were not in topological order: sorted")
    if block.dead:
        names = [block.keys[i] for i in block.dead]
        notes.add(
            f"{counted(len(names), 'dead op')} dropped, which no output needs: "
            f"{shortened(names)}"
        )
    if idle:
        names = [record.key for record in idle]
        notes.add(
            f"{counted(len(names), 'op')} dropped, whose values nobody needs once "
            f"constants are folded: {shortened(names)}"
        )


def _report(
    context: Context, block: Block, steps: Sequence[Step], records: Sequence[Record]
) -> ImportReport:
    works = [record.work for record in records]
    return ImportReport(
        num_nodes=len(block.nodes),
        num_ops=len(records),
        num_folded=sum(step.outcome.is_constant for step in steps),
        ops_of_kind=tuple(Counter(r.kind for r in records).most_common()),
        ruled_ops=sum(work.is_ruled for work in works),
        work=sum(work.flops + work.bytes for work in works),
        ruled_work=sum(work.ruled for work in works),
        unruled=tuple(
            UnruledKind(kind, len(places), tuple(places[:3]))
            for kind, places in context.unruled.items()
        ),
        assumptions=context.assumptions.lines(),
        notes=context.notes.lines(),
        dims=context.dims.settings(),
    )
