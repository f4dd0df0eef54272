"""mcmpart."""
