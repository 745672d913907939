"""Checks of evalsets, criteria and agents that find problems without running anything."""
