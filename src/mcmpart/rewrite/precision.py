"""The same model deployed in another dtype: float bytes and compute dtypes change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from mcmpart.errors import InputError
from mcmpart.graph import Graph
from mcmpart.graph.dtypes import FLOAT_BITS, PRECISION_BITS
from mcmpart.graph.graph import Bool, Int64

ANY_DTYPE = "*"
"""A package with one peak for every dtype."""


def set_precision(graph: Graph, precision: str, available: tuple[str, ...]) -> Graph:
    """Return ``graph`` with its float tensors, weights and ops in ``precision``.

    Integers, booleans and tensors of unknown dtype stay as they are, and so do FLOPs
    and measured times.

    Parameters
    ----------
    graph
        The model as imported.
    precision
        A dtype, or ``"auto"``: each float dtype of the graph stays where the package
        gives it a peak, and becomes the package's first dtype where it does not, which
        an assumption says.
    available
        The dtypes the package gives a peak for, the preferred one first; ``"*"`` stands
        for all.

    Raises
    ------
    InputError
        ``precision`` is no dtype, or one the package gives no peak for.

    Notes
    -----
    A tensor takes ceil(elements x bits / 8) bytes; where the shape is unknown, and for
    a weight, ceil(bytes x new bits / old bits). Of the bytes that an op touches, at
    most the bytes of its non-float tensors and weights stay; the others scale as the
    bytes of its float tensors and weights do together.
    """
    used = _float_dtypes(graph)
    if precision == "auto":
        target = _automatic(used, available)
    else:
        _check(precision, available)
        target = dict.fromkeys(used, precision)
    target = {old: new for old, new in target.items() if old != new}
    if not target:
        return graph
    sentences = [_kept_times(graph, target)]
    if precision == "auto":
        sentences.insert(0, _chosen(graph, target))
    rescaled = _rescale(graph, target)
    return replace(
        rescaled, assumptions=(*graph.assumptions, *(s for s in sentences if s))
    )


def _float_dtypes(graph: Graph) -> list[str]:
    named = dict.fromkeys(chain(graph.op_dtype, graph.tensor_dtype, graph.weight_dtype))
    return [dtype for dtype in named if dtype in FLOAT_BITS]


def _automatic(used: Iterable[str], available: tuple[str, ...]) -> dict[str, str]:
    missing = [d for d in used if not {d, ANY_DTYPE}.intersection(available)]
    if missing:
        _check(available[0], available)
    return dict.fromkeys(missing, available[0]) if missing else {}


def _check(precision: str, available: tuple[str, ...]) -> None:
    if precision not in PRECISION_BITS:
        raise InputError(
            f"the precision {precision!r} is no dtype that mcmpart knows the size of: "
            f"choose auto or one of {', '.join(PRECISION_BITS)}"
        )
    if not {precision, ANY_DTYPE}.intersection(available):
        raise InputError(
            f"the package gives no {precision} peak: choose one of "
            f"{', '.join(available)}, or add the peak to the package file"
        )


def _chosen(graph: Graph, target: Mapping[str, str]) -> str:
    count = sum(dtype in target for dtype in graph.op_dtype)
    ops = "1 op" if count == 1 else f"{count} ops"
    return (
        f"the package gives no {' and no '.join(target)} peak: float tensors and {ops} "
        f"computed as {next(iter(target.values()))}; choose with --precision"
    )


def _kept_times(graph: Graph, target: Mapping[str, str]) -> str:
    count = int(np.count_nonzero(graph.op_seconds > 0))
    if not count:
        return ""
    ops = "1 op keeps its" if count == 1 else f"{count} ops keep their"
    return (
        f"{ops} measured time, although {' and '.join(target)} became "
        f"{next(iter(target.values()))}"
    )


def _rescale(graph: Graph, target: Mapping[str, str]) -> Graph:
    tensor_bytes = _rescaled(graph.tensor_bytes, graph.tensor_dtype, target)
    for t, (dtype, shape) in enumerate(
        zip(graph.tensor_dtype, graph.tensor_shape, strict=True)
    ):
        if dtype in target and shape is not None:
            tensor_bytes[t] = _packed_bytes(shape, target[dtype])
    weight_bytes = _rescaled(graph.weight_bytes, graph.weight_dtype, target)
    return replace(
        graph,
        op_dtype=_renamed(graph.op_dtype, target),
        op_bytes=_op_bytes(graph, tensor_bytes, weight_bytes),
        tensor_dtype=_renamed(graph.tensor_dtype, target),
        tensor_bytes=tensor_bytes,
        weight_dtype=_renamed(graph.weight_dtype, target),
        weight_bytes=weight_bytes,
    )


def _renamed(dtypes: tuple[str, ...], target: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(target.get(dtype, dtype) for dtype in dtypes)


def _rescaled(
    sizes: Int64, dtypes: tuple[str, ...], target: Mapping[str, str]
) -> Int64:
    """Return ceil(bytes x new / old) where the dtype changes, ``[N] int64``."""
    changed = sizes.copy()
    for i, dtype in enumerate(dtypes):
        if dtype in target:
            new, old = PRECISION_BITS[target[dtype]], PRECISION_BITS[dtype]
            changed[i] = _ceil_ratio(int(sizes[i]), new, old)
    return changed


def _packed_bytes(shape: tuple[int, ...], dtype: str) -> int:
    return _ceil_ratio(math.prod(shape), PRECISION_BITS[dtype], 8)


def _ceil_ratio(value: int, numerator: int, denominator: int) -> int:
    # Python integers: bytes of a tensor times bytes of another may pass 2^63.
    return -(-value * numerator // denominator)


def _op_bytes(graph: Graph, new_tensor_bytes: Int64, new_weight_bytes: Int64) -> Int64:
    """Return the bytes each op touches once its floats are rescaled, ``[V] int64``."""
    float_tensor = _is_float(graph.tensor_dtype)
    float_weight = _is_float(graph.weight_dtype)
    fixed = _adjacent(
        graph, graph.tensor_bytes * ~float_tensor, graph.weight_bytes * ~float_weight
    )
    before = _adjacent(
        graph, graph.tensor_bytes * float_tensor, graph.weight_bytes * float_weight
    )
    after = _adjacent(
        graph, new_tensor_bytes * float_tensor, new_weight_bytes * float_weight
    )
    scaled = graph.op_bytes.copy()
    for op in np.flatnonzero((before != after) & (before > 0)).tolist():
        touched = int(graph.op_bytes[op])
        stays = min(touched, int(fixed[op]))
        scaled[op] = stays + _ceil_ratio(
            touched - stays, int(after[op]), int(before[op])
        )
    return scaled


def _is_float(dtypes: tuple[str, ...]) -> Bool:
    return np.array([dtype in FLOAT_BITS for dtype in dtypes], dtype=np.bool_)


def _adjacent(graph: Graph, tensor_bytes: Int64, weight_bytes: Int64) -> Int64:
    """Return the bytes of what each op reads and writes, ``[V] int64``."""
    total = np.zeros(graph.num_ops, dtype=np.int64)
    np.add.at(total, graph.use_op, tensor_bytes[graph.use_tensor])
    # Row V takes the tensors that HOST (-1) produces.
    written = np.zeros(graph.num_ops + 1, dtype=np.int64)
    np.add.at(written, graph.tensor_producer, tensor_bytes)
    np.add.at(total, graph.weight_use_op, weight_bytes[graph.weight_use_weight])
    return total + written[:-1]
