"""Lower bounds that no partition can beat."""

from mcmpart.bounds.simple import simple_bound_s

__all__ = ["simple_bound_s"]
