"""From a selection of cases to what will run, and what is known before it does."""
