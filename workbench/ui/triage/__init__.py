"""The triage dialog, and the triage marks in the tree."""
