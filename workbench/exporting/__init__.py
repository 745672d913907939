"""Stored runs as files for other programs and readers."""

from typing import Final

SCHEMA: Final = "agent-workbench/report/1"
"""Schema name in every JSON report of a run."""
TRY_SCHEMA: Final = "agent-workbench/try/1"
"""Schema name in the JSON report of `try`."""
