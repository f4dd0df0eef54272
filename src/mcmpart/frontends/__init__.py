"""Readers of model files: each turns one kind of file into a Graph."""

from mcmpart.frontends.load import (
    FRONTENDS,
    ImportOptions,
    ImportResult,
    import_model,
    load_graph,
)
from mcmpart.frontends.report import ImportReport, UnruledKind

__all__ = [
    "FRONTENDS",
    "ImportOptions",
    "ImportReport",
    "ImportResult",
    "UnruledKind",
    "import_model",
    "load_graph",
]
