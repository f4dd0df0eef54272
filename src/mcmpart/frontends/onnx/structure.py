"""The order of a block of nodes: who reads whom, what is dead, what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.domains import short_domain
from mcmpart.graph import unique_names
from mcmpart.graph.order import cycle_in, kahn_order


@dataclass(frozen=True, slots=True)
class Block:
    """The nodes of a graph, a body or a function.

    Attributes
    ----------
    nodes, keys
        In file order; a key is the node's name, made unique and readable.
    order
        Indices of the live nodes in topological order.
    dead
        Indices of the nodes that no output depends on.
    inputs, outputs
        Names of the formal inputs and of the outputs.
    was_sorted
        The file holds the nodes in topological order.
    """

    nodes: tuple[NodeProto, ...]
    keys: tuple[str, ...]
    order: tuple[int, ...]
    dead: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    was_sorted: bool


def kind_of(node: NodeProto) -> str:
    """Return the op kind: ``Relu``, or ``domain::Kind`` outside the default domain.

    Examples
    --------
    >>> from onnx import helper
    >>> kind_of(helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft"))
    'com.microsoft::FastGelu'
    """
    domain = short_domain(node.domain)
    return f"{domain}::{node.op_type}" if domain else str(node.op_type)


def node_keys(nodes: Sequence[NodeProto]) -> list[str]:
    """Return the op name that each node of a main graph has in the imported Graph.

    A node that is folded or dead has a key and no op; the second copy of a
    DequantizeLinear that serves several readers is called ``KEY#2``.
    """
    return unique_names([n.name for n in nodes], [kind_of(n) for n in nodes])


def block_of(
    body: GraphProto | FunctionProto, inputs: Sequence[str], outputs: Sequence[str]
) -> Block:
    """Return the nodes of ``body`` in order.

    Raises
    ------
    InputError
        A tensor is written twice, or the nodes form a cycle.
    """
    nodes = tuple(body.node)
    keys = tuple(node_keys(nodes))
    writer = _writers(nodes, keys, inputs)
    reads = [_names_read(node) for node in nodes]
    edges = [
        (writer[name], i)
        for i, names in enumerate(reads)
        for name in names
        if name in writer
    ]
    order = kahn_order(len(nodes), edges)
    if len(order) < len(nodes):
        cycle = [keys[i] for i in cycle_in(len(nodes), edges)]
        shown = " -> ".join([*cycle[:6], *(["..."] if len(cycle) > 6 else [])])
        raise InputError(
            f"the nodes form a cycle ({shown} -> {cycle[0]}): remove one of its edges"
        )
    live = _live(order, edges, [writer[n] for n in outputs if n in writer])
    return Block(
        nodes=nodes,
        keys=keys,
        order=tuple(i for i in order if i in live),
        dead=tuple(i for i in range(len(nodes)) if i not in live),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        was_sorted=order == sorted(order),
    )


def bodies_of(node: NodeProto) -> list[GraphProto]:
    """Return the sub-graphs that a node holds as attributes."""
    graphs = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            graphs.append(attribute.g)
        elif attribute.type == AttributeProto.GRAPHS:
            graphs.extend(attribute.graphs)
    return graphs


def _names_read(node: NodeProto) -> Iterable[str]:
    """Return what a node reads from its own block, captures of its bodies included."""
    names = dict.fromkeys(name for name in node.input if name)
    for body in bodies_of(node):
        names.update(dict.fromkeys(_captured(body)))
    return names


def _captured(body: GraphProto) -> list[str]:
    own = {value.name for value in body.input}
    own.update(tensor.name for tensor in body.initializer)
    own.update(tensor.values.name for tensor in body.sparse_initializer)
    for node in body.node:
        own.update(node.output)
    read = [name for node in body.node for name in _names_read(node)]
    read += [value.name for value in body.output]
    return [name for name in read if name not in own]


def _writers(
    nodes: Sequence[NodeProto], keys: Sequence[str], inputs: Sequence[str]
) -> dict[str, int]:
    given = set(inputs)
    writer: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            if not name:
                continue
            if name in writer or name in given:
                first = (
                    f"node {keys[writer[name]]!r}"
                    if name in writer
                    else "the inputs or initializers"
                )
                raise InputError(
                    f"the tensor {name!r} is written twice, by {first} and by node "
                    f"{keys[i]!r}: a tensor has one producer; rename one"
                )
            writer[name] = i
    return writer


def _live(
    order: Sequence[int], edges: Iterable[tuple[int, int]], roots: Iterable[int]
) -> set[int]:
    sources_of: list[list[int]] = [[] for _ in order]
    for u, v in edges:
        sources_of[v].append(u)
    live = set(roots)
    for i in reversed(order):
        if i in live:
            live.update(sources_of[i])
    return live
