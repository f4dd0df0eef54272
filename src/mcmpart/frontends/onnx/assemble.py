"""From ops by name to a Graph, with every guess on its list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcmpart._version import __version__
from mcmpart.frontends.onnx.model import OnnxModel
from mcmpart.frontends.onnx.qdq import Grouped
from mcmpart.frontends.onnx.records import Record
from mcmpart.frontends.onnx.scope import Context
from mcmpart.frontends.onnx.values import Value
from mcmpart.graph import Graph, GraphBuilder, OpSpec, Source, TensorSpec


@dataclass(slots=True)
class _Weights:
    """The weights that ops read, each once, none with the name of a tensor."""

    taken: set[str]
    values: dict[str, Value] = field(default_factory=dict)
    _name_of: dict[str, str] = field(default_factory=dict)

    def use(self, value: Value) -> str:
        """Return the weight's name in the graph."""
        name = self._name_of.get(value.weight)
        if name is None:
            name = value.weight
            # A weight of a body is called by its path; a tensor may have that name.
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self._name_of[value.weight] = name
        # A constant of a function may differ between calls: room for the largest.
        if name not in self.values or self.values[name].bytes < value.bytes:
            self.values[name] = value
        return name


def assemble(
    model: OnnxModel,
    context: Context,
    inputs: Sequence[Value],
    outputs: Sequence[tuple[str, Value]],
    grouped: Grouped,
) -> Graph:
    """Return the graph of the ops in ``grouped``.

    Parameters
    ----------
    inputs
        The model's inputs that come from the host.
    outputs
        Name and value of each model output.
    """
    builder = GraphBuilder(
        model.path.stem,
        Source("onnx", model.path.name, model.sha256, f"mcmpart {__version__}"),
    )
    taken = {value.tensor for value in inputs}
    taken.update(name for record in grouped.records for name, _ in record.outputs)
    weights = _Weights(taken)
    for value in inputs:
        builder.host_tensor(_spec(context, value.tensor, value))
    for record in grouped.records:
        builder.op(_op(context, record, weights))
    for name, value in outputs:
        builder.output(weights.use(value) if value.weight else name)
    for name, value in weights.values.items():
        spec = _spec(context, name, value)
        stored = context.initializers.stored_bytes.get(value.weight, spec.bytes)
        builder.weight(replace(spec, bytes=stored))
    for group in grouped.together:
        builder.together(group)
    for sentence in context.assumptions.lines():
        builder.assume(sentence)
    return builder.build()


def _op(context: Context, record: Record, weights: _Weights) -> OpSpec:
    return OpSpec(
        name=record.key,
        kind=record.kind,
        dtype=record.dtype,
        flops=record.work.flops,
        bytes=record.work.bytes,
        gemm=record.work.gemm,
        reads=record.reads,
        weights=tuple(weights.use(value) for value in record.weights),
        writes=tuple(_spec(context, name, value) for name, value in record.outputs),
    )


def _spec(context: Context, name: str, value: Value) -> TensorSpec:
    if value.dtype == "string":
        context.assumptions.add(
            "an element of a string tensor is counted as an 8-byte reference", name
        )
    if value.container == "map":
        context.assumptions.add("a map is counted as the tensor of its values", name)
    shape = value.type.shape if value.type else value.shape
    return TensorSpec(name, value.bytes, value.dtype, shape)
