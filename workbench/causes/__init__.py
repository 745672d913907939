"""Causes of failures: the first cause of each failing case, and groups of cases that share one."""
