"""Recorded calls of tools and models: what a case's agent called, and what it got. They can be frozen and replayed."""
