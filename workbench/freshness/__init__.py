"""Freshness: whether the inputs of a verdict have changed since. Only this package reads them from the disk."""
