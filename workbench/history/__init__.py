"""Stored runs: reading, summaries, comparison, retention."""
