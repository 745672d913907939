"""Edits of the user's files as values, without a screen: what was not changed keeps every byte."""
