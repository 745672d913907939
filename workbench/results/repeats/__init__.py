"""Repeats of a case taken together: how often it passes, and whether agent or judge varies."""
