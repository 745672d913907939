"""The database of a project, `.workbench/runs.db`: the only place that knows SQL."""
