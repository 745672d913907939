"""Changes of a criteria config, drafts of edited configs, and presets. Keys keep the file's spelling.

An edit that adds an error that stops a run is refused.
"""

import copy
import itertools
import json
import math
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench.criteria.description import RUBRICS, CriterionDescription
from workbench.criteria.registry import check_criteria, descriptions
from workbench.editing import case_edit
from workbench.editing.criteria_form import SIMULATOR, FormRow
from workbench.files.breaches import expected_words
from workbench.files.criteria import DEFAULTS, number_of, parse_config
from workbench.files.faults import Fault, Location
from workbench.files.file_access import read_regular
from workbench.files.json_text.json_edit import EditError, Splice, apply_splices, revised
from workbench.files.json_text.scanner import scan
from workbench.files.metrics_config import MetricsConfig, with_metrics
from workbench.files.spelling import get, is_camel, key_in, put
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.text.counting import counted, few
from workbench.text.json_values import mapping, number, value_at

Content = dict[str, Any]


class ValueRefusedError(ValueError):
    """The typed text is not a value for the field. The message describes the problem."""


def read_typed(row: FormRow, text: str) -> Any:
    """Return the value typed into a field that is not JSON.

    Raises:
        ValueRefusedError: the text is not a value for this field.
    """
    if row.kind in ("threshold", "number", "choice"):
        return _number(row, text.strip())
    if row.kind == "lines" and text.strip():
        return [line for line in text.split("\n") if line.strip()]
    if row.kind in ("word", "lines") and not text.strip():
        raise ValueRefusedError("the value is empty: press D to remove the field and use its default")
    return text


def _number(row: FormRow, text: str) -> float | int:
    typed = number_of(text)
    if typed is None or not math.isfinite(typed):
        raise ValueRefusedError(f"“{text}” is not a number" + (": use a point, not a comma" if "," in text else ""))
    if row.kind == "threshold":
        return typed
    value = int(typed) if typed == int(typed) else typed
    try:
        TypeAdapter(row.field.type).validate_python(value)
    except ValidationError as error:
        expected = expected_words(error.errors(include_url=False)[-1])
        raise ValueRefusedError(f"{row.field.name} must be {expected}, not {text}") from None
    return value


def stepped(row: FormRow, step: float) -> float | int:
    """Return a row's number moved by a step.

    A threshold moves on the grid of that step, between the lowest and the highest score. If there is none yet, the
    proposed threshold is returned. A whole number moves by 1, another number by the step, and neither below its
    minimum.
    """
    if row.kind == "threshold" and not row.given and (proposed := number_of(row.field.default)) is not None:
        return proposed
    now = number_of(row.value if row.given else row.field.default)
    if now is None or not math.isfinite(now / step):  # Also a number that is too large for the grid.
        now = CriterionDescription.first_threshold if row.kind == "threshold" else 1
    if row.kind != "threshold" and not row.field.whole:
        return round(max(0.0, now + step), 4)
    if row.kind != "threshold":
        least = row.field.least if math.isfinite(row.field.least) else 1
        return int(max(least, int(now) + (1 if step > 0 else -1)))
    grid = abs(step)
    places = round(now / grid, 6)
    wanted = round((math.floor(places) + 1 if step > 0 else math.ceil(places) - 1) * grid, 4)
    info = descriptions().get(row.criterion)
    lowest, highest = (info.lowest, info.highest) if info else (0.0, math.inf)
    # No score is higher than the highest. A threshold above it must be typed.
    return min(wanted, max(now, highest)) if step > 0 else max(lowest, wanted)


def next_choice(row: FormRow) -> Any:
    """Return the choice after a row's value, or the first one if the value is the last one or not a choice."""
    choices = row.field.choices
    try:
        now = TypeAdapter(row.field.type).validate_python(row.value if row.given else row.field.default)
    except ValidationError:
        return choices[0]
    return choices[(choices.index(now) + 1) % len(choices)] if now in choices else choices[0]


def is_default(row: FormRow, value: Any) -> bool:
    """Return whether a value is the default of a field that the config does not set."""
    if row.given or row.field.type is None:
        return False
    try:
        return bool(TypeAdapter(row.field.type).validate_python(row.field.default) == value)
    except ValidationError:
        return False


def with_value(content: Content, location: Location, value: Any) -> Content:
    """Return the content with a value at a location. A criterion that is a number becomes an object if necessary.

    An equal number is not replaced, because 1 and 1.0 are the same threshold.
    """
    content = _as_object(content, location)
    present = value_at(content, location)
    same = number(present) is not None and number(value) is not None and present == value
    changed: Content = content if same else case_edit.with_value(content, location, value)
    return changed


def _as_object(content: Content, location: Location) -> Content:
    """Return the content, with a criterion that is a number turned into an object if the location is inside it."""
    criterion = location[:2]
    if len(location) < 3 or location[0] != "criteria" or isinstance(value_at(content, criterion), dict):
        return content
    changed: Content = case_edit.with_value(content, criterion, {"threshold": value_at(content, criterion)})
    return changed


def without(content: Content, location: Location) -> Content:
    """Return the content without the value at a location.

    Objects and lists that become empty are removed, too, except `criteria` and the items of lists.
    """
    changed: Content = case_edit.without(content, location)
    above = location[:-1]
    if changed is content or not above or above == ("criteria",) or isinstance(above[-1], int):
        return changed
    return changed if value_at(changed, above) else without(changed, above)


def with_criterion(content: Content, name: str) -> Content:
    """Return the content with a criterion at the end, with its proposed threshold. An existing criterion stays."""
    criteria = mapping(content.get("criteria"))
    return {**content, "criteria": {**criteria, name: criteria.get(name, first_threshold(name))}}


def with_rubric(content: Content, criterion: str, after: int | None = None) -> tuple[Content, Location]:
    """Return the content with an empty rubric added to a criterion, and its location.

    The rubric goes after the one at `after`, or to the end.

    Raises:
        ValueRefusedError: the value of `rubrics` is not a list.
    """
    above: Location = ("criteria", criterion, RUBRICS)
    content = _as_object(content, above)
    rubrics = mapping(value_at(content, above[:-1])).get(RUBRICS, [])
    if not isinstance(rubrics, list):
        raise ValueRefusedError("`rubrics` is not a list: fix that first")
    camel = is_camel(rubrics)
    taken = [get(rubric, "rubric_id") for rubric in rubrics]
    numbered = (f"rubric_{number}" for number in itertools.count(len(rubrics) + 1))
    rubric: Content = {}
    put(rubric, "rubric_id", next(one for one in numbered if one not in taken), camel=camel)
    put(rubric, "rubric_content", {"textProperty" if camel else "text_property": ""}, camel=camel)
    if criterion in descriptions() and descriptions()[criterion].rubric_type:
        rubric["type"] = descriptions()[criterion].rubric_type
    place = (*above, len(rubrics) if after is None else after + 1)
    return case_edit.with_item(content, place, rubric), place


def first_threshold(name: str) -> float:
    """Return the threshold of a newly added criterion."""
    return descriptions().get(name, CriterionDescription).first_threshold


def settled(before: Any, content: Content) -> Content:
    """Return the content to write: a criterion that was a number becomes one again if it only has a threshold."""
    old = mapping(before).get("criteria")
    criteria = content.get("criteria")
    if not isinstance(old, dict) or not isinstance(criteria, dict):
        return content
    plain = dict(criteria)
    for name, value in criteria.items():
        if name in old and not isinstance(old[name], dict) and isinstance(value, dict) and set(value) == {"threshold"}:
            plain[name] = value["threshold"]
    return {**content, "criteria": plain}


def changed_names(before: Any, after: Any) -> list[str]:
    """Return the names of changed criteria, then of other changed keys of the file.

    If only the order of the criteria differs, the list has one text that says so.
    """
    one, other = (list(mapping(mapping(content).get("criteria"))) for content in (before, after))
    return _changed_keys(before, after) or (["the order of the criteria"] if one != other else [])


def _changed_keys(before: Any, after: Any) -> list[str]:
    old, new = mapping(before), mapping(after)
    one, other = mapping(old.get("criteria")), mapping(new.get("criteria"))
    names = [name for name in {**one, **other} if json.dumps(one.get(name)) != json.dumps(other.get(name))]
    names += [
        key for key in {**old, **new} if key != "criteria" and json.dumps(old.get(key)) != json.dumps(new.get(key))
    ]
    if not names and isinstance(after, dict) and not isinstance(new.get("criteria"), dict):
        names = ["criteria"] if json.dumps(old.get("criteria")) != json.dumps(new.get("criteria")) else []
    return names


def merged(base: Content, theirs: Content, mine: Content) -> Content:
    """Return `theirs` with the changes from `base` to `mine`, by whole criteria and whole keys of the file.

    `theirs` is the config on disk, `mine` the edited one, and `base` the one that both come from. If the user moved
    criteria, the result has the order of `mine`. Criteria that only `theirs` has keep their places.
    """
    both = copy.deepcopy(theirs)
    old, new = mapping(base.get("criteria")), mapping(mine.get("criteria"))
    for name in _changed_keys(base, mine):
        source, target = mine, both
        if name in {**old, **new}:
            both["criteria"] = target = mapping(both.get("criteria"))
            source = new
        if name in source:
            target[name] = copy.deepcopy(source[name])
        else:
            target.pop(name, None)
    criteria = mapping(both.get("criteria"))
    # Added criteria go to the end, so without a move the order is that of `base` with new names after it.
    if criteria and list(new) != [name for name in {**old, **new} if name in new]:
        order = [name for name in new if name in criteria]
        for place, name in enumerate(criteria):
            if name not in new:
                order.insert(place, name)
        both["criteria"] = {name: criteria[name] for name in order}
    return both


def has_rubrics(criterion: str) -> bool:
    """Return whether a criterion takes rubrics."""
    info = descriptions().get(criterion)
    return info is not None and RUBRICS in info.option_names


NEW_CONFIG = "test_config.json"
"""Name of the config that ADK looks for beside an evalset."""


class ConfigRejectedError(ValueError):
    """The config would stop a run before it starts; nothing was written. `faults` are those that the change causes."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults[0].sentence(faults[0].file.name))
        self.faults = faults


@dataclass(frozen=True)
class ConfigDraft:
    """A config being edited.

    `before` is the file's content when the edit began, or None without a file. `content` is its data. Without a key
    `criteria` in the file, `content` has the default criteria, and `defaults` is True.
    """

    file: Path
    before: bytes | None
    content: Content
    defaults: bool = False
    metrics: MetricsConfig | None = None
    """The metrics of the dataset beside the file, which has no default criteria; None for evalsets."""

    def bytes_of(self, content: Content) -> bytes:
        """Return the file's bytes with `content` in it.

        Raises:
            EditError: the file cannot be changed without damage.
        """
        if self.before is None:
            return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        mark = BOM_UTF8 if self.before.startswith(BOM_UTF8) else b""
        text = _text(self.before)
        after = revised(text, settled(json.loads(text), content))
        return mark + _reordered(after, list(mapping(content.get("criteria")))).encode("utf-8")


def open_config(file: Path, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Open a config for editing. May block, so call it in a thread.

    Raises:
        OSError: the file cannot be read.
        EditError: the file is not a JSON object.
    """
    return draft_of(file, read_regular(file), metrics)


def draft_of(file: Path, before: bytes, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Return the draft of a file whose content was read already.

    Raises:
        EditError: the content is not a JSON object.
    """
    try:
        content = json.loads(_text(before))
    except (ValueError, RecursionError):
        # Faults without a path are those of the JSON.
        faults = sorted(parse_config(file, before).faults, key=lambda fault: bool(fault.json_path))
        why = next((fault.sentence(file.name) for fault in faults if fault.severity == "error"), file.name)
        raise EditError(f"invalid config, file left unchanged: {why}") from None
    if not isinstance(content, dict):
        raise EditError(f"{file.name} does not contain an object")
    defaults = "criteria" not in content
    filled = {**content, "criteria": _default_criteria(metrics)} if defaults else content
    return ConfigDraft(file, before, filled, defaults, metrics)


def new_draft(file: Path, metrics: MetricsConfig | None = None) -> ConfigDraft:
    """Return the draft of a new config with the default criteria."""
    return ConfigDraft(file, None, {"criteria": _default_criteria(metrics)}, True, metrics)


def _default_criteria(metrics: MetricsConfig | None) -> Content:
    return dict(DEFAULTS) if metrics is None else {}


def faults_in(file: Path, content: bytes, metrics: MetricsConfig | None = None) -> tuple[Fault, ...]:
    """Return the errors and warnings that a run would report for this content of the file."""
    config = parse_config(file, content)
    if metrics is not None:
        config = with_metrics(config, metrics, file)
    return (*config.faults, *check_criteria(config))


def faults_of_draft(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """Return the errors and warnings that a run would report for a draft with this content.

    Raises:
        EditError: as in `bytes_of`.
    """
    return faults_in(draft.file, draft.bytes_of(content), draft.metrics)


def new_faults(draft: ConfigDraft, content: Content) -> tuple[Fault, ...]:
    """Return the errors that would stop a run with this content, and that the file does not have.

    Raises:
        EditError: as in `bytes_of`.
    """
    known = {(fault.json_path, fault.message) for fault in faults_in(draft.file, draft.before or b"{}", draft.metrics)}
    return tuple(
        fault
        for fault in faults_of_draft(draft, content)
        if fault.severity == "error" and (fault.json_path, fault.message) not in known
    )


def edit_of(draft: ConfigDraft, content: Content) -> tuple[str, bytes]:
    """Return the label of the edit to `content`, and the file's new bytes.

    Raises:
        ConfigRejectedError: the new content has an error that stops a run, and the old one did not.
        EditError: the file cannot be changed without damage.
    """
    after = draft.bytes_of(content)
    if new := new_faults(draft, content):
        raise ConfigRejectedError(new)
    return f"criteria: {few(changed_names(draft.content, content)) or 'written'}", after


def _reordered(text: str, names: list[str]) -> str:
    """Return the text of a config with its criteria in the order of `names`. Repeated names stay where they are."""
    root = scan(text).root
    assert root is not None  # the text is valid JSON
    criteria = next((child.node for child in reversed(root.children) if child.key == "criteria"), root)
    places = {child.key: child for child in criteria.children}
    if list(places) == names or places.keys() != set(names) or len(names) != len(criteria.children):
        return text
    pieces = [text[places[name].key_start : places[name].node.end] for name in names]
    splices = [
        Splice(child.key_start, child.node.end, piece) for child, piece in zip(criteria.children, pieces, strict=True)
    ]
    return apply_splices(text, splices)


def _text(content: bytes) -> str:
    try:
        return content.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditError(f"the file is not UTF-8 ({error.reason})") from None


@dataclass(frozen=True, slots=True)
class Preset:
    """Criteria for a purpose, with values from their descriptions. `help` says when to use it."""

    name: str
    help: str
    simulator: Mapping[str, Any] | None = None

    @property
    def criteria(self) -> dict[str, Any]:
        """The criteria and their values."""
        return {name: info.presets[self.name] for name, info in descriptions().items() if self.name in info.presets}

    @property
    def cost(self) -> str:
        """Judge and service calls of the preset, as text: `cost` of each criterion with calls, or "no calls"."""
        infos = [descriptions()[name] for name in self.criteria]
        return "; ".join(f"{info.title}: {cost(info)}" for info in infos if info.asks is not None) or cost(infos[0])


PRESETS = (
    Preset(
        "regression in CI",
        "After each change: does the agent call the same tools and give similar answers? Needs no judge and no key; "
        "verdicts are deterministic.",
    ),
    Preset(
        "functional correctness",
        "Is the answer correct, in any wording, and did the agent call the right tools? For cases with a reference.",
    ),
    Preset(
        "quality for outside users",
        "Before a public release: good answers by your rubrics, no hallucinations, nothing harmful.",
    ),
    Preset(
        "tool-heavy agents",
        "For agents that mainly call tools: expected calls in any order, and rubrics for good tool use.",
    ),
    Preset(
        "simulated users",
        "For cases with a scenario: conversation quality, no hallucinations, and a simulated user that follows its "
        "plan.",
        MappingProxyType({"max_allowed_invocations": 10}),
    ),
)


def with_preset(content: Content, preset: Preset, *, instead: bool = False) -> tuple[Content, list[str]]:
    """Return the content with the preset's missing criteria, and the names of what was added. Existing criteria stay.

    A preset for simulated users also adds their config if there is none. With `instead`, the preset replaces all
    criteria, as it should if they are only defaults.
    """
    criteria = {} if instead else mapping(content.get("criteria"))
    new = [name for name in preset.criteria if name not in criteria]
    changed = {**content, "criteria": {**criteria, **{name: preset.criteria[name] for name in new}}}
    if preset.simulator is not None and key_in(changed, SIMULATOR) is None:
        changed[SIMULATOR] = dict(preset.simulator)
        new.append(SIMULATOR)
    return changed, new


def cost(info: CriterionDescription, samples: int = DEFAULT_SAMPLES) -> str:
    """Return as text which judge or service is called, and how often. `samples` is the number of votes."""
    asks = info.asks
    if asks is None:
        return "no calls"
    if asks.who == "service":
        return f"1 call of Google's evaluation service per {asks.about}"
    if not asks.votes:
        return f"{counted(asks.questions, 'judge call')} per {asks.about}"
    return f"up to {samples} judge calls per {asks.about}" if samples > 1 else f"1 judge call per {asks.about}"


def needs(info: CriterionDescription) -> str:
    """Return the requirements of a criterion as text."""
    needed = {
        "a reference": info.needs_reference,
        "rubrics, here or in the cases": info.rubric_type,
        "a judge (a model with a key, or a Python function)": info.needs_judge,
        "a Google Cloud project": info.needs_service,
        "cases with a scenario": info.scenarios == "only",
    }
    words = ", ".join(word for word, is_needed in needed.items() if is_needed) or "only the transcript"
    return f"{words}; not for scenarios" if info.scenarios == "no" else words


def guide(info: CriterionDescription) -> str:
    """Return the facts that help to decide on a criterion."""
    lines = [info.measures, info.when_to_use, f"Cost: {cost(info)}. Needs {needs(info)}."]
    if not info.supported:
        lines.append("Not supported yet: its cases are NOT EVALUATED.")
    return "\n".join(lines)


def proposed(name: str) -> str:
    """Return the proposed threshold of a new criterion, as text."""
    return f"≥ {first_threshold(name):g}"
