"""The history screens: the list of stored runs, one run, and two runs compared."""
