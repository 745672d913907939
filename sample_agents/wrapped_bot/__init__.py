"""Somebody else's framework, wrapped in ten lines."""

from .agent import root_agent
