"""A demonstration judge that follows rules instead of asking a language model.

It lets the judged criteria show something without a key, and serves tests. It looks things up: equal texts, figures,
names, tool calls. Whatever it cannot look up is `unclear`, which never passes. docs/heuristic.md lists the rules.
"""

NOTE = "rules, not a language model"
"""What every surface says beside a verdict of this judge."""

VERSION = "heuristic-2"
"""Version of the rules, part of each reply and of the cache key: raise it when a rule changes a verdict."""
