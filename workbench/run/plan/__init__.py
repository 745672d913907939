"""Plans: the selection of cases, the executions to run, and the checks before a run."""
