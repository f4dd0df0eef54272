"""The roofline: how long an op takes on a chip when nobody has measured it."""

from __future__ import annotations

import numpy as np

from mcmpart.graph.graph import Float64, Int64


def roofline_seconds(
    flops: Int64,
    touched_bytes: Int64,
    *,
    peak_ops_per_s: Float64,
    memory_bandwidth_bytes_per_s: float,
    overhead_s: float,
) -> Float64:
    """Return t = overhead + max(flops / peak, bytes / bandwidth), ``[V] float64``.

    An op without FLOPs and bytes is a view and takes 0 s, overhead included.

    Parameters
    ----------
    flops, touched_bytes
        ``[V] int64``, 0 or more.
    peak_ops_per_s
        ``[V] float64``: the chip's peak for the dtype of each op.
    memory_bandwidth_bytes_per_s, overhead_s
        The chip's.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 2009.
    """
    compute_s = flops / peak_ops_per_s
    memory_s = touched_bytes / memory_bandwidth_bytes_per_s
    view = (flops == 0) & (touched_bytes == 0)
    return np.where(view, 0.0, overhead_s + np.maximum(compute_s, memory_s))
