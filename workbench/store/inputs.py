"""The inputs that a verdict depends on: their kinds, their records, and the changes of inputs.

To add a kind of input, add a row to `KINDS`. `workbench.freshness.current.other_files` finds its files. Other
values are read in `workbench.freshness.current`, and recorded by a run in `workbench.run.input_recorder`. All
views (stale marks, `status`, resume, watch, score, compare) work on changes and need nothing else.

In events, `RunStarted.inputs` has `salt` (the id of the digests' salt), `bundles` (as JSON), `planned` (agent and
evalset → numbers of the bundles of executions that have not ended) and `options` (of the whole run).
`FilesRead` has more `bundles`, and more numbers for `planned`. `CaseFinished.inputs` are the numbers of an execution's
bundles. Inputs from the evalset and the config are in `CaseStarted`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from workbench.events.events import CaseStarted
from workbench.text.counting import few

if TYPE_CHECKING:
    from workbench.files.criteria import CriteriaConfig

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
    # Some criteria need only `decide`. `workbench.criteria.registry.effect_of` knows which.
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

    `name` is "" if the run did not record that kind of input. Then it may have changed. `file` is relative to the root,
    or None if the input is not in a file. `criterion` is the criterion that an option or a judge belongs to, or "".
    """

    input: Input
    name: str
    file: str | None
    effect: Effect
    criterion: str = ""


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
    """Return a change for each kind of input that a run did not record, because such an input may have changed."""
    return tuple(Change(kind, "", None, KINDS[kind].effect) for kind in kinds)


Values = Mapping[str, str]
"""Values of inputs by name. Each value is a digest or a short JSON text."""
CODE = "custom_metrics"
"""The option of a criterion that names the user's own function. The function gets the threshold and decides itself."""
INTERPRETER = "interpreter"
"""The name of Python's path among the packages."""
ONLY_SENT = "only variables that travel"
"""A placeholder among the variables of a verdict from another machine: only variables sent there counted."""


@dataclass(frozen=True)
class Bundle:
    """Inputs that many executions of a run share, so that they are stored once.

    `file` is the source of their values, or None. A kind without values was read and is empty. A missing kind was not
    read.
    """

    inputs: Mapping[Input, Values]
    file: str | None = None

    @cached_property
    def digest(self) -> str:
        """A digest that is the same for equal bundles."""
        return digest(self.as_json())

    @cached_property
    def comparisons(self) -> dict[Any, tuple[tuple["Bundle", ...], tuple["Bundle", ...], tuple[Change, ...]]]:
        """Cached results of `workbench.freshness.staleness.compare` for this bundle."""
        return {}

    def as_text(self) -> str:
        """Return the JSON text, which is the same for equal bundles."""
        return _canonical(self.as_json())

    def as_json(self) -> list[Any]:
        """Return the JSON form."""
        return [self.file, self.inputs]

    @classmethod
    def from_json(cls, data: Any) -> "Bundle":
        """Read the JSON form, ignoring unknown kinds of input. Raise ValueError or TypeError for any other data."""
        if not (isinstance(data, list) and len(data) == 2 and isinstance(data[1], dict)):
            raise ValueError("not a bundle of inputs")
        inputs = {kind: dict(values) for kind, values in data[1].items() if kind in KINDS}
        return cls(inputs, data[0] if isinstance(data[0], str) else None)


@dataclass(frozen=True)
class Record:
    """The inputs of one execution of a case of `evalset` (relative to the root)."""

    evalset: str
    bundles: tuple[Bundle, ...]

    def value(self, kind: Input, name: str) -> str | None:
        """Return the value of one input, or None if the record does not have it."""
        found = (bundle.inputs.get(kind, {}).get(name) for bundle in self.bundles)
        return next((value for value in found if value is not None), None)

    def names(self, kind: Input) -> frozenset[str]:
        """Return the names of the inputs of a kind."""
        return frozenset(name for bundle in self.bundles for name in bundle.inputs.get(kind, ()))


def digest(value: Any) -> str:
    """Return a digest that is the same for equal JSON values, whatever the order of their keys."""
    return blake2b(_canonical(value).encode("ascii"), digest_size=8).hexdigest()


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict).encode


class RunInputs:
    """The bundles of one run, by number.

    `planned` and `options` have the form of `RunStarted.inputs`. Data of any shape is accepted. An invalid bundle keeps
    its number and is empty.
    """

    def __init__(self, inputs: Mapping[str, Any] | None = None) -> None:
        self.salt_id = ""
        self.planned: dict[str, list[int]] = {}
        self.options: dict[str, Any] = {}
        self.bundles: list[Bundle] = []
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[int, ...], tuple[Bundle, ...]] = {}
        """Cached results of `bundles_of`. Executions with the same inputs share one tuple."""
        if inputs:
            self.salt_id = str(inputs.get("salt"))
            planned, options = inputs.get("planned"), inputs.get("options")
            self.planned = dict(planned) if isinstance(planned, dict) else {}
            self.options = dict(options) if isinstance(options, dict) else {}
            self.extend(inputs.get("bundles"))

    @property
    def injects_faults(self) -> bool:
        """Whether faults were injected into calls of the run."""
        return bool(self.options.get("inject"))

    def extend(self, bundles: Any) -> None:
        """Add bundles from their JSON."""
        for data in bundles if isinstance(bundles, list | tuple) else ():
            try:
                bundle = Bundle.from_json(data)
            except (ValueError, TypeError):
                bundle = Bundle({})
            self._numbers.setdefault(bundle.digest, len(self.bundles))
            self.bundles.append(bundle)

    def numbers(self, bundles: Iterable[Bundle]) -> tuple[int, ...]:
        """Return the numbers of bundles, adding new ones."""
        found = []
        for bundle in bundles:
            number = self._numbers.setdefault(bundle.digest, len(self.bundles))
            if number == len(self.bundles):
                self.bundles.append(bundle)
            found.append(number)
        return tuple(found)

    def bundles_of(self, numbers: Any) -> tuple[Bundle, ...]:
        """Return the bundles with these numbers. Unknown numbers are ignored."""
        known = range(len(self.bundles))
        wanted: Sequence[Any] = numbers if isinstance(numbers, list | tuple) else ()
        found = tuple(number for number in wanted if isinstance(number, int) and number in known)
        return self._found.setdefault(found, tuple(map(self.bundles.__getitem__, found)))

    def of_planned(self, agent: str, evalset: str, text: str) -> tuple[Bundle, ...]:
        """Return the bundles of an execution that has not ended, or (). `text` is the digest of its case's text."""
        found = self.bundles_of(self.planned.get(planned_key(agent, evalset)))
        return (Bundle({"case": {"text": text} if text else {}}), *found) if found else ()

    def as_json(self) -> dict[str, Any]:
        """Return the form of `RunStarted.inputs`."""
        bundles = [bundle.as_json() for bundle in self.bundles]
        return {"salt": self.salt_id, "bundles": bundles, "planned": self.planned, "options": self.options}


def planned_key(agent: str, evalset: str) -> str:
    """Return the key in `planned` of an agent and an evalset."""
    return f"{agent} {evalset}"


_JUDGE = "judge_model_options"
_LONGEST = 60
LONG = "#"
"""Prefix of the digest of a value that is too long to show."""
_MESSAGE = "user_content"
_INPUTS = {
    "prompt",
    "agent_data",
    "conversation_history",
    "user_scenario",
    "reference",
    "rubric_groups",
    "eval_case_id",
}
"""Keys of a dataset's case that an evalset's case has in another form, and its ID. They are not compared twice."""


def started_case(started: CaseStarted) -> Bundle:
    """Return the inputs in the evalset of a case that has started."""
    return case_bundle(
        started.expected,
        started.scenario,
        started.session,
        started.rubrics,
        started.final_session_state,
        started.dataset_case,
    )


def started_config(started: CaseStarted, config_file: str | None) -> tuple[Bundle, Bundle]:
    """Return the inputs in the config of a case that has started: the criteria, and the simulated user's settings."""
    # Imported late: it needs pydantic, which is slow to load, and most lists of runs do not need it.
    from workbench.files.criteria import stored_config

    config = stored_config(started.criteria, started.custom_metrics, None)
    simulator = None if started.scenario is None else started.simulator
    return criteria_bundle(config, config_file), simulator_bundle(simulator, config_file)


def case_bundle(
    turns: Sequence[Mapping[str, Any]] | None,
    scenario: Mapping[str, Any] | None,
    session: Mapping[str, Any] | None,
    rubrics: Sequence[Any],
    final_session_state: Any = None,
    dataset_case: Mapping[str, Any] | None = None,
) -> Bundle:
    """Return the inputs of a case. `scenario` has its persona in full. `session` is None if it is not known."""
    expected = {
        key: digest([turn.get(key) for turn in turns or ()])
        for key in sorted({key for turn in turns or () for key in turn if key != _MESSAGE})
    }
    if rubrics:
        expected["rubrics"] = digest([list(rubrics), expected.get("rubrics")])
    if final_session_state is not None:
        expected["final_session_state"] = digest(final_session_state)
    expected |= {key: digest(value) for key, value in (dataset_case or {}).items() if key not in _INPUTS}
    messages = {} if turns is None else {"user messages": digest([turn.get(_MESSAGE) for turn in turns])}
    inputs: dict[Input, dict[str, str]] = {"case": messages, "expected": expected, "scenario": _values(scenario or {})}
    return Bundle(inputs if session is None else {**inputs, "session": _values(session)})


def criteria_bundle(config: "CriteriaConfig", file: str | None) -> Bundle:
    """Return the criteria with their thresholds and options, and the options of their judges."""
    criteria: dict[str, str] = {}
    judge: dict[str, str] = {}
    for item in config.criteria:
        criteria[f"{item.name} threshold"] = readable(None if item.is_informational else item.threshold)
        for option, value in item.options.items():
            if option == _JUDGE and isinstance(value, dict):
                judge |= {f"{item.name} {key}": readable(each) for key, each in value.items()}
            else:
                criteria[f"{item.name} {option}"] = readable(value)
        if item.name in config.custom_metrics:
            criteria[f"{item.name} {CODE}"] = readable(config.custom_metrics[item.name])
    return Bundle({"criteria": criteria, "judge": judge}, file)


def simulator_bundle(config: Mapping[str, Any] | None, file: str | None) -> Bundle:
    """Return the settings of the simulated user, without values if `config` is None."""
    return Bundle({"simulator": {key: readable(value) for key, value in (config or {}).items()}}, file)


def readable(value: Any) -> str:
    """Return the JSON of a value if it is short enough to show, else `LONG` and its digest."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else LONG + digest(value)


def _values(data: Mapping[str, Any]) -> dict[str, str]:
    return {key: digest(value) for key, value in data.items()}
