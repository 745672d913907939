"""Agents and evalsets, found without running them, and the child processes that run agents."""
