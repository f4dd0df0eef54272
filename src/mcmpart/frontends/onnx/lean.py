"""Reads an ONNX file without its large weights.

A model may carry gigabytes of weights inside its protobuf, and planning needs only
their shapes. Protocol buffers are a sequence of (tag, payload) fields, so large
payloads of the tensor data fields can be stepped over before the file is parsed.
Field numbers: onnx.proto, IR version 14.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LARGE_BYTES = 1 << 18
"""Data fields longer than this are left out; smaller ones may be wanted values."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(slots=True)
class _Message:
    """Which fields of a message to enter, and which to leave out when large."""

    inside: dict[int, _Message] = field(default_factory=dict)
    data: frozenset[int] = frozenset()


# float_data, int32_data, int64_data, raw_data, double_data, uint64_data.
_TENSOR = _Message(data=frozenset({4, 5, 7, 9, 10, 11}))
_SPARSE = _Message({1: _TENSOR, 2: _TENSOR})
_ATTRIBUTE = _Message({5: _TENSOR, 10: _TENSOR, 22: _SPARSE, 23: _SPARSE})
_NODE = _Message({5: _ATTRIBUTE})
_GRAPH = _Message({1: _NODE, 5: _TENSOR, 15: _SPARSE})
_FUNCTION = _Message({7: _NODE})
_MODEL = _Message({7: _GRAPH, 25: _FUNCTION})
_ATTRIBUTE.inside.update({6: _GRAPH, 11: _GRAPH})


def without_large_data(model: memoryview) -> bytes:
    """Return the serialised model with the large data fields of its tensors left out.

    Raises
    ------
    ValueError
        The bytes end inside a field, or are no protocol buffer.
    """
    return _lean(model, _MODEL)


def _lean(view: memoryview, message: _Message) -> bytes:
    parts: list[bytes | memoryview] = []
    kept_from = at = 0
    while at < len(view):
        start = at
        tag, at = _varint(view, at)
        number, wire = tag >> 3, tag & 7
        if wire != _BYTES:
            at = _skip(view, at, wire)
            continue
        length, at = _varint(view, at)
        body, at = view[at : at + length], at + length
        if at > len(view):
            raise ValueError("a field is longer than the file")
        wanted = number in message.inside or number in message.data
        if length <= LARGE_BYTES or not wanted:
            continue
        parts.append(view[kept_from:start])
        kept_from = at
        if number in message.inside:
            inner = _lean(body, message.inside[number])
            parts += [_encoded(tag), _encoded(len(inner)), inner]
    parts.append(view[kept_from:])
    return b"".join(parts)


def _skip(view: memoryview, at: int, wire: int) -> int:
    if wire == _VARINT:
        _, at = _varint(view, at)
    elif wire == _FIXED64:
        at += 8
    elif wire == _FIXED32:
        at += 4
    else:
        raise ValueError(f"wire type {wire} is not used by ONNX")
    if at > len(view):
        raise ValueError("the last field is cut off")
    return at


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(view) and shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the bytes end inside a number")


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
