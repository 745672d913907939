"""The triage of verdicts: the dialog and its questions."""
