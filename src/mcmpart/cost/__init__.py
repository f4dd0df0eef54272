"""What each op costs on each class of chip."""

from mcmpart.cost.roofline import roofline_seconds
from mcmpart.cost.table import CostTable, cost_table

__all__ = ["CostTable", "cost_table", "roofline_seconds"]
