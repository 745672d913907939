"""The table of cases: criteria or past runs as columns."""
