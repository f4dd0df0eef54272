"""The version of mcmpart."""

__version__ = "0.1.0"
