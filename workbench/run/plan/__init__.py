"""Plans: from a selection of cases to what will run, with checks before the run."""
