"""Tests of the roofline formula."""

import numpy as np

from mcmpart.cost import roofline_seconds


def test_formula():
    """Overhead plus the slower of compute and memory; a view takes no time."""
    seconds = roofline_seconds(
        np.array([600, 100, 0, 0]),
        np.array([100, 400, 50, 0]),
        peak_ops_per_s=np.array([100.0, 100.0, 100.0, 100.0]),
        memory_bandwidth_bytes_per_s=50.0,
        overhead_s=0.5,
    )
    assert seconds.tolist() == [6.5, 8.5, 1.5, 0.0]


def test_peak_of_each_op():
    """Each op is divided by the peak of its own dtype."""
    seconds = roofline_seconds(
        np.array([100, 100]),
        np.array([0, 0]),
        peak_ops_per_s=np.array([100.0, 50.0]),
        memory_bandwidth_bytes_per_s=1.0,
        overhead_s=0.0,
    )
    assert seconds.tolist() == [1.0, 2.0]
