"""The store: the state of runs and cases, built from events and kept in memory and in a database."""
