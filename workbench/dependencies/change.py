"""The kinds of inputs that a verdict depends on, and one change of such an input.

A new kind of input is a row of `KINDS` here. Files are found by `workbench.dependencies.functions.other_files`. Other
values are read in `workbench.dependencies.current`, and recorded by a run in `workbench.engine.run.input_recorder`.
Every view (stale marks, `status`, resume, watch, score, compare) works on changes and needs nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from workbench.counting import few

Input: TypeAlias = Literal[
    "agent_file",
    "agent_folder",
    "environment",
    "packages",
    "case",
    "session",
    "scenario",
    "simulator",
    "frozen",
    "owner",
    "options",
    "expected",
    "criteria",
    "judge",
    "function",
]
Effect: TypeAlias = Literal["decide", "score", "run"]
"""What a change asks for. `decide`: compare stored scores with their thresholds again; `score`: score the transcript
again; `run`: run the agent again."""
EFFECTS: tuple[Effect, ...] = ("decide", "score", "run")
"""From the weakest to the strongest."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of input is treated. `words` is put before a name; `place` says which file a change of it names:
    the input's own name, the evalset, or the file that its values were read from."""

    effect: Effect
    words: str = ""
    place: Literal["name", "evalset", "source"] = "source"


KINDS: dict[Input, Kind] = {
    "agent_file": Kind("run", place="name"),
    "agent_folder": Kind("run", place="name"),
    "environment": Kind("run", "environment "),
    "packages": Kind("run", "packages: "),
    "case": Kind("run", "case: ", "evalset"),
    "session": Kind("run", "session: ", "evalset"),
    "scenario": Kind("run", "scenario: ", "evalset"),
    "simulator": Kind("run", "simulator: "),
    "frozen": Kind("run", "frozen: "),
    "owner": Kind("run", "owner: "),
    "options": Kind("run"),
    "expected": Kind("score", "expected: ", "evalset"),
    # What needs no judge is only decided again: `workbench.dependencies.record` knows which.
    "criteria": Kind("score", "criteria: "),
    "judge": Kind("score", "judge: "),
    "function": Kind("score", "function ", "name"),
}
"""The one table of effects."""
CASE_INPUTS: frozenset[Input] = frozenset({"case", "session", "scenario", "expected"})
"""The kinds that an evalset says of one case: all follow from the case's text."""


@dataclass(frozen=True, slots=True)
class Change:
    """One input that is not what it was when a verdict was made. `name` is "" if the run did not record that kind of
    input, so that nobody knows whether it changed. `file` is relative to the root, None if the input is in no file."""

    input: Input
    name: str
    file: str | None
    effect: Effect


def words(change: Change) -> str:
    """Say what changed: `.env GEMINI_MODEL`, `order_desk/agent.py`, `criteria: response_match_score threshold`."""
    if not change.name:
        return f"{change.input.replace('_', ' ')} not recorded"
    if change.input == "environment" and change.file is not None:
        return f"{PurePosixPath(change.file).name} {change.name}"
    if change.input == "packages" and change.name.endswith(" packages"):
        return change.name  # How many they are, if there are many.
    new = " is new" if change.input == "agent_folder" else ""
    return f"{KINDS[change.input].words}{change.name}{new}"


def describe_few(changes: Iterable[Change], most: int = 3) -> str:
    """Say what the first of several changes are, the strongest first, and how many more there are."""
    ordered = sorted(changes, key=lambda change: -EFFECTS.index(change.effect))
    unknown = [change for change in ordered if not change.name]
    said = dict.fromkeys(words(change) for change in ordered if change.name)
    if unknown:
        said[words(unknown[0]) if len(unknown) == 1 else "inputs not recorded"] = None
    return few(said, most)


def strongest(changes: Iterable[Change]) -> Effect | None:
    """Return the strongest effect of several changes, None if there are none."""
    return max((change.effect for change in changes), key=EFFECTS.index, default=None)


def not_recorded(kinds: Sequence[Input]) -> tuple[Change, ...]:
    """Return the changes of inputs that a run did not record: they may be others, nobody knows."""
    return tuple(Change(kind, "", None, KINDS[kind].effect) for kind in kinds)
