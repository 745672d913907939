"""Edits of the user's files as values, without a screen. Unchanged parts keep every byte."""
