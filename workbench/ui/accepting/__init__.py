"""Acceptance of the agent's actual behavior as expected: the actions, the dialog and the new scores."""
