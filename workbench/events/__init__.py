"""Events: everything that happens in a run, as values and as JSON."""
