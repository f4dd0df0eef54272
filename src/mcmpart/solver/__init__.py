"""The constraint solver: valid partitions by draw (SAMPLE) and correction (FIX)."""

from mcmpart.solver.domains import Solver
from mcmpart.solver.modes import (
    ORDERS,
    Rows,
    fix_many,
    fix_rows,
    sample_many,
    sample_rows,
)

__all__ = [
    "ORDERS",
    "Rows",
    "Solver",
    "fix_many",
    "fix_rows",
    "sample_many",
    "sample_rows",
]
