"""A criteria config as the rows of a form: criteria with all their fields, the simulated user, other keys.

Rows are read from the config's JSON as it is in the file, in either spelling of its keys.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from workbench.criteria.description import (
    INTERMEDIATE,
    JUDGE,
    RUBRICS,
    CriterionDescription,
    IntermediateOptions,
    choices_of,
    default_text,
    field_extra,
    fields_of,
)
from workbench.criteria.registry import descriptions
from workbench.files.faults import Location, snake
from workbench.files.metrics_config import MetricsConfig, own_entry
from workbench.files.schema import SIMULATORS, EvalConfig, Rubric, RubricContent
from workbench.files.spelling import get, is_camel, key_for
from workbench.judges.base import JudgeModelOptions
from workbench.text.json_values import mapping

Kind: TypeAlias = Literal[
    "threshold", "number", "flag", "choice", "word", "text", "lines", "json", "rubrics", "heading", "kept", "file"
]
"""Way to edit a value.

- `threshold`: by steps or as a number. `number`: as a number.
- `flag`: true or false. `choice`: one of `choices`, or a number if it is `numeric`.
- `word`: on one line. `text`: over several lines. `lines`: a list of texts, one per line. `json`: as JSON.
- `rubrics`, `heading` and `file`: headings of other rows.
- `kept`: shown only.
"""
_MARKDOWN_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model.

    `default` describes the value used if the file has none. `type` is the type by which pydantic validates a value, or
    None. `least` is the smallest number allowed. `whole`: only whole numbers are allowed. `numeric`: digits can be
    typed on the row.
    """

    name: str
    kind: Kind
    help: str
    default: str = ""
    choices: tuple[Any, ...] = ()
    type: Any = None
    least: float = -math.inf
    whole: bool = True
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class FormRow:
    """A row of the form.

    `location` is the place of the value, or its future place if it is not `given`. `unit` is the item that is removed
    or moved with the row: the criterion, the rubric or the value itself. `criterion` is "" outside of criteria. Texts
    are raw, not yet safe for a terminal.
    """

    location: Location
    field: Field
    value: Any
    given: bool
    unit: Location
    depth: int = 0
    criterion: str = ""
    file: int = 0
    """Index of the row's config, if the editor shows several configs."""

    @property
    def kind(self) -> Kind:
        """Way to edit the value."""
        return self.field.kind


def field_of(name: str, info: FieldInfo) -> Field:
    """Return the form field for a field of a pydantic model."""
    parts = [part for part in _parts(info.annotation) if part is not type(None)]
    numbers = [part for part in parts if part in (int, float)]
    literals = [part for part in parts if get_origin(part) is Literal]
    choices = choices_of(info) if info.annotation is bool else tuple(itertools.chain(*map(get_args, literals)))
    kind: Kind = "json"
    if info.annotation is bool:
        kind = "flag"
    elif choices:
        kind = "choice"
    elif numbers:
        kind = "number"
    elif info.annotation is str:
        kind = "word"
    elif info.annotation == str | None:
        kind = "text"
    elif get_origin(info.annotation) is list and _parts(get_args(info.annotation)[0]) == (str,):
        kind = "lines"
    if field_extra(info, "kind") == "word":
        kind = "word"
    least = next((float(str(rule.ge)) for rule in info.metadata if isinstance(rule, Ge)), -math.inf)
    read_as = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    limit = f" At least {least:g}." if least > 0 else ""
    return Field(
        info.title or name,
        kind,
        _MARKDOWN_LINK.sub(r"\1", info.description or "") + limit,
        default_text(info),
        choices,
        read_as,
        least,
        float not in numbers,
        bool(numbers),
    )


def _parts(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone, without annotations."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


THRESHOLD = Field("threshold", "threshold", "")
SIMULATOR = "user_simulator_config"


def rows_of(content: Any, file: int = 0) -> list[FormRow]:
    """Return the rows of a config's content, in the order of the file. The simulated user follows the criteria."""
    rows = _rows(content) if isinstance(content, dict) else iter([_kept((), "the file", content)])
    return [replace(row, file=file) for row in rows] if file else list(rows)


def metric_rows(content: Any, metrics: MetricsConfig, file: int = 0) -> Iterator[FormRow]:
    """Yield a row for each metric of google-agents-cli that has no threshold in the config's content."""
    given = {name.lower() for name in mapping(mapping(content).get("criteria"))}
    for name in metrics.selected:
        if name not in given:
            place: Location = ("criteria", name)
            field = replace(THRESHOLD, default=f"{own_entry(metrics.entries[name])['suggested']:g}")
            yield FormRow(place, field, None, False, place, 0, name, file)


def file_row(file: int, name: str) -> FormRow:
    """Return the heading row of a config, for an editor that shows several configs."""
    return FormRow((), Field(name, "file", ""), None, True, (), 0, "", file)


def _rows(content: dict[str, Any]) -> Iterator[FormRow]:
    criteria = content.get("criteria", {})
    custom = get(content, "custom_metrics")
    if not isinstance(criteria, dict):
        yield FormRow(("criteria",), Field("criteria", "json", "An object of names and values."), criteria, True, ())
        criteria = {}
    for name, value in criteria.items():
        yield from _criterion(name, value, custom=isinstance(custom, dict) and name in custom)
    yield from _simulator(content)
    for key, value in content.items():
        if key not in ("criteria", SIMULATOR, to_camel(SIMULATOR)):
            yield _kept((key,), key, value)


def _criterion(name: str, value: Any, *, custom: bool) -> Iterator[FormRow]:
    place: Location = ("criteria", name)
    here: Location = (*place, "threshold") if isinstance(value, dict) else place
    threshold = value.get("threshold") if isinstance(value, dict) else value
    yield FormRow(here, THRESHOLD, threshold, True, place, 0, name)
    options = value if isinstance(value, dict) else {}
    # Only the function of a custom metric knows its options.
    info = None if custom else descriptions().get(name)
    shown = {"threshold"}
    for row in _fields(place, info, options) if info else ():
        shown.add(str(row.location[2]))
        yield row
    for key, item in options.items():
        if key not in shown:
            yield _kept((*place, key), key, item, 1, name)


def _fields(place: Location, info: CriterionDescription, options: dict[str, Any]) -> Iterator[FormRow]:
    camel = is_camel(options)
    for name, option in info.options.model_fields.items():
        key = key_for(options, name, camel=camel)
        if name == JUDGE:
            yield from _judge((*place, key), info, options.get(key, {}), camel)
        elif name == RUBRICS:
            yield from _rubrics((*place, key), info.name, option, options)
        else:
            yield _row((*place, key), field_of(name, option), options, 1, info.name)
    extra = key_for(options, INTERMEDIATE, camel=camel)
    if extra in options and INTERMEDIATE not in info.option_names:
        unused = field_of(INTERMEDIATE, IntermediateOptions.model_fields[INTERMEDIATE])
        unused = replace(unused, help="Has no effect on this criterion.")
        yield _row((*place, extra), unused, options, 1, info.name)


def _judge(place: Location, info: CriterionDescription, options: Any, camel: bool) -> Iterator[FormRow]:
    if not isinstance(options, dict):
        yield FormRow(place, Field(JUDGE, "json", "An object."), options, True, place, 1, info.name)
        return
    camel = is_camel(options) or camel
    fields = JudgeModelOptions.model_fields
    for name, field in fields.items():
        key = key_for(options, name, camel=camel)
        # The number of samples has no effect if each question is asked once.
        if info.asks is not None and not info.asks.votes and name == "num_samples" and key not in options:
            continue
        yield _row((*place, key), field_of(name, field), options, 1, info.name)
    for key, item in options.items():
        if snake(key) not in fields:
            yield _kept((*place, key), f"judge: {key}", item, 1, info.name)


def _rubrics(place: Location, criterion: str, option: FieldInfo, options: dict[str, Any]) -> Iterator[FormRow]:
    field, key = field_of(RUBRICS, option), place[-1]
    rubrics = options.get(str(key), [])
    if not isinstance(rubrics, list):
        yield FormRow(place, replace(field, kind="json"), rubrics, True, place, 1, criterion)
        return
    yield FormRow(place, replace(field, kind="rubrics"), len(rubrics), key in options, place, 1, criterion)
    for number, rubric in enumerate(rubrics):
        yield from _rubric((*place, number), criterion, rubric)


def _rubric(place: Location, criterion: str, rubric: Any) -> Iterator[FormRow]:
    """Yield a row for each field of a rubric. The first row has its text and represents the rubric."""
    content = get(rubric, "rubric_content")
    if not isinstance(rubric, dict) or not (content is None or isinstance(content, dict)):
        yield FormRow(place, Field("rubric", "json", "An object."), rubric, True, place, 2, criterion)
        return
    camel, fields = is_camel(rubric), fields_of(Rubric)
    inner = (*place, key_for(rubric, "rubric_content", camel=camel))
    for name, option in fields_of(RubricContent).items():
        key = key_for(content, name, camel=camel)
        yield replace(_row((*inner, key), field_of(name, option), content or {}, 2, criterion), unit=place)
    for name, option in fields.items():
        if name != "rubric_content":
            key = key_for(rubric, name, camel=camel)
            yield replace(_row((*place, key), field_of(name, option), rubric, 3, criterion), unit=place)
    for key, item in rubric.items():
        if snake(key) not in fields:
            yield replace(_kept((*place, key), key, item, 3, criterion), unit=place)


def _simulator(content: dict[str, Any]) -> Iterator[FormRow]:
    place = key_for(content, SIMULATOR, camel="customMetrics" in content)
    options = content.get(place)
    help_ = "The user in cases with a scenario."
    yield FormRow((place,), Field("simulated user", "heading", help_), None, place in content, (place,))
    if options is not None and not isinstance(options, dict):
        yield FormRow((place,), Field(SIMULATOR, "json", "An object."), options, True, (place,), 1)
        return
    options = options or {}
    camel = is_camel(options) or place != SIMULATOR
    kind = options.get("type")
    model = SIMULATORS.get(kind if isinstance(kind, str) else "llm_backed", SIMULATORS["llm_backed"])
    for name, field in model.model_fields.items():
        yield _row((place, key_for(options, name, camel=camel)), field_of(name, field), options, 1)
    for key, item in options.items():
        if snake(key) not in model.model_fields:
            yield _kept((place, key), key, item, 1)


def _row(place: Location, field: Field, holder: dict[str, Any], depth: int, criterion: str = "") -> FormRow:
    key = place[-1]
    return FormRow(place, field, holder.get(str(key)), key in holder, place, depth, criterion)


def _kept(place: Location, name: str, value: Any, depth: int = 0, criterion: str = "") -> FormRow:
    known_key = snake(name) in EvalConfig.__annotations__
    what = "Kept as it is; edit it in $EDITOR." if known_key else "Unknown key, kept as it is."
    return FormRow(place, Field(name, "kept", what), value, True, place, depth, criterion)
