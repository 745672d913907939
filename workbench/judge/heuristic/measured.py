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


PROBES = {
    "final_response_match": (10, 12),
    "claims": (4, 11),
    "rubrics": (4, 11),
    "sentences": (7, 8),
    "user_message": (7, 10),
}
"""The same for the items that models are probed with (`python -m workbench.metrics.judged.probe --model heuristic`).
They were not written with rules in mind, and no rule was made with them; one with several sentences or rubrics is right
if all are."""


def unseen() -> tuple[int, int]:
    """(right, of) over all items that the rules were not made with: those held out, and the probes."""
    found = [held for _, held in MEASURED.values()] + list(PROBES.values())
    return sum(right for right, _ in found), sum(of for _, of in found)


def note() -> str:
    """What is said of this judge wherever it is named: the share is that of items that the rules were not made with."""
    right, of = unseen()
    return f"rules, not a language model; right on {right / of:.2f} of {of} items"


NOTE = note()
