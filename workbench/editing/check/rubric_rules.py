"""Problems of rubrics in cases, turns and criteria."""

from collections.abc import Iterator, Mapping

from workbench.criteria.registry import rubric_types
from workbench.editing.check.problem import Rule
from workbench.files.evalset import EvalCase
from workbench.files.faults import Breach, Location
from workbench.files.spelling import get
from workbench.text.json_values import string

Found = Iterator[tuple[Rule, Breach]]
Placed = list[tuple[Location, Mapping[str, object]]]


def rubric_problems(case: EvalCase, names: set[str]) -> Found:
    """Yield the problems of a case's rubrics under criteria with these names. Locations are inside the case."""
    case_rubrics = placed_rubrics(("rubrics",), case.rubrics)
    turn_rubrics = [
        placed_rubrics(("conversation", number, "rubrics"), turn.get("rubrics") or ())
        for number, turn in enumerate(case.turns or ())
    ]
    for rubrics in (case_rubrics, *turn_rubrics):
        yield from _types(rubrics, names)
        yield from empty_rubrics(rubrics)
    # ADK appends a turn's rubrics to those of the case. Two turns may use the same ID.
    yield from _twice(case_rubrics, {})
    first = {str(rubric.get("rubric_id")): "the case" for _, rubric in case_rubrics}
    for rubrics in turn_rubrics:
        yield from _twice(rubrics, first)


def empty_rubrics(rubrics: Placed) -> Found:
    """Yield rubrics without text. Keys may be snake_case or camelCase."""
    for place, rubric in rubrics:
        if not string(get(get(rubric, "rubric_content"), "text_property")).strip():
            message = f"the rubric `{get(rubric, 'rubric_id')}` has no text, so there is nothing to judge"
            hint = "Write the requirement into rubric_content.text_property"
            yield "empty-rubric", Breach(place, message, hint, "warning")


def placed_rubrics(above: Location, rubrics: object) -> Placed:
    """Return the rubrics in a list, each with its location."""
    every = rubrics if isinstance(rubrics, list | tuple) else ()
    return [((*above, number), rubric) for number, rubric in enumerate(every) if isinstance(rubric, dict)]


def _types(rubrics: Placed, names: set[str]) -> Found:
    types = rubric_types()
    every = list(types.values())
    wanted = {name: kind for name, kind in types.items() if name in names}
    for place, rubric in rubrics:
        kind = rubric.get("type")
        if kind in wanted.values() or not (wanted or kind not in every):
            continue
        given = f"has the type `{kind}`" if kind else "has no type"
        if kind in every:
            message = f"this rubric {given}, which no criterion here uses"
            hint = f"The criteria here use {' and '.join(sorted(wanted.values()))}"
        else:
            message = f"this rubric {given}: ADK ignores it"
            hint = f"The types are {', '.join(every)}"
        yield "untyped-rubric", Breach(place, message, hint, "warning")


def _twice(rubrics: Placed, first: Mapping[str, str]) -> Found:
    seen = dict(first)
    for place, rubric in rubrics:
        name = str(rubric.get("rubric_id"))
        if name in seen:
            message = f"the rubric_id `{name}` is already used in {seen[name]}: ADK ends the whole run with an error"
            yield "same-rubric", Breach((*place, "rubric_id"), message, "Use another rubric_id", "warning")
        seen.setdefault(name, "this list")
