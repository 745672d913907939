"""What may stand beside `threshold` in a criterion, and how each value is read: as pydantic reads it for ADK."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from workbench.judge.options import JudgeModelOptions
from workbench.model.breaches import Breach
from workbench.model.evalset_schema import Rubric
from workbench.model.schema_words import breaches_of

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
"""In the order of ADK's numbers 0, 1, 2."""
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


@dataclass(frozen=True, slots=True)
class Option:
    """One key: `read` turns its JSON value into the one to use and raises ValueError where ADK refuses it;
    `choices` are what a picker offers, empty where the value is free. `breaches` tells what is wrong or odd inside a
    value that could be read."""

    name: str
    help: str
    read: Callable[[Any], Any]
    choices: tuple[str, ...] = ()
    breaches: Callable[[Any], Iterable[Breach]] = lambda value: ()


def read_match_type(value: Any) -> str:
    """EXACT, IN_ORDER or ANY_ORDER, from a name in any case with blanks or dashes, or from 0, 1, 2 (also 1.0, true)."""
    if isinstance(value, str):
        name = value.strip().upper().replace("-", "_").replace(" ", "_")
        if name in MATCH_TYPES:
            return name
    elif isinstance(value, int | float) and value in (0, 1, 2):
        return MATCH_TYPES[int(value)]
    raise ValueError("expected EXACT, IN_ORDER or ANY_ORDER (or 0, 1, 2)")


def read_flag(value: Any) -> bool:
    """A yes or no: true, false, 1, 0, or one of the words that pydantic takes for them."""
    if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    raise ValueError("expected true or false")


def read_text(value: Any) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise ValueError("expected text")


def read_object(value: Any) -> dict[str, Any]:
    """A JSON object."""
    if isinstance(value, dict):
        return value
    raise ValueError("expected an object")


def read_list(value: Any) -> list[Any]:
    """A JSON list."""
    if isinstance(value, list):
        return value
    raise ValueError("expected a list")


def judge_breaches(value: Any) -> Iterator[Breach]:
    """What ADK refuses in `judge_model_options`, which it notices only after the agent has run."""
    for breach in breaches_of(JudgeModelOptions, value):
        yield replace(breach, message=breach.message.replace("ADK rejects the file", "ADK refuses the criterion"))


def single_judge_breaches(value: Any) -> Iterator[Breach]:
    """The same for a criterion that asks each question once."""
    yield from judge_breaches(value)
    if isinstance(value, dict) and "num_samples" in value:
        message = "`num_samples` has no effect here: as in ADK, each text is asked about once"
        yield Breach(("num_samples",), message, "Take it out", "warning")


def rubric_breaches(value: Any) -> Iterator[Breach]:
    """What ADK refuses in a list of rubrics: their shape, and an id that stands twice."""
    shape = breaches_of(list[Rubric], value)
    yield from shape
    if shape:
        return
    seen = set()
    for index, rubric in enumerate(value):
        name = rubric.get("rubric_id", rubric.get("rubricId"))
        if name in seen:
            yield Breach((index,), f"the rubric id `{name}` stands here twice", "Give each rubric an id of its own")
        seen.add(name)
