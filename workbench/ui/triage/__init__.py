"""The triage dialog and its questions."""
