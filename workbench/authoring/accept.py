"""What an agent did, taken over into a case as what is expected of it: as a list of the smallest differences (hunks),
of which any may be accepted. The rest of the case stays as it is, in the spelling and the shape that it has."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.authoring.accept_turn import Hunk, TurnComparison
from workbench.authoring.turn_steps import Shape, in_both_shapes, shape_of
from workbench.json_values import mapping
from workbench.model.invocation import content_text
from workbench.model.spelling import get, is_camel


class NotComparableError(ValueError):
    """Nothing of the transcript can be taken over; the message says why, and what can be done."""


class Comparison:
    """A case's JSON (`raw`, as it stands in the file) beside the turns of its transcript: invocations in snake_case,
    None for a turn without its end. `notes` name the turns that are left out, and why.

    Raises:
        NotComparableError: it is a scenario, has no turns, or all of them are left out.
    """

    def __init__(self, raw: Mapping[str, Any], actual: Sequence[Mapping[str, Any] | None]) -> None:
        self._raw, self._actual = raw, actual
        self._camel = is_camel(raw)
        self._otherwise = _shape(raw)
        self.notes: tuple[str, ...] = ()
        self._turns = tuple(self._comparable())
        self.hunks: tuple[Hunk, ...] = tuple(
            hunk for number in self._turns for hunk in self._compare(number, raw).hunks()
        )

    def accepted(self, hunks: Iterable[Hunk]) -> dict[str, Any]:
        """The case with these hunks accepted, whatever their order; `raw` stays as it was."""
        wanted = frozenset(hunks)
        case: dict[str, Any] = copy.deepcopy(dict(self._raw))
        for number in sorted({hunk.turn for hunk in wanted}):
            self._compare(number, case).accept(wanted)
        # What was taken over belongs to the transcript.
        return copy.deepcopy(case)

    def _compare(self, number: int, case: Mapping[str, Any]) -> TurnComparison:
        turn = case["conversation"][number]
        return TurnComparison(number, turn, self._actual[number], camel=self._camel, otherwise=self._otherwise)

    def _comparable(self) -> Iterator[int]:
        if get(self._raw, "conversation_scenario") is not None:
            raise NotComparableError(
                "this case is a scenario: its simulated user speaks freely, so that no turn of a run can be expected "
                "of the next one"
            )
        turns = self._raw.get("conversation")
        if not isinstance(turns, list) or not turns:
            raise NotComparableError("this case has no turns: add one first (e)")
        found, notes = [], []
        for number, turn in enumerate(turns):
            why_not = _why_not(turn, self._actual[number] if number < len(self._actual) else None)
            if why_not:
                notes.append(f"turn {number + 1}: {why_not}")
            else:
                found.append(number)
        self.notes = tuple(notes)
        if not found:
            raise NotComparableError(notes[0])
        return iter(found)


def _why_not(turn: Any, actual: Mapping[str, Any] | None) -> str:
    """Why nothing of a turn can be taken over; "" if it can."""
    if actual is None:
        return "the agent did not come to the end of it in the last run"
    if not isinstance(turn, dict) or in_both_shapes(turn):
        return "its steps are written in both shapes, of which ADK reads one: make it one first (E)"
    asked, said = (content_text(mapping(get(one, "user_content"))) for one in (turn, actual))
    if asked != said:
        return "the user's message is another one since the last run: run the case again (r)"
    return ""


def _shape(raw: Mapping[str, Any]) -> Shape:
    """How steps are written where a turn has none: as in the others."""
    turns = raw.get("conversation")
    shapes = {shape_of(turn) for turn in turns} if isinstance(turns, list) else set()
    return "recorded" if "recorded" in shapes and "authored" not in shapes else "authored"
