"""Readers of the user's files and of the workbench's own files. Values are typed and have their places in the file.

No code of the user is imported or run.
"""
