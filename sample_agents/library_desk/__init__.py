"""An ADK agent with real tools and a model that reads its lines from a script."""

from . import agent
