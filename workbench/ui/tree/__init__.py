"""The tree of cases: rows, verdicts, filter, sort order and the widget."""
