"""Judges: their questions and replies, and the cache, limits and retries in front of them."""
