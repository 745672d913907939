"""A judge without a language model: rules over words, figures, dates, negations and names.

It is the judge named `heuristic`, for trying things out and for tests without a key. It reads what a question was made
from, never its prompt, and says on every surface what it is and how often it is right. docs/heuristic.md tells what it
looks at and when not to trust it.
"""

from typing import TYPE_CHECKING, Any

from workbench.judge.heuristic.measured import NOTE, VERSION, note

if TYPE_CHECKING:
    from workbench.judge.heuristic.judge import Heuristic, answer

__all__ = ["NOTE", "VERSION", "Heuristic", "answer", "note"]


def __getattr__(name: str) -> Any:
    """The rules are loaded where they are asked: whoever only names this judge needs the note alone."""
    if name in ("Heuristic", "answer"):
        from workbench.judge.heuristic import judge

        return getattr(judge, name)
    raise AttributeError(name)
