"""Tries of variants of a project on the same cases, to see whether a change helps.

`docs/python-api.md` shows how to try a variant. A variant is a copy of the project with changes: a git revision,
another file, a variable, a model, or another folder. Its number is its position in `layout.names`. All others are
compared with the first. Records are the executions of a store that gets the events: `trial.store`, or another one in
the screen's thread. All functions but `Trial.run`, `Trial.executions` and `report` read or write files, so call them in
a thread. The executions of variants are no verdicts of the working tree. So they are stored in the temporary folder of
the copies, not with the project's runs, and removed with it. Only answers of judges stay in the cache.
"""
