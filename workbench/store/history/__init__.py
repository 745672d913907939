"""Stored runs: their list, their summaries, and how long they are kept."""
