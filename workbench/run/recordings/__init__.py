"""Recorded calls of tools and models, with their answers. They can be frozen and replayed."""
