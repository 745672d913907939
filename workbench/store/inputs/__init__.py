"""The inputs of verdicts as they are stored: one record for each execution."""
