"""How often the rules are right, as it was measured: the figure that every surface shows.

`python -m workbench.judge.heuristic` measures again; a test holds these figures to what it prints.
"""

VERSION = "heuristic-1"
"""What its answers are marked with: it changes when a rule changes a verdict."""

MEASURED = {
    "final_response_match": ((30, 32), (27, 32)),
    "claims": ((36, 36), (32, 36)),
    "rubrics": ((18, 20), (18, 20)),
    "sentences": ((12, 12), (12, 12)),
    "user_message": ((10, 10), (9, 10)),
}
"""Kind of question → ((right, of) on the items that the rules were made with, (right, of) on those held out)."""


def held_out() -> tuple[int, int]:
    """(right, of) over all held-out items."""
    return sum(held[0] for _, held in MEASURED.values()), sum(held[1] for _, held in MEASURED.values())


def note() -> str:
    """What is said of this judge wherever it is named: the share is that of the items held out."""
    right, of = held_out()
    return f"rules, not a language model; right on {right / of:.2f} of {of} items"


NOTE = note()
