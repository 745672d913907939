"""Host processes on the workers of a Dask cluster.

Dask only starts a host process beside each worker and carries bytes to and from it. Its client lives in a child
process, because messages of whoever controls a scheduler or a worker can hold code.
"""
