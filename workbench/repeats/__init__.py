"""What the repeats of a case say together: how often it passes, and whether agent or judge makes the difference."""
