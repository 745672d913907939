"""Runs: from a selection of cases to their events."""
