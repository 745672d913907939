"""Tries of variants on the screen: what to compare, the run, and its results."""
