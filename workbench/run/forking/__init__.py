"""Forks: conversations that repeat a recorded one up to a point, and then change one thing."""
