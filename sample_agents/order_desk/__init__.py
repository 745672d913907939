"""A plain-Python agent: no framework, no model, no key."""

from . import agent
