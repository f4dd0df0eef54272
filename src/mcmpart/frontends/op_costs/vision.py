"""Sampling of images, regions of interest, boxes, and decoding of pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    length_constant,
    log2_ceil,
    out_bytes,
    out_shape,
    out_size,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# Corners, clipped widths and heights, areas, their ratio and the comparison.
_OVERLAP_FLOPS = 12
# A separable inverse cosine transform of 8 x 8 (two 8-point products of 16 FLOPs for
# each pixel) and the change of colour space.
_DECODE_FLOPS = 40


def _sampled(op: OpView, samples: int, taps: int) -> OpCost:
    """Weigh the taps of each sample; of the image only the taps are read."""
    image = in_bytes(op, 0)
    per_element = image // max(in_size(op, 0), 1)
    read = min(image, samples * taps * per_element)
    return OpCost(2 * taps * samples, read + _other_bytes(op))


def _other_bytes(op: OpView) -> int:
    """Return the bytes of the outputs and of all inputs but the first."""
    return all_bytes(op) - in_bytes(op, 0)


def _grid_sample(op: OpView) -> OpCost:
    """Weigh 1, 2 or 4 taps along each spatial axis for each output element."""
    mode = text_attribute(op, "mode", "linear")
    taps = {"nearest": 1, "cubic": 4, "bicubic": 4}.get(mode, 2)
    axes = max(len(in_shape(op, 0)) - 2, 0)
    return _sampled(op, out_size(op), taps**axes)


def _bins(op: OpView) -> int:
    """Return the image positions of one output bin where a region is the whole image.

    The regions' sizes are data, so this is the upper bound.
    """
    image, pooled = in_shape(op, 0)[2:], out_shape(op)[2:]
    pairs = zip(image, pooled, strict=False)
    return math.prod(math.ceil(size / out) if out else 0 for size, out in pairs)


def _roi_align(op: OpView) -> OpCost:
    """Sample sampling_ratio^2 points of each bin bilinearly (0: the bin's size)."""
    ratio = int_attribute(op, "sampling_ratio", 0)
    points = ratio * ratio if ratio > 0 else _bins(op)
    return _sampled(op, out_size(op) * points, 4)


def _max_roi_pool(op: OpView) -> OpCost:
    """Compare every position of each bin."""
    return OpCost(out_size(op) * _bins(op), all_bytes(op))


def _crop_and_resize(op: OpView) -> OpCost:
    """Sample one point for each output element."""
    taps = 1 if text_attribute(op, "mode", "bilinear") == "nearest" else 4
    return _sampled(op, out_size(op), taps)


def _non_max_suppression(op: OpView) -> OpCost:
    """Sort each class's scores and compare each box kept with the boxes left.

    max_output_boxes_per_class bounds the boxes kept where it is known.
    """
    scores = in_size(op, 1)
    boxes = dim(in_shape(op, 1), 2)
    kept = min(length_constant(op, 2, boxes), boxes)
    each = log2_ceil(boxes) + _OVERLAP_FLOPS * kept
    return OpCost(scores * each, all_bytes(op))


def _image_decoder(op: OpView) -> OpCost:
    """Decode each pixel of a JPEG-like picture."""
    return OpCost(_DECODE_FLOPS * out_size(op), in_bytes(op) + out_bytes(op))


RULES: Mapping[str, CostRule] = {
    "GridSample": _grid_sample,
    "ImageDecoder": _image_decoder,
    "MaxRoiPool": _max_roi_pool,
    "NonMaxSuppression": _non_max_suppression,
    "RoiAlign": _roi_align,
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "CropAndResize": _crop_and_resize,
    "GridSample": _grid_sample,
}
"""Rules of com.microsoft."""
