"""Conversations with an agent, and keeping them as cases."""
