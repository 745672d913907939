"""Descriptions of criteria: everything that forms, checks, presets, costs, panes and docs know about them.

A description is loaded when the workbench opens, so its module imports no heavy library but pydantic. The function that
computes the score is named in `score` and loaded when a case is scored.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Required, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from workbench.criteria.base import NotScorableError
from workbench.criteria.json_difference import shown
from workbench.files.breaches import breaches_of, expected_words, explain
from workbench.files.criteria import Criterion
from workbench.files.faults import Breach
from workbench.files.schema import Rubric
from workbench.judges.base import JudgeModelOptions
from workbench.text.safe_text import one_line

Effect: TypeAlias = Literal["decide", "score"]
"""Work that a change of an option requires: `decide` compares stored scores again, `score` computes the score again."""
Part: TypeAlias = Literal["message", "answer", "calls"]
"""A part of a turn that a criterion examines: the user's message, the final answer, the tool calls."""
Shown: TypeAlias = Literal["calls", "words", "claims", "rubrics", "simulator"]
"""Part of the screen that shows details: a turn's calls, its answer by word, claims, rubrics, or the simulated user."""

_MOST_LETTERS, _LEAST_LETTERS = 6, 3
_WORDS = re.compile("(?<=[a-z])([A-Z])")
_COUNT = re.compile("v?[0-9]+")
_FILLERS = re.compile("a|and|avg|based|checks?|criterion|custom|eval|has|is|metric|my|of|quality|rate|score|the", re.I)
JUDGE, RUBRICS = "judge_model_options", "rubrics"
INTERMEDIATE = "include_intermediate_responses_in_final"


class Options(BaseModel):
    """Base of all option models; a criterion without options uses it. Each field has a default and a description."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, loc_by_alias=False, defer_build=True)


class JudgeOptions(Options):
    """Options of a criterion that uses a judge."""

    judge_model_options: JudgeModelOptions = Field(
        default_factory=lambda: JudgeModelOptions.model_validate({}),
        description="The judge, its number of samples and its settings: see [the judge](#the-judge).",
    )


class RubricOptions(JudgeOptions):
    """Options of a criterion that asks a judge about rubrics."""

    rubrics: list[Rubric] = Field(
        default_factory=list, description="Rubrics for every case, besides those of cases and turns."
    )


class IntermediateOptions(Options):
    """An option that ADK accepts for every criterion but reads only for those whose options derive from this class."""

    include_intermediate_responses_in_final: bool = Field(
        False, description="Judge the texts before tool calls together with the answer."
    )


AnyOptions = TypeVar("AnyOptions", bound=Options)


def decides(default: Any, description: str, *, way: str = "") -> Any:
    """Return an option that can be changed without scoring again. `way` describes its effect on the score."""
    return Field(default, description=description, json_schema_extra={"effect": "decide", "way": way})


def fields_of(model: Any) -> Mapping[str, FieldInfo]:
    """Return the fields of a model, or the keys of a typed dictionary, with their descriptions, limits and defaults."""
    if not is_typeddict(model):
        fields: Mapping[str, FieldInfo] = model.model_fields
        return fields
    hints = get_type_hints(model, include_extras=True)
    bare = {name: get_args(hint)[0] if get_origin(hint) is Required else hint for name, hint in hints.items()}
    return {
        name: FieldInfo.from_annotation(hint)
        if name in model.__required_keys__
        else FieldInfo.from_annotated_attribute(hint, None)
        for name, hint in bare.items()
    }


def field_extra(field: FieldInfo, key: str) -> str:
    """Return the value stored under `key` beside a field's description, or "" if there is none."""
    extra = field.json_schema_extra
    return str(extra.get(key, "")) if isinstance(extra, dict) else ""


def default_text(field: FieldInfo) -> str:
    """Return the default of an option as text, such as `none`.

    Return "" for a required option and for an option with its own options.
    """
    default = field.get_default(call_default_factory=True)
    if words := field_extra(field, "none"):
        return words
    if field.is_required() or isinstance(default, BaseModel):
        return ""  # Its own options have defaults.
    if default in (None, [], {}):
        return "none"
    return default if isinstance(default, str) else json.dumps(default, ensure_ascii=False, default=str)


def choices_of(field: FieldInfo) -> tuple[Any, ...]:
    """Return the values of a field whose type is bool or `Literal`."""
    return (False, True) if field.annotation is bool else get_args(field.annotation)


def read_options(model: type[AnyOptions], criterion: Criterion) -> AnyOptions:
    """Read the options of a criterion as ADK reads them.

    Raises:
        NotScorableError: An option is refused.
    """
    try:
        return model.model_validate(criterion.options)
    except ValidationError:
        messages = "; ".join(breach.message for breach in breaches_of(model, criterion.options))
        raise NotScorableError(f"{criterion.name}: {messages}") from None


@dataclass(frozen=True, kw_only=True)
class Asks:
    """The judge or service that a criterion uses for its score, and how many questions it sends."""

    who: Literal["judge", "service"]
    about: str = "turn"
    """The subject of one question as text, such as `turn`."""
    once: bool = False
    """Whether the conversation is judged once as a whole, instead of turn by turn."""
    questions: int = 1
    votes: bool = True
    """Whether each question is sent up to `num_samples` times."""
    more_with: str = ""
    """Name of a flag that adds further texts of a turn to the questions."""


@dataclass(frozen=True, kw_only=True)
class CriterionDescription:
    """The description of one criterion.

    `measures`, `when_to_use` and `how_to_read` are sentences for people. `title` and `short_name` have two or three
    words. `short` is the title of its column in tables: at most six letters, by default made from the name.
    """

    name: str
    title: str
    measures: str
    when_to_use: str
    how_to_read: str
    score: str
    """`module:function`, from a `ScoreRequest` to `Scored`; "" if the criterion is not supported yet.

    With `asks` it is a coroutine function that also gets a `Bench`.
    """
    short_name: str = ""
    short: str = ""
    options: type[Options] = Options
    asks: Asks | None = None
    needs_reference: bool = False
    rubric_type: str = ""
    """Type of the case and turn rubrics that the criterion reads; "" if it reads none."""
    scenarios: Literal["yes", "no", "only"] = "yes"
    """Whether the criterion suits cases with a simulated user. `only`: it suits no others."""
    lowest: float = 0.0
    highest: float = 1.0
    first_threshold: float = 0.8
    """The threshold proposed when the criterion is added."""
    unit: str = ""
    """The unit of an informational criterion."""
    informational: bool = False
    limit: str = ""
    """For an informational criterion: the option of `limits` that limits the same figure, or ""."""
    looks_at: frozenset[Part] = frozenset()
    """Parts of a turn that the criterion examines. If empty, it examines the whole conversation."""
    shown_in: frozenset[Shown] = frozenset()
    rescore: str = ""
    """`module:function` that computes the score with other options from a result's `details`.

    It returns None if the details do not suffice. It is for criteria with fields from `decides`. Without it, the
    transcript is scored again.
    """
    cause: str = ""
    """`module:function` that names the cause of a failure, by which failing cases are grouped.

    It gets the result of a failed case and those of its turns. It returns a short text that is the same for similar
    cases, such as `rubric no_jargon not met`, or "" if it knows none. Stored details may have any form: if the function
    raises, that counts as "".
    """
    adk_ignores: frozenset[str] = frozenset()
    """Options that only the workbench reads. ADK keeps them and scores as if they were not there."""
    only_here: bool = False
    """Whether ADK lacks the criterion. ADK skips it if the config gives it a `threshold`."""
    compares_end_state: bool = False
    """Whether the expected end state decides its score."""
    needs_one_of: tuple[str, ...] = ()
    """Options of which at least one must be set."""
    presets: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Its value in each preset that includes it, by preset name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "short", short_title(self.short or self.name))

    @property
    def supported(self) -> bool:
        """Whether this version can score the criterion."""
        return bool(self.score)

    @property
    def suits_scenarios(self) -> bool:
        """Whether the criterion can judge a conversation with a simulated user."""
        return self.scenarios != "no" and not self.informational and self.supported

    @property
    def needs_judge(self) -> bool:
        """Whether the criterion uses a judge."""
        return self.asks is not None and self.asks.who == "judge"

    @property
    def needs_service(self) -> bool:
        """Whether the criterion uses Google's evaluation service."""
        return self.asks is not None and self.asks.who == "service"

    @property
    def once(self) -> bool:
        """Whether the conversation is judged once as a whole."""
        return self.asks is not None and self.asks.once

    @property
    def range(self) -> str:
        """The possible scores as text, or the unit of an informational criterion."""
        return self.unit or f"{self.lowest:g} to {self.highest:g}"

    @property
    def compares_calls(self) -> bool:
        """Whether the expected tool calls decide the score."""
        return self.needs_reference and "calls" in self.looks_at

    @property
    def compares_answers(self) -> bool:
        """Whether the expected answers decide the score."""
        return self.needs_reference and "answer" in self.looks_at

    def compares_texts(self, options: Mapping[str, Any]) -> bool:
        """Return whether the expected texts before the answers may decide the score, with these options."""
        reads = INTERMEDIATE in self.option_names and options.get(INTERMEDIATE) is True
        return self.needs_reference and (reads or not self.looks_at)

    def defaults(self) -> dict[str, Any]:
        """Return the default of each option, including the judge's options."""
        fields = {**self.options.model_fields, **(JudgeModelOptions.model_fields if self.needs_judge else {})}
        values = ((name, option.get_default(call_default_factory=True)) for name, option in fields.items())
        return {name: value for name, value in values if not isinstance(value, BaseModel)}

    def useless_options(self, options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield each option whose value makes the criterion useless: its name, this value, and the value that works."""
        for name, option in self.options.model_fields.items():
            only, value = field_extra(option, "only"), options.get(name)
            if only and isinstance(value, str) and value != only:
                yield name, value, only

    @cached_property
    def option_names(self) -> frozenset[str]:
        """Keys allowed beside `threshold`, in snake_case."""
        return frozenset(self.options.model_fields)

    def effect_of(self, option: str) -> Effect:
        """Return what a change of `threshold` or an option requires."""
        return "decide" if option == "threshold" or option in self.deciding else "score"

    @cached_property
    def deciding(self) -> Mapping[str, FieldInfo]:
        """Options that can be changed without scoring again."""
        fields = self.options.model_fields.items()
        return {name: option for name, option in fields if field_extra(option, "effect") == "decide"}


def short_title(name: str) -> str:
    """Return at most six letters of the first distinctive word of a name: `greeti` for `checkGreeting`.

    A word of one or two letters is joined with the next distinctive word.
    """
    words = [word for word in _WORDS.sub(r" \1", name).replace("_", " ").split() if not _COUNT.fullmatch(word)]
    telling = [word for word in words if not _FILLERS.fullmatch(word)] or words or [name.strip() or "?"]
    found = one_line(telling[0].lower())
    if len(found) < _LEAST_LETTERS and len(telling) > 1:
        found += one_line(telling[1].lower())
    return found[:_MOST_LETTERS]


def option_breaches(model: type[Options], name: str, value: Any) -> list[Breach]:
    """Return the problems in the value of an option that ADK would notice only after the agent has run."""
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        details = error.errors(include_url=False)
        if not details[0]["loc"]:
            return []  # A rule that involves several options: `combined_breach` checks it.
        if len(details[0]["loc"]) == 1:
            return [Breach((), f"`{name}` is {shown(value)}: expected {expected_words(details[0])}")]
        return [
            replace(
                breach,
                location=breach.location[1:],
                message=breach.message.replace("ADK rejects the file", "ADK refuses the criterion"),
            )
            for breach in explain(model, error)
        ]
    return _repeated_ids(value) if name == RUBRICS else []


def combined_breach(model: type[Options], criterion: Criterion) -> str:
    """Return why options that are valid one by one cannot be combined, or "".

    A model with such a rule raises ValueError in a validator of the whole model.
    """
    try:
        model.model_validate(criterion.options)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        return str(details.get("ctx", {}).get("error", details["msg"]))
    return ""


def _repeated_ids(rubrics: list[dict[str, Any]]) -> list[Breach]:
    seen, found = set(), []
    for index, rubric in enumerate(rubrics):
        name = rubric.get("rubric_id", rubric.get("rubricId"))
        if name in seen:
            found.append(Breach((index,), f"the rubric id `{name}` is used twice", "Give each rubric its own id"))
        seen.add(name)
    return found
