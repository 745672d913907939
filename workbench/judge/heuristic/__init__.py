"""Demonstration judge that follows rules instead of using a language model.

It lets the judged criteria work without a key, and serves tests. It compares texts, figures, names and tool calls.
Anything it cannot look up is `unclear`, which never passes. docs/heuristic.md lists the rules.
"""

NOTE = "rules, not a language model"
"""Remark that every surface shows beside a verdict of this judge."""

VERSION = "heuristic-2"
"""Version of the rules, part of each reply and of the cache key: raise it when a rule changes a verdict."""
