"""Stored runs as files for other programs and readers."""

from typing import Final

SCHEMA: Final = "agent-workbench/report/1"
"""Schema name in every JSON report."""
