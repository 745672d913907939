"""Changes after verdicts were made: stale marks, the watch, files changed on disk, runs of other programs."""
