"""ai.onnx.ml: trees, linear models, support vectors and feature transforms."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.elementwise import SIGMOID, TRANSCENDENTAL
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    ints_attribute,
    length_of_attribute,
    log2_ceil,
    out_bytes,
    out_size,
    per_input,
    per_output,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# Feature, threshold, two children, mode and flag of a node.
_NODE_BYTES = 24
_FLOAT_BYTES = 4


def _samples(op: OpView) -> tuple[int, int]:
    """Return rows and features; a vector is one row."""
    shape = in_shape(op, 0)
    features = dim(shape, -1)
    return (in_size(op, 0) // features if features else 0), features


def _trees(op: OpView) -> OpCost:
    """Walk each sample down each tree, taken as balanced: log2(nodes) comparisons.

    A visit reads one node; the whole forest at most once.
    """
    rows, _ = _samples(op)
    nodes = length_of_attribute(
        op, "nodes_nodeids", "nodes_featureids", "nodes_truenodeids"
    )
    ids = ints_attribute(op, "nodes_treeids") or ints_attribute(op, "tree_roots")
    trees = max(len(set(ids or ())), 1)
    visits = rows * trees * log2_ceil(nodes // trees + 1)
    moved = min(visits, nodes) * _NODE_BYTES + all_bytes(op)
    return OpCost(2 * visits + rows * trees, moved)


def _linear(op: OpView) -> OpCost:
    """Multiply by [features, targets] coefficients, and transform the scores."""
    rows, features = _samples(op)
    coefficients = length_of_attribute(op, "coefficients")
    targets = max(coefficients // features if features else 0, 1)
    gemm = (rows, targets, features)
    transforms = text_attribute(op, "post_transform", "NONE") != "NONE"
    each = 1 + (SIGMOID if transforms else 0)
    flops = 2 * math.prod(gemm) + each * rows * targets
    return OpCost(flops, all_bytes(op) + _FLOAT_BYTES * coefficients, gemm)


def _support_vectors(op: OpView) -> OpCost:
    """Take the kernel of each sample with each support vector, and weigh it."""
    rows, features = _samples(op)
    counts = ints_attribute(op, "vectors_per_class")
    stored = length_of_attribute(op, "support_vectors")
    known = sum(counts) if counts else int_attribute(op, "n_supports", 0)
    vectors = max(known or (stored // features if features else 0), 1)
    linear = text_attribute(op, "kernel_type", "LINEAR") == "LINEAR"
    weights = max(length_of_attribute(op, "coefficients") // vectors, 1)
    gemm = (rows, vectors, features)
    each = 2 * weights + (0 if linear else TRANSCENDENTAL + 2)
    flops = 2 * math.prod(gemm) + each * rows * vectors
    return OpCost(flops, all_bytes(op) + _FLOAT_BYTES * stored, gemm)


def _copy(op: OpView) -> OpCost:
    """Read the inputs and write the outputs."""
    return OpCost(0, all_bytes(op))


def _extract(op: OpView) -> OpCost:
    """Read the indices and the elements extracted."""
    return OpCost(0, in_bytes(op, 1) + 2 * out_bytes(op))


def _look_up(op: OpView) -> OpCost:
    """Hash each element and find it in a table: some 8 FLOPs."""
    return OpCost(8 * max(in_size(op, 0), out_size(op)), all_bytes(op))


RULES: Mapping[str, CostRule] = {
    "ArrayFeatureExtractor": _extract,
    "Binarizer": per_output(1),
    "CastMap": _look_up,
    "CategoryMapper": _look_up,
    "DictVectorizer": _look_up,
    "FeatureVectorizer": _copy,
    "Imputer": per_output(2),  # compare, select
    "LabelEncoder": _look_up,
    "LinearClassifier": _linear,
    "LinearRegressor": _linear,
    "Normalizer": per_input(3),  # norm, divide
    "OneHotEncoder": per_output(1),
    "SVMClassifier": _support_vectors,
    "SVMRegressor": _support_vectors,
    "Scaler": per_output(2),  # subtract, multiply
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "ZipMap": _copy,
}
"""Rules of ai.onnx.ml."""
