"""Opens an ONNX file: one parsed protobuf without its large weights, checked."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, defs, helper

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.domains import opset_versions, short_domain
from mcmpart.frontends.onnx.lean import without_large_data
from mcmpart.frontends.onnx.names import check_names
from mcmpart.frontends.report import Sentences


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A parsed model; the data fields of its large tensors are left out.

    Attributes
    ----------
    opsets
        Version of each imported domain; the default domain is ``""``.
    sha256
        Of the model file (external data is not part of it).
    """

    proto: ModelProto
    path: Path
    sha256: str
    opsets: Mapping[str, int]


def open_model(path: Path, assumptions: Sentences) -> OnnxModel:
    """Return the model in ``path``.

    Raises
    ------
    InputError
        The file is cut off, is no ONNX model, or is newer than the installed onnx.
    """
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            # Mapped, not read: the weights in it may be larger than the memory.
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        lean = without_large_data(view)
        proto = ModelProto.FromString(lean)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, DecodeError) as error:
        raise InputError(
            f"{path} is not a whole ONNX model ({error}): it is truncated or of "
            "another kind; copy or export it again"
        ) from error
    _check(proto, path)
    check_names(proto, path)
    return OnnxModel(proto, path, sha256, _opsets(proto, path, assumptions))


def _check(proto: ModelProto, path: Path) -> None:
    if not proto.HasField("graph") or not proto.ir_version:
        raise InputError(
            f"{path} holds no ONNX graph: it is another kind of file; "
            "name an .onnx model"
        )
    if proto.ir_version > onnx.IR_VERSION:
        raise InputError(
            f"{path} has IR version {proto.ir_version}, and the installed onnx "
            f"{onnx.__version__} reads up to {onnx.IR_VERSION}: update onnx or export "
            "with an older IR version"
        )


def _opsets(proto: ModelProto, path: Path, assumptions: Sentences) -> dict[str, int]:
    opsets = opset_versions({i.domain: i.version for i in proto.opset_import})
    for node in proto.graph.node:
        domain = short_domain(node.domain)
        if domain and domain not in opsets:
            assumptions.add(
                "the model uses a domain that it does not import: taken as version 1",
                domain,
            )
    newest = defs.onnx_opset_version()
    kinds = {n.op_type for n in proto.graph.node if not short_domain(n.domain)}
    if "" not in opsets:
        opsets[""] = _opset_of_ir(proto.ir_version)
        if kinds:
            assumptions.add(
                "the model does not say which opset it uses: taken as "
                f"{opsets['']}, the newest of its IR version {proto.ir_version}"
            )
    elif opsets[""] > newest:
        unknown = sorted(kind for kind in kinds if not defs.has(kind))
        if unknown:
            raise InputError(
                f"{path} uses opset {opsets['']}, and the installed onnx "
                f"{onnx.__version__} knows opsets up to {newest}, without "
                f"{', '.join(unknown)}: update onnx or export with an older opset"
            )
        assumptions.add(
            f"opset {opsets['']} is newer than {newest}, the newest the installed "
            "onnx knows: its ops are read by the older rules"
        )
    return opsets


def _opset_of_ir(ir_version: int) -> int:
    """Return the newest opset that was released with an IR version (onnx.helper)."""
    opsets = [row[2] for row in helper.VERSION_TABLE if row[1] <= ir_version]
    return max(opsets, default=1)
