"""Faults that are injected into the tool calls of a run, and what agents did about them."""
