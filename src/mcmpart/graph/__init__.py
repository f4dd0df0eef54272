"""The computation graph: data structure, builder, orders, files."""

from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec, unique_names
from mcmpart.graph.file import content_hash, read_graph, write_graph
from mcmpart.graph.graph import HOST, Csr, Graph, Source

__all__ = [
    "HOST",
    "Csr",
    "Graph",
    "GraphBuilder",
    "OpSpec",
    "Source",
    "TensorSpec",
    "content_hash",
    "read_graph",
    "unique_names",
    "write_graph",
]
