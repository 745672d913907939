"""Agents and evalsets, found without running them, and the worker that runs an agent."""
