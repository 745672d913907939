"""Runs on a Dask cluster: one execution of a case is one task."""
