"""One thing the user said of a verdict, beside what was judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be said of a verdict. `says` is what it means for the judge: "failed" (the agent did wrong, whatever the
    judge said), "same" or "other" (the judge is right or wrong), "" (nothing: it is not about the judge)."""

    name: str
    says: Literal["failed", "same", "other", ""]
    help: str


CHOICES: tuple[Choice, ...] = (
    Choice("agent bug", "failed", "The agent did wrong. Of a case that passed: a false pass."),
    Choice("expectation wrong", "", "The reference, the rubric or the criterion asks for the wrong thing."),
    Choice("judge wrong", "other", "The criterion gave the wrong verdict for this answer."),
    Choice("flaky", "", "Sometimes so, sometimes so: nothing to learn from this one."),
    Choice("won't fix", "", "It stays as it is; nothing is said of the judge."),
    Choice("right", "same", "The verdict is right: a pass that is one, a failure that is one."),
)
BY_NAME: Mapping[str, Choice] = {choice.name: choice for choice in CHOICES}
_OTHER = {"passed": "failed", "failed": "passed"}

Part: TypeAlias = Literal["", "sentence", "rubric", "verdict"]
PARTS: tuple[Part, ...] = ("sentence", "rubric", "verdict")
"""Of what a single label is: a sentence of an answer, a rubric, or a judge's verdict over a turn."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was judged: `says` a status or a label. `judge` is the model ("" for none), `run` the id of the run,
    `answer` the digest of what the agent said and did."""

    says: str
    answer: str
    score: float | None = None
    threshold: float | None = None
    judge: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """What something is said of: a case, one criterion of it ("": the case's verdict), or one label of a turn (counted
    from 1, None: over the case): `name` is the text of the sentence or the id of the rubric."""

    case: str
    criterion: str = ""
    turn: int | None = None
    part: Part = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """`triage` is the name of a choice, "" where a label was overridden; `says` the verdict or label that holds for the
    user, "" where nothing is said about the judge. `at` is UTC in ISO 8601."""

    about: About
    judged: Judged
    triage: str = ""
    says: str = ""
    note: str = ""
    at: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """Two entries with this in common are of the same thing and the same answer: the later one holds. Sorts as
        the file is sorted."""
        about = self.about
        return about.case, about.criterion, about.turn or 0, about.part, about.name, self.judged.answer


def says(choice: str, judged: str) -> str:
    """The verdict that a choice stands for, given what was judged: "passed", "failed", or "" for none."""
    meaning = BY_NAME[choice].says if choice in BY_NAME else ""
    if meaning == "same":
        return judged if judged in _OTHER else ""
    return _OTHER.get(judged, "") if meaning == "other" else meaning


def entry_json(entry: Entry) -> dict[str, Any]:
    """Its form in the file; what is empty is left out."""
    about, judged = entry.about, entry.judged
    label: dict[str, Any] = {about.part: about.name} if about.part else {}
    fields: dict[str, Any] = {
        "case": about.case,
        "criterion": about.criterion,
        "turn": about.turn,
        **label,
        "triage": entry.triage,
        "says": entry.says,
        "note": entry.note,
        "at": entry.at,
        "judged": {
            name: value
            for name in ("says", "score", "threshold", "judge", "run", "answer")
            if (value := getattr(judged, name)) not in (None, "")
        },
    }
    return {name: value for name, value in fields.items() if value not in (None, "") or name == about.part}


def entry_of(data: Any) -> Entry:
    """Raises ValueError (why, in few words) if that is no entry. Members that are not known are passed over."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    judged = data.get("judged")
    if not isinstance(judged, dict):
        raise ValueError("it does not say what was judged")
    turn = data.get("turn")
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 1):
        raise ValueError("its turn is no number from 1 up")
    part: Part = next((name for name in PARTS if name in data), "")
    about = About(_text(data, "case"), _text(data, "criterion"), turn, part, _text(data, part) if part else "")
    if not about.case:
        raise ValueError("it names no case")
    found = Judged(
        _text(judged, "says"),
        _text(judged, "answer"),
        _number(judged, "score"),
        _number(judged, "threshold"),
        _text(judged, "judge"),
        _text(judged, "run"),
    )
    return Entry(about, found, *(_text(data, name) for name in ("triage", "says", "note", "at")))


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"its {key} is no text")
    return value


def _number(data: Mapping[str, Any], key: str) -> float | None:
    value = data.get(key)
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise ValueError(f"its {key} is no number")
    return None if value is None else float(value)
