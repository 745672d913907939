"""Rubrics of a turn, from the config, and from the turn, the case and the expected turn if they have the right type.

The rules are ADK's. A rubric of a case or turn without a type is used by no criterion; one with another type belongs to
another criterion. Rubrics of the config need no type. No id may be used twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from workbench.criteria.base import NotScorableError, ScoreRequest
from workbench.files.criteria import Criterion
from workbench.files.schema import Rubric as RubricSchema
from workbench.files.schema import adapter

Origin: TypeAlias = Literal["config", "case", "turn"]


@dataclass(frozen=True, slots=True)
class Rubric:
    """One property that the judge checks."""

    id: str
    text: str
    origin: Origin


def rubrics_by_turn(request: ScoreRequest, kind: str) -> list[tuple[Rubric, ...]]:
    """Return the rubrics of type `kind` for each turn.

    Raises:
        NotScorableError: An id is used twice, or the config's rubrics are invalid.
    """
    configured = _configured(request.criterion)
    found = []
    for index, turn in enumerate(request.actual):
        own = [("turn", rubric) for rubric in turn.get("rubrics") or ()]
        own += [("case", rubric) for rubric in request.rubrics]
        if request.expected is not None:
            own += [("turn", rubric) for rubric in request.expected[index].get("rubrics") or ()]
        where = f"turn {index + 1}"
        # ADK refuses an id used twice in a turn, whatever the types.
        _refuse_twice((rubric["rubric_id"] for _, rubric in own), where)
        typed = [_rubric(rubric, origin) for origin, rubric in own if rubric.get("type") == kind]
        rubrics = (*configured, *typed)
        _refuse_twice((rubric.id for rubric in rubrics), where)
        found.append(rubrics)
    return found


def untyped_ids(request: ScoreRequest) -> list[str]:
    """Return the ids of case and turn rubrics that have no type, and so are used by no criterion."""
    everywhere = [
        request.rubrics,
        *(turn.get("rubrics") or () for turn in (*request.actual, *(request.expected or ()))),
    ]
    found = (rubric["rubric_id"] for rubrics in everywhere for rubric in rubrics if not rubric.get("type"))
    return list(dict.fromkeys(found))


def read_rubrics(value: Any) -> list[dict[str, Any]]:
    """Return the rubrics of a config, with snake_case keys.

    Raises:
        ValueError: ADK refuses them.
    """
    try:
        read: list[dict[str, Any]] = adapter(list[RubricSchema]).validate_python(value)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"rubrics.{place}: {error.errors()[0]['msg']}") from error
    return read


def repeated(ids: Iterable[str]) -> list[str]:
    """Return the ids that occur more than once, each once."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for each in ids:
        if each in seen:
            twice[each] = None
        seen.add(each)
    return list(twice)


def _configured(criterion: Criterion) -> Sequence[Rubric]:
    try:
        read = read_rubrics(criterion.options.get("rubrics") or [])
    except ValueError as error:
        raise NotScorableError(f"{criterion.name}: {error}") from error
    return [_rubric(rubric, "config") for rubric in read]


def _rubric(rubric: dict[str, Any], origin: Any) -> Rubric:
    content = rubric.get("rubric_content") or {}
    text = content.get("text_property") or rubric.get("description") or rubric["rubric_id"]
    return Rubric(rubric["rubric_id"], text, origin)


def _refuse_twice(ids: Iterable[str], where: str) -> None:
    twice = repeated(ids)
    if twice:
        raise NotScorableError(f"{where} has two rubrics with the id {twice[0]}")
