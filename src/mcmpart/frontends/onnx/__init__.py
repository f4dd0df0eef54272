"""The ONNX frontend: model.onnx -> Graph."""

from mcmpart.frontends.onnx.importer import import_onnx
from mcmpart.frontends.onnx.structure import node_keys

__all__ = ["import_onnx", "node_keys"]
