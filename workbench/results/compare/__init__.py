"""Comparisons of two runs: which verdicts changed, and which inputs explain it."""
