"""Simulated users: what they are told, what they say next, and when they stop."""
