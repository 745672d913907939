"""Freshness: whether the inputs of a verdict are still as they were. Only this package reads them from the disk."""
