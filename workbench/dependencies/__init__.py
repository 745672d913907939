"""The inputs of verdicts: one record for each execution, which every view compares in the same way."""
