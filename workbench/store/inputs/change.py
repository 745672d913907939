"""The kinds of inputs that a verdict depends on, and the changes of inputs.

To add a kind of input, add a row to `KINDS`. `workbench.freshness.functions.other_files` finds its files. Other
values are read in `workbench.freshness.current`, and recorded by a run in `workbench.run.input_recorder`. All
views (stale marks, `status`, resume, watch, score, compare) work on changes and need nothing else.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from workbench.text.counting import few
from workbench.text.fast_dataclass import dataclass

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
"""The work that a change requires: compare stored scores with their thresholds again (`decide`), score the transcript
again (`score`), or run the agent again (`run`)."""
EFFECTS: tuple[Effect, ...] = ("decide", "score", "run")
"""All effects, the weakest first."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The treatment of one kind of input.

    `prefix` comes before a name in messages. `place` says which file a change names: the input's own name, the
    evalset, or the source of its values.
    """

    effect: Effect
    prefix: str = ""
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
    # Some criteria need only `decide`. `workbench.store.inputs.record` knows which.
    "criteria": Kind("score", "criteria: "),
    "judge": Kind("score", "judge: "),
    "function": Kind("score", "function ", "name"),
}
"""The table of all kinds and their effects."""
CASE_INPUTS: frozenset[Input] = frozenset({"case", "session", "scenario", "expected"})
"""The kinds that come from a case's text in the evalset."""


@dataclass(frozen=True, slots=True)
class Change:
    """An input that changed since a verdict was made.

    `name` is "" if the run did not record that kind of input, so that a change is possible. `file` is relative to the
    root, or None if the input is not in a file.
    """

    input: Input
    name: str
    file: str | None
    effect: Effect


def describe(change: Change) -> str:
    """Return a text such as `.env GEMINI_MODEL`, `order_desk/agent.py`, `criteria: response_match_score threshold`."""
    if not change.name:
        return f"{change.input.replace('_', ' ')} not recorded"
    if change.input == "environment" and change.file is not None:
        return f"{PurePosixPath(change.file).name} {change.name}"
    if change.input == "options" and change.file is not None:
        return f"{change.name.removeprefix('--')} in {PurePosixPath(change.file).name}"
    if change.input == "packages" and change.name.endswith(" packages"):
        return change.name  # The name has the number of packages.
    new = " is new" if change.input == "agent_folder" else ""
    return f"{KINDS[change.input].prefix}{change.name}{new}"


def describe_few(changes: Iterable[Change], most: int = 3) -> str:
    """Return a text for the first of several changes, the strongest first, and the number of the others."""
    ordered = sorted(changes, key=lambda change: -EFFECTS.index(change.effect))
    unknown = [change for change in ordered if not change.name]
    texts = dict.fromkeys(describe(change) for change in ordered if change.name)
    if unknown:
        texts[describe(unknown[0]) if len(unknown) == 1 else "inputs not recorded"] = None
    return few(texts, most)


def strongest(changes: Iterable[Change]) -> Effect | None:
    """Return the strongest effect of several changes, or None if there are none."""
    return max((change.effect for change in changes), key=EFFECTS.index, default=None)


def not_recorded(kinds: Sequence[Input]) -> tuple[Change, ...]:
    """Return changes for kinds of inputs that a run did not record, so that they may have changed."""
    return tuple(Change(kind, "", None, KINDS[kind].effect) for kind in kinds)
