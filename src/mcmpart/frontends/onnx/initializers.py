"""Initializers: sizes without loading, small values, external data refused or noted."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, SparseTensorProto, TensorProto, numpy_helper

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.values import DTYPE_OF_ELEM, Value
from mcmpart.frontends.op_costs.types import TensorType
from mcmpart.frontends.report import Sentences

SMALL_BYTES = 1 << 14
"""Values up to this size are known while the model is read; larger ones are not."""

_MISSING = (
    "external data is missing or too short, so the model is planned from shapes alone; "
    "export will need it"
)
_SHORT = (
    "a weight holds fewer bytes than its shape says, so it is planned from its shape "
    "alone; export will need them"
)


@dataclass(slots=True)
class Initializers:
    """Reads tensors of one model file.

    Weights are never loaded: only integers of at most ``SMALL_BYTES`` are (shapes and
    axes), external ones included.

    Attributes
    ----------
    stored_bytes
        Bytes in the file of each sparse weight.
    unread
        External file of each small integer tensor whose data it does not hold.
    """

    folder: Path
    assumptions: Sentences
    stored_bytes: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _paths: dict[str, Path] = field(default_factory=dict)

    def values(
        self, graph: GraphProto, prefix: str = ""
    ) -> Iterator[tuple[str, Value]]:
        """Yield (name, value) of each initializer; its weight is ``prefix + name``."""
        for tensor in graph.initializer:
            yield tensor.name, self.value(tensor, prefix + tensor.name)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            # Stored as its non-zero values and their positions.
            stored = [_type(sparse.values, name), _type(sparse.indices, name)]
            self.stored_bytes[prefix + name] = sum(part.bytes for part in stored)
            shape = sparse_shape(sparse, prefix + name)
            yield name, Value(sparse.values.data_type, shape, weight=prefix + name)

    def value(self, tensor: TensorProto, weight: str) -> Value:
        """Return the value of a tensor that is the weight called ``weight``."""
        kind = _type(tensor, weight)
        const: NDArray[np.generic] | None = None
        small = kind.bytes <= SMALL_BYTES and tensor.data_type != TensorProto.STRING
        if tensor.data_location == TensorProto.EXTERNAL:
            const = self._external(tensor, weight, kind, small)
        elif small:
            const = _array(tensor, weight)
        elif 0 < len(tensor.raw_data) < kind.bytes:
            # Without any data it may be one of the large weights that were left out.
            self.assumptions.add(_SHORT, weight)
        return Value(tensor.data_type, kind.shape, const=const, weight=weight)

    def _external(
        self, tensor: TensorProto, name: str, kind: TensorType, small: bool
    ) -> NDArray[np.generic] | None:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        path = self._path(location, name)
        offset, length = _extent(entries, name, kind.bytes)
        wanted = small and kind.dtype.startswith(("int", "uint", "bool"))
        try:
            size = path.stat().st_size if path.is_file() else -1
            if size < offset + length or length < kind.bytes:
                self.assumptions.add(_MISSING, f"{location} (weight {name})")
                if wanted:
                    self.unread[name] = location
                return None
            if not wanted or length != kind.bytes:
                return None
            with path.open("rb") as file:
                file.seek(offset)
                raw = file.read(length)
        except OSError as error:
            raise InputError(
                f"cannot read {location!r:.200}, where the weight {name!r} lies: "
                f"{error.strerror}; check the file"
            ) from error
        inline = TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=raw)
        return _array(inline, name)

    def _path(self, location: str, name: str) -> Path:
        path = self._paths.get(location)
        if path is None:
            root = self.folder.resolve()
            path = _resolved(root / location.replace("\0", ""), location, name)
            if not location or "\0" in location or not path.is_relative_to(root):
                raise InputError(
                    f"the weight {name!r} lies in {location!r}, which leads out of "
                    "the model's folder: external data must lie inside it; copy the "
                    "file there and name it by a relative path"
                )
            self._paths[location] = path
        return path


def sparse_shape(sparse: SparseTensorProto, name: str) -> tuple[int, ...]:
    """Return the dense shape of a sparse tensor.

    Raises
    ------
    InputError
        A dimension is negative.
    """
    if any(size < 0 for size in sparse.dims):
        raise InputError(
            f"the sparse weight {name!r} has shape {list(sparse.dims)}: no tensor has "
            "a negative dimension; export the model again"
        )
    return tuple(sparse.dims)


def _resolved(path: Path, location: str, name: str) -> Path:
    try:
        resolved = path.resolve()
        loops = os.path.islink(resolved)
    except RuntimeError:
        # Before Python 3.13; later ones leave the link in the path.
        loops = True
    if loops:
        raise InputError(
            f"the weight {name!r} lies in {location!r}, a symbolic link that leads "
            "back to itself: put the data file in its place"
        )
    return resolved


def _extent(entries: Mapping[str, str], name: str, size: int) -> tuple[int, int]:
    """Return offset and length of external data."""
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0:
        raise InputError(
            f"the weight {name!r} has an offset or a length that is no whole "
            f"number ({entries}): export the model again"
        )
    return offset, length


def _type(tensor: TensorProto, name: str) -> TensorType:
    dtype = DTYPE_OF_ELEM.get(tensor.data_type)
    if dtype is None or any(size < 0 for size in tensor.dims):
        raise InputError(
            f"the weight {name!r} has element type {tensor.data_type} and shape "
            f"{list(tensor.dims)}: no tensor has those; export the model again"
        )
    return TensorType(dtype, tuple(tensor.dims))


def _array(tensor: TensorProto, name: str) -> NDArray[np.generic]:
    try:
        array: NDArray[np.generic] = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the weight {name!r} does not hold the {math.prod(tensor.dims)} elements "
            f"of its shape {list(tensor.dims)}: export the model again"
        ) from error
    return array
