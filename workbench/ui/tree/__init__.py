"""The tree of cases without a screen: rows, verdicts, filter, order."""
