"""Criteria: one module per criterion, and the registry that describes them."""
