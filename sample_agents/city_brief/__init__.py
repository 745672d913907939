"""An ADK agent that asks Gemini, to show what a missing key looks like."""

from . import agent
