"""Options of the next run: criteria, recordings, place, repeats."""
