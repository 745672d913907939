"""What is odd about the rubrics of a case and its turns."""

from collections.abc import Iterator, Mapping

from workbench.authoring.check.problem import Rule
from workbench.json_values import string
from workbench.metrics.registry import rubric_types
from workbench.model.breaches import Breach
from workbench.model.evalset import EvalCase
from workbench.model.places import Location
from workbench.model.spelling import get

Found = Iterator[tuple[Rule, Breach]]
Placed = list[tuple[Location, Mapping[str, object]]]


def rubric_problems(case: EvalCase, names: set[str]) -> Found:
    """Under criteria of these names. Locations are those inside the case."""
    of_case = placed_rubrics(("rubrics",), case.rubrics)
    of_turns = [
        placed_rubrics(("conversation", number, "rubrics"), turn.get("rubrics") or ())
        for number, turn in enumerate(case.turns or ())
    ]
    for rubrics in (of_case, *of_turns):
        yield from _types(rubrics, names)
        yield from empty_rubrics(rubrics)
    # ADK puts a turn's rubrics behind those of the case; two turns may use one id.
    yield from _twice(of_case, {})
    first = {str(rubric.get("rubric_id")): "the case" for _, rubric in of_case}
    for rubrics in of_turns:
        yield from _twice(rubrics, first)


def empty_rubrics(rubrics: Placed) -> Found:
    """Find rubrics that give the judge nothing to ask. Keys may be snake_case or camelCase."""
    for place, rubric in rubrics:
        if not string(get(get(rubric, "rubric_content"), "text_property")).strip():
            message = f"the rubric `{get(rubric, 'rubric_id')}` has no text: the judge is asked about nothing"
            hint = "Write what must be true into rubric_content.text_property"
            yield "empty-rubric", Breach(place, message, hint, "warning")


def placed_rubrics(above: Location, rubrics: object) -> Placed:
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
            message = f"this rubric {given}, which none of the criteria here reads"
            hint = f"They read {' and '.join(sorted(wanted.values()))}"
        else:
            message = f"this rubric {given}: ADK ignores it"
            hint = f"Types are {', '.join(every)}"
        yield "untyped-rubric", Breach(place, message, hint, "warning")


def _twice(rubrics: Placed, first: Mapping[str, str]) -> Found:
    seen = dict(first)
    for place, rubric in rubrics:
        name = str(rubric.get("rubric_id"))
        if name in seen:
            message = f"the rubric `{name}` stands in {seen[name]} already: ADK's whole run ends there with an error"
            yield "same-rubric", Breach((*place, "rubric_id"), message, "Give it another rubric_id", "warning")
        seen.setdefault(name, "this list")
