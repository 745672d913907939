"""An ADK agent that hands over to two sub-agents."""

from .agent import root_agent
