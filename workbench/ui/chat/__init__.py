"""Conversations with an agent, which can be kept as cases."""
