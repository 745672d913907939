"""The scorer: its process, its client, and the verdicts that come from it."""
