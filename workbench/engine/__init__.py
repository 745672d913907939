"""Plan, processes, scoring: what turns a selection of cases into events."""
