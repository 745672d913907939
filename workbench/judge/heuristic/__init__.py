"""A demonstration judge that follows rules instead of asking a language model.

It lets the judged criteria show something without a key, and serves tests. It looks things up: equal texts, figures,
names, tool calls. Whatever it cannot look up is `unclear`, which never passes. docs/heuristic.md lists the rules.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.judge.heuristic.judge import Heuristic

__all__ = ["NOTE", "VERSION", "Heuristic"]

NOTE = "rules, not a language model"
"""What every surface says beside a verdict of this judge."""

VERSION = "heuristic-2"
"""Version of the rules, part of each reply and of the cache key: raise it when a rule changes a verdict."""


def __getattr__(name: str) -> Any:
    """Import the rules on first use: most callers only need the note."""
    if name == "Heuristic":
        from workbench.judge.heuristic.judge import Heuristic

        return Heuristic
    raise AttributeError(name)
