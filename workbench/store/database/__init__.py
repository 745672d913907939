"""The database of a project, `.workbench/runs.db`. All SQL is in this package."""
