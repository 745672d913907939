"""Criteria: the modules that score them, their descriptions, and the registry of all."""
