"""Evaluators: what a partition costs."""

from mcmpart.evaluate.pipeline import Evaluation, evaluate, evaluate_many

__all__ = ["Evaluation", "evaluate", "evaluate_many"]
