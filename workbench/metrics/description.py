"""The description of a criterion: all that forms, checks, presets, costs, panes and docs know of it.

A description is loaded when the workbench opens, so its module imports no library but pydantic. `score` names the
function that computes the score, which is loaded when a case is scored.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from workbench.judge.options import JudgeModelOptions
from workbench.metrics.base import NotScorableError
from workbench.metrics.json_difference import shown
from workbench.model.breaches import Breach
from workbench.model.criteria import Criterion
from workbench.model.evalset_schema import Rubric
from workbench.model.schema_messages import breaches_of, explain, wanted

Effect: TypeAlias = Literal["decide", "score"]
"""What a change asks for: `decide` compares what is stored, `score` makes the score again."""
Part: TypeAlias = Literal["message", "answer", "calls"]
"""What a criterion looks at in a turn: the user's message, the final answer, the tool calls."""
Shown: TypeAlias = Literal["calls", "words", "claims", "rubrics", "simulator"]
"""Where details are shown: beside the calls or the answer of a turn, or in the pane of that name."""

JUDGE, RUBRICS = "judge_model_options", "rubrics"
INTERMEDIATE = "include_intermediate_responses_in_final"


class Options(BaseModel):
    """The options of a criterion that has none; others derive from it. Each has a default and a description."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, loc_by_alias=False, defer_build=True)


class JudgeOptions(Options):
    """The options of a criterion that asks a judge."""

    judge_model_options: JudgeModelOptions = Field(
        default_factory=lambda: JudgeModelOptions.model_validate({}),
        description="Which judge is asked, how often, and with which settings: see [the judge](#the-judge).",
    )


class RubricOptions(JudgeOptions):
    """The options of a criterion that asks a judge about rubrics."""

    rubrics: list[Rubric] = Field(
        default_factory=list, description="Rubrics that apply to every case, besides those of cases and turns."
    )


class IntermediateOptions(Options):
    """An option that ADK takes on every criterion, and reads on those whose options derive from this class."""

    include_intermediate_responses_in_final: bool = Field(
        False, description="Judge what was said before tool calls together with the answer."
    )


AnyOptions = TypeVar("AnyOptions", bound=Options)


def decides(default: Any, description: str, *, way: str = "") -> Any:
    """Return a field for an option whose change asks nobody: the score under it follows from what is stored. `way`
    names what a flag does, where the outlook lists it beside the other ways of scoring."""
    return Field(default, description=description, json_schema_extra={"effect": "decide", "way": way})


def extra_of(field: FieldInfo, key: str) -> str:
    """Return what a field says under `key` beside its description; "" if nothing."""
    extra = field.json_schema_extra
    return str(extra.get(key, "")) if isinstance(extra, dict) else ""


def default_words(field: FieldInfo) -> str:
    """Return in words what holds where an option is not given."""
    default = field.get_default(call_default_factory=True)
    if words := extra_of(field, "none"):
        return words
    if isinstance(default, BaseModel):
        return ""  # Its own options have defaults.
    if default in (None, [], {}):
        return "none"
    return default if isinstance(default, str) else json.dumps(default, ensure_ascii=False, default=str)


def choices_of(field: FieldInfo) -> tuple[Any, ...]:
    """Return the values that a field can have, () if they cannot be listed."""
    return (False, True) if field.annotation is bool else get_args(field.annotation)


def read_options(model: type[AnyOptions], criterion: Criterion) -> AnyOptions:
    """Read the options of a criterion as ADK reads them.

    Raises:
        NotScorableError: one that ADK refuses.
    """
    try:
        return model.model_validate(criterion.options)
    except ValidationError:
        said = "; ".join(breach.message for breach in breaches_of(model, criterion.options))
        raise NotScorableError(f"{criterion.name}: {said}") from None


@dataclass(frozen=True, kw_only=True)
class Asks:
    """Who is asked for a score, and how often."""

    who: Literal["judge", "service"]
    about: str = "turn"
    """What a question is about, in words."""
    once: bool = False
    """Whether the conversation is judged once, as a whole, and not turn by turn."""
    questions: int = 1
    votes: bool = True
    """Whether each question is asked `num_samples` times."""
    more_with: str = ""
    """The name of a flag with which several texts of a turn are asked about."""


@dataclass(frozen=True, kw_only=True)
class CriterionDescription:
    """One criterion. `measures`, `when_to_use` and `how_to_read` are sentences for people; `title` and `short_name` are
    two or three words."""

    name: str
    title: str
    measures: str
    when_to_use: str
    how_to_read: str
    score: str
    """`module:function`, from a `ScoreRequest` to `Scored` (a coroutine function that also gets a `Bench` if it asks
    somebody); "" while it is not supported."""
    short_name: str = ""
    options: type[Options] = Options
    asks: Asks | None = None
    needs_reference: bool = False
    rubric_type: str = ""
    """The type of the rubrics of cases and turns that it reads; "" if it reads none."""
    scenarios: Literal["yes", "no", "only"] = "yes"
    """Whether it suits cases with a simulated user."""
    lowest: float = 0.0
    highest: float = 1.0
    first_threshold: float = 0.8
    """The threshold that is proposed for it."""
    unit: str = ""
    """What an informational criterion counts."""
    informational: bool = False
    looks_at: frozenset[Part] = frozenset()
    """Empty: at the whole conversation."""
    shown_in: frozenset[Shown] = frozenset()
    rescore: str = ""
    """`module:function`, from the `details` of a result and other options to the score under them, or None. For
    criteria with options that decide; without it, the transcript is scored again."""
    presets: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Its value in each preset that has it, by the name of the preset."""

    @property
    def supported(self) -> bool:
        """Whether this version can score it."""
        return bool(self.score)

    @property
    def suits_scenarios(self) -> bool:
        """Whether it can judge a conversation with a simulated user."""
        return self.scenarios != "no" and not self.informational and self.supported

    @property
    def needs_judge(self) -> bool:
        """Whether a judge model is asked."""
        return self.asks is not None and self.asks.who == "judge"

    @property
    def needs_service(self) -> bool:
        """Whether Google's evaluation service is asked."""
        return self.asks is not None and self.asks.who == "service"

    @property
    def once(self) -> bool:
        """Whether the conversation is judged once, as a whole."""
        return self.asks is not None and self.asks.once

    @property
    def range(self) -> str:
        """The scores it gives, in words."""
        return self.unit or f"{self.lowest:g} to {self.highest:g}"

    @property
    def compares_calls(self) -> bool:
        """Whether the expected tool calls decide its score."""
        return self.needs_reference and "calls" in self.looks_at

    @property
    def compares_answers(self) -> bool:
        """Whether the expected answers decide its score."""
        return self.needs_reference and "answer" in self.looks_at

    def defaults(self) -> dict[str, Any]:
        """Return what holds where an option is not given, the options of the judge among them."""
        fields = {**self.options.model_fields, **(JudgeModelOptions.model_fields if self.needs_judge else {})}
        values = ((name, option.get_default(call_default_factory=True)) for name, option in fields.items())
        return {name: value for name, value in values if not isinstance(value, BaseModel)}

    def useless(self, options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield each option with a value under which the criterion is useless: its name, value, the one that works."""
        for name, option in self.options.model_fields.items():
            only, value = extra_of(option, "only"), options.get(name)
            if only and isinstance(value, str) and value != only:
                yield name, value, only

    @cached_property
    def option_names(self) -> frozenset[str]:
        """The keys that may stand beside `threshold`, in snake_case."""
        return frozenset(self.options.model_fields)

    def effect_of(self, option: str) -> Effect:
        """Return what a change of `threshold` or an option asks for."""
        return "decide" if option == "threshold" or option in self.deciding else "score"

    @cached_property
    def deciding(self) -> Mapping[str, FieldInfo]:
        """The options whose change asks nobody."""
        fields = self.options.model_fields.items()
        return {name: option for name, option in fields if extra_of(option, "effect") == "decide"}


def option_breaches(model: type[Options], name: str, value: Any) -> list[Breach]:
    """Return what ADK refuses in the value of an option, which it notices only after the agent has run."""
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        details = error.errors(include_url=False)
        if len(details[0]["loc"]) == 1:
            return [Breach((), f"`{name}` is {shown(value)}: expected {wanted(details[0])}")]
        return [
            replace(
                breach,
                location=breach.location[1:],
                message=breach.message.replace("ADK rejects the file", "ADK refuses the criterion"),
            )
            for breach in explain(model, error)
        ]
    return _repeated_ids(value) if name == RUBRICS else []


def _repeated_ids(rubrics: list[dict[str, Any]]) -> list[Breach]:
    seen, found = set(), []
    for index, rubric in enumerate(rubrics):
        name = rubric.get("rubric_id", rubric.get("rubricId"))
        if name in seen:
            found.append(
                Breach((index,), f"the rubric id `{name}` stands here twice", "Give each rubric an id of its own")
            )
        seen.add(name)
    return found
