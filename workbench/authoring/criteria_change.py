"""Changes of a criteria config as values: content in, content out. The file's own spelling of keys stays."""

import copy
import itertools
import json
import math
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench.authoring.criteria_form import FormRow
from workbench.authoring.spelling import get, is_camel, put
from workbench.metrics.description import RUBRICS
from workbench.metrics.registry import known
from workbench.model.config_rules import number_of
from workbench.model.places import Location

Content = dict[str, Any]
_USUAL_THRESHOLD = 0.8


class ValueRefusedError(ValueError):
    """What was typed is no value for the field; the message says what is."""


def read_typed(row: FormRow, text: str) -> Any:
    """The value that was typed into a field that is not JSON.

    Raises:
        ValueRefusedError: it is none for this field.
    """
    if row.kind in ("threshold", "number"):
        return _number(row, text.strip())
    if row.kind == "word" and not text.strip():
        raise ValueRefusedError("it is empty: D takes the field out, and its default holds")
    return text


def _number(row: FormRow, text: str) -> float | int:
    number = number_of(text)
    if number is None or not math.isfinite(number):
        raise ValueRefusedError(f"“{text}” is no number" + (": write a point, not a comma" if "," in text else ""))
    if row.kind == "threshold":
        return number
    if number != int(number):
        raise ValueRefusedError(f"{text} is no whole number")
    if number < row.field.least:
        raise ValueRefusedError(f"{row.field.name} must be {row.field.least:g} or more")
    return int(number)


def stepped(row: FormRow, step: float) -> float | int:
    """The number of a row moved by a step, on the grid of that step, between 0 and the highest score; a count by 1."""
    now = number_of(row.value if row.given else row.field.default)
    if now is None or not math.isfinite(now):
        now = _USUAL_THRESHOLD if row.kind == "threshold" else 1
    if row.kind != "threshold":
        return max(1, int(now) + (1 if step > 0 else -1))
    grid = abs(step)
    places = round(now / grid, 6)
    wanted = round((math.floor(places) + 1 if step > 0 else math.ceil(places) - 1) * grid, 4)
    # Nothing scores higher than the top: only a typed number goes there.
    return min(wanted, max(now, _top(row.criterion))) if step > 0 else max(0.0, wanted)


def _top(criterion: str) -> float:
    info = known().get(criterion)
    return info.highest if info else math.inf


def next_choice(row: FormRow) -> Any:
    """The next of a row's choices: true or false for a flag."""
    choices = row.field.choices
    try:
        now = TypeAdapter(row.field.type).validate_python(row.value if row.given else row.field.default)
    except ValidationError:
        return choices[0]
    return choices[(choices.index(now) + 1) % len(choices)] if now in choices else choices[0]


def is_default(row: FormRow, value: Any) -> bool:
    """Return whether a value that the config does not say is the one that holds without it."""
    if row.given or row.field.type is None:
        return False
    try:
        return bool(TypeAdapter(row.field.type).validate_python(row.field.default) == value)
    except ValidationError:
        return False


def with_value(content: Content, location: Location, value: Any) -> Content:
    """The content with a value put at a place; what must stand around it is made."""
    changed = copy.deepcopy(content)
    if len(location) > 2 and location[0] == "criteria":
        criterion = changed["criteria"][location[1]]
        if not isinstance(criterion, dict):
            changed["criteria"][location[1]] = {"threshold": criterion}
    holder: Any = changed
    for step, below in itertools.pairwise(location):
        if isinstance(holder, dict) and not isinstance(holder.get(str(step)), dict | list):
            holder[step] = [] if isinstance(below, int) else {}
        holder = holder[step]
    last = location[-1]
    # 1 and 1.0 are the same threshold: the one that stands there stays.
    there = holder.get(last) if isinstance(holder, dict) else holder[last]
    if not (_is_number(there) and _is_number(value) and there == value):
        holder[last] = value
    return changed


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def without(content: Content, unit: Location) -> Content:
    """The content without what stands at a place, and without the objects that held nothing else."""
    changed = copy.deepcopy(content)
    holders: list[Any] = [changed]
    try:
        for step in unit[:-1]:
            holders.append(holders[-1][step])
        del holders[-1][unit[-1]]
    except (KeyError, IndexError, TypeError):
        return content
    for depth in range(len(unit) - 1, 0, -1):
        if holders[depth] or unit[:depth] == ("criteria",) or isinstance(unit[depth - 1], int):
            break
        del holders[depth - 1][unit[depth - 1]]
    return changed


def moved(content: Content, unit: Location, by: int) -> tuple[Content, Location]:
    """A rubric or criterion moved by one place in its list; where it is then."""
    changed = copy.deepcopy(content)
    holder: Any = changed
    for step in unit[:-1]:
        holder = holder[step]
    last = unit[-1]
    if isinstance(holder, list) and isinstance(last, int):
        place = last + by
        if not 0 <= place < len(holder):
            return content, unit
        holder.insert(place, holder.pop(last))
        return changed, (*unit[:-1], place)
    keys = list(holder)
    place = keys.index(last) + by
    if not 0 <= place < len(keys):
        return content, unit
    keys.insert(place, keys.pop(keys.index(last)))
    items = {key: holder[key] for key in keys}
    holder.clear()
    holder.update(items)
    return changed, unit


def with_criterion(content: Content, name: str) -> Content:
    """Return the content with a criterion more, at the end, with its first threshold. One that is there stays."""
    changed = copy.deepcopy(content)
    criteria = changed["criteria"] = _object(changed.get("criteria"))
    if name not in criteria:
        criteria[name] = first_threshold(name)
    return changed


def first_threshold(name: str) -> float:
    """The threshold that a criterion begins with."""
    info = known().get(name)
    return info.first_threshold if info is not None else _USUAL_THRESHOLD


def with_rubric(content: Content, criterion: str, after: int | None = None, text: str = "") -> tuple[Content, Location]:
    """The content with one more rubric of a criterion, after the one at `after` or at the end; where it is.

    Raises:
        ValueRefusedError: what stands at `rubrics` is no list.
    """
    value = content["criteria"][criterion]
    changed = copy.deepcopy(content)
    if not isinstance(value, dict):
        changed["criteria"][criterion] = {"threshold": value}
    options = changed["criteria"][criterion]
    rubrics = options.setdefault(RUBRICS, [])
    if not isinstance(rubrics, list):
        raise ValueRefusedError("`rubrics` is no list: put that right first")
    camel = is_camel(rubrics)
    rubric: Content = {}
    put(rubric, "rubric_id", _free_id(rubrics), camel=camel)
    put(rubric, "rubric_content", {"textProperty" if camel else "text_property": text}, camel=camel)
    if criterion in known() and known()[criterion].rubric_type:
        rubric["type"] = known()[criterion].rubric_type
    place = len(rubrics) if after is None else after + 1
    rubrics.insert(place, rubric)
    return changed, ("criteria", criterion, RUBRICS, place)


def _free_id(rubrics: list[Any]) -> str:
    taken = {get(rubric, "rubric_id") for rubric in rubrics}
    number = len(rubrics) + 1
    while f"rubric_{number}" in taken:
        number += 1
    return f"rubric_{number}"


def settled(before: Any, content: Content) -> Content:
    """The content as it is to be written: what was a number, and says no more than one again, is one."""
    old = before.get("criteria") if isinstance(before, dict) else None
    criteria = content.get("criteria")
    if not isinstance(old, dict) or not isinstance(criteria, dict):
        return content
    plain = {
        name: value["threshold"]
        if isinstance(value, dict) and set(value) == {"threshold"} and name in old and not isinstance(old[name], dict)
        else value
        for name, value in criteria.items()
    }
    return {**content, "criteria": plain}


def changed_names(before: Any, after: Any) -> list[str]:
    """What differs, for the label of an edit: criteria by their name, then other keys of the file."""
    old, new = _object(before), _object(after)
    one, other = _object(old.get("criteria")), _object(new.get("criteria"))
    names = [name for name in {**one, **other} if _canonical(one.get(name)) != _canonical(other.get(name))]
    names += [
        key for key in {**old, **new} if key != "criteria" and _canonical(old.get(key)) != _canonical(new.get(key))
    ]
    if not names and isinstance(after, dict) and not isinstance(new.get("criteria"), dict):
        names = ["criteria"] if _canonical(old.get("criteria")) != _canonical(new.get("criteria")) else []
    return names or (["the order of the criteria"] if list(one) != list(other) else [])


def _object(value: Any) -> Content:
    return value if isinstance(value, dict) else {}


def _canonical(value: Any) -> str:
    return json.dumps(value)


def merged(base: Content, theirs: Content, mine: Content) -> Content:
    """Theirs, with what is changed in mine: whole criteria, and whole keys of the file."""
    both = copy.deepcopy(theirs)
    for name in changed_names(base, mine):
        source, target = mine, both
        if name in {**_object(base.get("criteria")), **_object(mine.get("criteria"))}:
            both["criteria"] = target = _object(both.get("criteria"))
            source = _object(mine.get("criteria"))
        if name in source:
            target[name] = copy.deepcopy(source[name])
        else:
            target.pop(name, None)
    return both


def has_rubrics(criterion: str) -> bool:
    """Whether a criterion takes rubrics."""
    info = known().get(criterion)
    return info is not None and RUBRICS in info.option_names
