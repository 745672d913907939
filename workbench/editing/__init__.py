"""Edits of the user's files, independent of the screen. Unchanged parts of a file keep every byte."""
