"""Talking to an agent on the screen, and keeping what was said as a case."""
