"""The engine: plans, processes and scoring, which turn a selection of cases into events."""
