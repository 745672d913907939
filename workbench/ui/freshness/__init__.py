"""Changes since the verdicts were made: stale marks, watch, changes on disk, runs of other programs."""
