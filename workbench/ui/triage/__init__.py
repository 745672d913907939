"""The triage of verdicts: the actions, the dialog and its questions."""
