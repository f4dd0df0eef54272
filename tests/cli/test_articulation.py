"""Articulation points: by hand, and against removing each op in turn."""

import numpy as np
import pytest

from mcmpart.cli._articulation import articulation_points
from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.graph import HOST
from mcmpart.graph.synthetic import chain, diamond, random_dag


def build(ops, *, host=("x",), outputs=()):
    """Return the graph of ``name: what it reads``; an op writes ``name + "'"``."""
    builder = GraphBuilder("drawn")
    for name in host:
        builder.host_tensor(TensorSpec(name, 1))
    for name, reads in ops.items():
        made = (TensorSpec(f"{name}'", 1),)
        builder.op(OpSpec(name, "Op", reads=tuple(reads), writes=made))
    for name in outputs:
        builder.output(name)
    return builder.build()


def names_of(graph):
    """Return the names of the articulation points."""
    return [graph.op_name[op] for op in articulation_points(graph)]


def test_chain():
    """In a chain every op is one."""
    assert articulation_points(chain(5)) == [0, 1, 2, 3, 4]


def test_diamond():
    """Between source and sink of a diamond no op is one."""
    assert articulation_points(diamond(3)) == [0, 4]


def test_skip():
    """A skip steps over the ops beside it, not over its two ends."""
    ops = {"a": ["x"], "b": ["a'"], "c": ["b'"], "d": ["c'", "a'"], "e": ["d'"]}
    assert names_of(build(ops, outputs=["e'"])) == ["a", "d", "e"]


def test_input_read_late():
    """An input that a late op reads goes around all ops before it."""
    ops = {"a": ["x"], "b": ["a'"], "c": ["b'", "m"], "d": ["c'"]}
    assert names_of(build(ops, host=("x", "m"), outputs=["d'"])) == ["c", "d"]


def test_output_made_early():
    """An output that an early op writes goes around all ops behind it."""
    ops = {"a": ["x"], "b": ["a'"], "c": ["b'"]}
    assert names_of(build(ops, outputs=["b'", "c'"])) == ["a", "b"]


def test_two_islands():
    """Two islands have no op in common."""
    ops = {"a": ["x"], "b": ["x"], "c": ["a'"]}
    assert names_of(build(ops, outputs=["b'", "c'"])) == []


def test_what_is_on_no_path():
    """Ops that no input reaches, or that reach no output, neither are one nor count."""
    ops = {"k": [], "a": ["x"], "dead": ["a'"], "b": ["a'", "k'"], "c": ["b'"]}
    assert names_of(build(ops, outputs=["c'"])) == ["a", "b", "c"]


def test_without_inputs_and_outputs():
    """Where a graph names none, its first and last ops are its ends."""
    ops = {"a": [], "b": ["a'"], "c": ["a'"], "d": ["b'", "c'"]}
    assert names_of(build(ops, host=())) == ["a", "d"]


def by_removal(graph):
    """Return the ops without which no input reaches an output."""
    reads_host = {
        int(op)
        for tensor, op in zip(graph.use_tensor, graph.use_op, strict=True)
        if graph.tensor_producer[tensor] == HOST
    }
    outputs = {int(op) for op in graph.tensor_producer[graph.tensor_is_output]}

    def joined(removed):
        reached = set()
        for op in range(graph.num_ops):
            fed = reached & set(graph.predecessors.row(op).tolist())
            if op != removed and (op in reads_host or fed):
                reached.add(op)
        return bool(reached & outputs)

    return [op for op in range(graph.num_ops) if not joined(op)]


@pytest.mark.parametrize("seed", range(40))
def test_against_removal(seed):
    """On random graphs they are the ops whose removal parts inputs from outputs."""
    rng = np.random.default_rng(seed)
    graph = random_dag(int(rng.integers(1, 12)), rng, float(rng.uniform(0.1, 0.5)))
    assert articulation_points(graph) == by_removal(graph)
