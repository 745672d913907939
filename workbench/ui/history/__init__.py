"""The history screens: the list of stored runs, a single run, and the comparison of two runs."""
