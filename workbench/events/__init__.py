"""The events of a run, as dataclasses and as JSON."""
