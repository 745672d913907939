"""Variants of a project on the same cases: did a change help? `docs/python-api.md` shows how to try one.

A variant is a copy of the project with changes: a revision of git, another file, a variable, a model, or another
folder. It is named by its position in `layout.names`; the first one is what the others are compared with. Records are
the executions of a store that takes the events: `trial.store`, or another one in the screen's thread. Everything but
`Trial.run`, `Trial.executions` and `report` reads or writes files, so call it in a thread.

The executions of variants are no verdicts of the working tree. So they are not stored with the project's runs: they are
in a database in the temporary folder of the copies, and are gone with it. Only answers of judges are kept, as always.
"""
