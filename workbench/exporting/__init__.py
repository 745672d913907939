"""Export of stored runs as files for other programs and for people."""

from typing import Final

SCHEMA: Final = "agent-workbench/report/1"
"""The schema name in every JSON report of a run."""
TRY_SCHEMA: Final = "agent-workbench/try/1"
"""The schema name in the JSON report of `try`."""
