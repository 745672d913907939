"""Stored runs: journals, summaries, comparison, retention."""
