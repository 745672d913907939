"""Tries of variants of a project on the same cases, to see whether a change helps.

`docs/python-api.md` shows how to try a variant. A variant is a copy of the project with changes: a git revision,
another file, a variable, a model, or another folder. Its number is its position in `layout.names`. All others are
compared with the first. Functions that take records accept the executions of any store that gets the run's events:
`trial.store`, or another one in the screen's thread.

Executions of variants are not verdicts of the working tree. They are stored in the temporary folder with the copies,
not with the project's runs, and are removed with it. Only answers of judges stay in the project's cache. Methods of
`Trial` other than `run` and `executions` read or write files, so call them in a thread.
"""
