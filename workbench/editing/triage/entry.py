"""Triage entries, in which the user judges verdicts, and the agreement of judges with the user.

An entry names what was judged, which shows whether it still applies. Agreement is a confusion matrix and Cohen's kappa
for each criterion. It compares the user's verdict with the judge's verdict on the same answer. It counts `agent bug`,
`judge wrong`, `right`, and every label that was overridden or confirmed. It does not count `expectation wrong`, `flaky`
and `won't fix`, nor verdicts that the user gave to all cases of a cause, unseen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from workbench.events.events import MetricResult
from workbench.store.execution import Execution
from workbench.store.rates import PassRate, pass_rate
from workbench.store.reasons import judge_in
from workbench.text.counting import counted
from workbench.text.json_values import number, string


@dataclass(frozen=True, slots=True)
class Choice:
    """A triage choice.

    `says` is its meaning for the judge:

    - "failed": the agent was wrong, whatever the judge said.
    - "same": the judge is right.
    - "other": the judge is wrong.
    - "": nothing.

    `key` is its letter in the triage dialog and in the review. `label` and `short` are its names there. `name` is the
    one in triage files.
    """

    name: str
    key: str
    says: Literal["failed", "same", "other", ""]
    help: str
    label: str
    short: str


CHOICES: tuple[Choice, ...] = (
    Choice("agent bug", "a", "failed", "The agent is wrong.", "agent bug", "agent"),
    Choice(
        "expectation wrong", "x", "", "The reference, rubric or criterion is wrong.", "expectation wrong", "expected"
    ),
    Choice("judge wrong", "d", "other", "The verdict is wrong for this answer.", "judge wrong", "judge"),
    Choice("flaky", "f", "", "The outcome varies between runs; says nothing about the judge.", "flaky", "flaky"),
    Choice("won't fix", "w", "", "Accepted as it is; says nothing about the judge.", "won't fix", "won't fix"),
    Choice("right", "p", "same", "The verdict is correct.", "verdict correct", "correct"),
)
BY_NAME: Mapping[str, Choice] = {choice.name: choice for choice in CHOICES}
_FALSE_PASS = replace(
    BY_NAME["agent bug"], help="The agent is wrong, but the case passed.", label="false pass", short="false pass"
)


def offered(status: str, *, by_judge: bool) -> tuple[Choice, ...]:
    """Return the choices that make sense for a verdict. `by_judge`: a judge (a model or rules) gave the verdict."""
    left_out = {"won't fix"} if status == "passed" else set()
    if not by_judge:
        left_out.add("judge wrong")
    if status != "passed" and not (by_judge and status == "failed"):
        left_out.add("right")
    found = (_FALSE_PASS if status == "passed" and one.name == "agent bug" else one for one in CHOICES)
    return tuple(choice for choice in found if choice.name not in left_out)


BY_CAUSE = "cause"
_OTHER = {"passed": "failed", "failed": "passed"}

Part: TypeAlias = Literal["", "sentence", "rubric", "verdict"]
PARTS: tuple[Part, ...] = ("sentence", "rubric", "verdict")
"""Kinds of single labels: for a sentence of an answer, for a rubric, or a judge's verdict on a turn."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged verdict or label.

    `says` is the status or label. `judge` is the model, or "". `run` is the run's ID. `answer` is the digest of the
    agent's answers and calls.
    """

    says: str
    answer: str
    score: float | None = None
    threshold: float | None = None
    judge: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The subject of an entry: a case, one of its criteria, or one label.

    `criterion` is "" for the case's verdict. For a label, `turn` counts from 1 (None: the whole case), and `name` is
    the sentence's text or the rubric's ID.
    """

    case: str
    criterion: str = ""
    turn: int | None = None
    part: Part = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A triage entry.

    `triage` is the name of a choice, or "" if a label was overridden. `says` is the user's verdict or label, or "" if
    the entry is not about the judge. `at` is UTC in ISO 8601. `by` is "cause" if the user gave the verdict to all cases
    of a cause and did not see this one, else "".
    """

    about: About
    judged: Judged
    triage: str = ""
    says: str = ""
    note: str = ""
    at: str = ""
    by: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """The subject and the answer. The file is sorted by key. If a key is repeated, the last entry counts."""
        about = self.about
        return about.case, about.criterion, about.turn or 0, about.part, about.name, self.judged.answer


def says(choice: str, judged: str) -> str:
    """Return the verdict that a choice implies, given the judge's verdict: "passed", "failed", or "" for none."""
    meaning = BY_NAME[choice].says if choice in BY_NAME else ""
    if meaning == "same":
        return judged if judged in _OTHER else ""
    return _OTHER.get(judged, "") if meaning == "other" else meaning


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return the entry's form in the file, without empty fields."""
    about, judged = entry.about, entry.judged
    label: dict[str, Any] = {about.part: about.name} if about.part else {}
    names = ("says", "score", "threshold", "judge", "run", "answer")
    fields: dict[str, Any] = {
        "case": about.case,
        "criterion": about.criterion,
        "turn": about.turn,
        **label,
        "triage": entry.triage,
        "says": entry.says,
        "by": entry.by,
        "note": entry.note,
        "at": entry.at,
        "judged": {name: value for name in names if (value := getattr(judged, name)) not in (None, "")},
    }
    return {name: value for name, value in fields.items() if value not in (None, "") or name == about.part}


def entry_of(data: Any) -> Entry:
    """Return the entry in `data`, ignoring unknown fields.

    Raises:
        ValueError: the data is not an entry. The message says why.
    """
    if not isinstance(data, dict):
        raise ValueError("it is not an object")
    judged = data.get("judged")
    if not isinstance(judged, dict):
        raise ValueError("`judged` is missing or not an object")
    turn = data.get("turn")
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 1):
        raise ValueError("`turn` is not a positive integer")
    part: Part = next((name for name in PARTS if name in data), "")
    about = About(_text(data, "case"), _text(data, "criterion"), turn, part, _text(data, part) if part else "")
    if not about.case:
        raise ValueError("the case is missing")
    found = Judged(
        _text(judged, "says"),
        _text(judged, "answer"),
        _number(judged, "score"),
        _number(judged, "threshold"),
        _text(judged, "judge"),
        _text(judged, "run"),
    )
    return Entry(about, found, *(_text(data, name) for name in ("triage", "says", "note", "at", "by")))


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"`{key}` is not a string")
    return value


def _number(data: Mapping[str, Any], key: str) -> float | None:
    found = number(data.get(key))
    if found is None and data.get(key) is not None:
        raise ValueError(f"`{key}` is not a number")
    return found


def choice_label(name: str) -> str:
    """Return the label of a choice on the screen."""
    return BY_NAME[name].label if name in BY_NAME else name


def judged_case(record: Execution) -> Judged:
    """Return the verdict on the case."""
    return Judged(record.state, record.answer, run=record.run_id)


def judged_criterion(record: Execution, criterion: str) -> Judged:
    """Return the verdict of one of the case's criteria."""
    result = record.scores[criterion]
    return Judged(result.status, record.answer, result.score, result.threshold, _judge_name(result), record.run_id)


def judged_label(record: Execution, criterion: str, label: str) -> Judged:
    """Return one label that a judge gave for a criterion."""
    result = record.scores.get(criterion)
    return Judged(label, record.answer, judge=_judge_name(result) if result else "", run=record.run_id)


def _judge_name(result: MetricResult) -> str:
    """Return the judge's model, or ""."""
    return string(judge_in(result.details).get("model"))


Standing: TypeAlias = Literal["now", "earlier verdict", "earlier answer"]


def standing(entry: Entry, record: Execution) -> Standing:
    """Return whether an entry applies to an execution now, or only to an earlier answer or verdict.

    A label applies as long as the answer is the same.
    """
    if entry.judged.answer != record.answer:
        return "earlier answer"
    result = record.scores.get(entry.about.criterion)
    now = result.status if entry.about.criterion and result is not None else record.state
    same = bool(entry.about.part) or entry.judged.says == now
    return "now" if same else "earlier verdict"


def deciding_criterion(record: Execution) -> str:
    """Return the only criterion that failed or, if none failed, that passed; "" if there are several, or none.

    An entry that names only the case is about this criterion.
    """
    for status in ("failed", "passed"):
        found = [result.name for result in record.scores.values() if result.status == status]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


def by_judge(record: Execution, criterion: str) -> bool:
    """Return whether a judge (a model, a function or rules) gave the verdict on a criterion, or with "" on the case."""
    if criterion:
        return bool(judge_in(record.scores[criterion].details))
    return any(result.status == record.state and judge_in(result.details) for result in record.scores.values())


def kappa_of(counts: Mapping[tuple[str, str], int]) -> float | None:
    """Return Cohen's kappa of two raters, given the number of items by pair of labels.

    1 is full agreement, 0 is chance. It is None without items, or if both raters always gave the same label.
    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales, 1960.
    """
    total = sum(counts.values())
    if total == 0:
        return None
    ones, others = Counter[str](), Counter[str]()
    for (one, other), count in counts.items():
        ones[one] += count
        others[other] += count
    observed = _agreed(counts) / total
    by_chance = sum(ones[label] * others[label] for label in ones) / (total * total)
    return None if by_chance >= 1 else (observed - by_chance) / (1 - by_chance)


def _agreed(counts: Mapping[tuple[str, str], int]) -> int:
    return sum(count for (one, other), count in counts.items() if one == other)


FEW = 20
"""With fewer items, one more item can move kappa by 0.1 or more."""
_VERDICTS = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement of the user with one judge for one criterion.

    `criterion` is "" for the verdicts of cases. `part` is "" for verdicts, else the kind of label. `counts` has the
    number of items by pair of labels (user, judge). `share` is the rate of agreement with its 95% interval (Wilson).
    """

    criterion: str
    judge: str
    part: Part
    counts: Mapping[tuple[str, str], int]
    share: PassRate

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (see `kappa_of`)."""
        return kappa_of(self.counts)

    @property
    def labels(self) -> list[str]:
        """The labels that occur, with verdicts first in a fixed order."""
        found = {label for pair in self.counts for label in pair}
        return [*(name for name in _VERDICTS if name in found), *sorted(found.difference(_VERDICTS))]

    @property
    def false_passes(self) -> int:
        """Number of passes that the user judged as failed."""
        return self.counts.get(("failed", "passed"), 0)

    @property
    def few(self) -> bool:
        """Whether there are too few items for a meaningful kappa."""
        return self.share.total < FEW


def agreements(entries: Iterable[Entry]) -> list[JudgeAgreement]:
    """Return all agreements, by criterion, judge and kind of label.

    The user's and the judge's verdict are about the same answer, so entries for old answers count, too.
    """
    found: dict[tuple[str, str, Part], Counter[tuple[str, str]]] = defaultdict(Counter)
    for entry in {entry.key: entry for entry in entries}.values():
        if entry.by == BY_CAUSE or not _is_about_judge(entry):
            continue
        group = entry.about.criterion, entry.judged.judge, entry.about.part
        found[group][entry.says, entry.judged.says] += 1
    return [
        JudgeAgreement(*group, counts, pass_rate(_agreed(counts), counts.total()))
        for group, counts in sorted(found.items(), key=itemgetter(0))
    ]


def left_out(entries: Iterable[Entry]) -> int:
    """Return the number of entries that do not count because the user judged all cases of a cause at once."""
    found = {entry.key: entry for entry in entries}.values()
    return sum(entry.by == BY_CAUSE and _is_about_judge(entry) for entry in found)


def left_out_text(number: int) -> str:
    """Return a sentence about a number of verdicts that do not count."""
    return f"Not counted: {counted(number, 'verdict')} given by cause, unseen."


def _is_about_judge(entry: Entry) -> bool:
    """Return whether the entry compares the user with the judge: both gave a label, or a verdict (passed or failed)."""
    if not entry.says or not entry.judged.says:
        return False
    return bool(entry.about.part) or entry.judged.says in _VERDICTS
