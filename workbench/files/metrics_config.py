"""The `eval_config.yaml` of google-agents-cli: which metrics grade a dataset, and how each is computed.

The rules are those of `prepare_eval_metrics` in google-agents-cli 1.11. Each metric becomes an entry of a config's
`custom_metrics` under the key `agents_cli`, so that all code for custom metrics handles it:

- `{"kind": "function", "source", "file"}`: the function `evaluate(instance)` is in one of the two; the other is "".
- `{"kind": "template", "prompt_template", "judge_model_options", "system_instruction"}`: asks a judge.
- `{"kind": "service", "metric", "nearest"}`: only Google's service has it; `nearest` is the closest criterion here.

Each also has `suggested`, a threshold to propose. The format itself has no thresholds. They come from the
`test_config.json` beside the dataset.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import with_config
from typing_extensions import TypedDict

from workbench.files.breaches import breaches_of, describe
from workbench.files.criteria import NO_CRITERIA, CriteriaConfig, Criterion
from workbench.files.faults import Breach, Fault, Location, below, json_path, nearest, nearest_hint, unexpected
from workbench.files.file_access import read_regular, real_path
from workbench.files.genai_types import GenerateContentConfig
from workbench.files.json_text.text_file import (
    LARGEST_YAML,
    YamlError,
    repeated_keys,
    unreadable,
    yaml_data,
    yaml_place,
)
from workbench.files.schema import OPEN
from workbench.text.json_values import mapping, string
from workbench.text.safe_text import one_line

METRICS_FILE = "eval_config.yaml"
OWN_KEY = "agents_cli"
_RUBRICS = "rubric_based_final_response_quality_v1"
_TOOLS = "rubric_based_tool_use_quality_v1"
_CALLS = "tool_trajectory_avg_score"
_WORDS = "response_match_score"
_CONVERSATION = "rubric_based_multi_turn_trajectory_quality_v1"
_SERVICE: Mapping[str, tuple[str, str]] = {
    "general_quality": ("general_quality_v2", _RUBRICS),
    "text_quality": ("text_quality_v2", _RUBRICS),
    "instruction_following": ("instruction_following_v2", _RUBRICS),
    "grounding": ("grounding_v2", "hallucinations_v1"),
    "hallucination": ("hallucination_v2", "hallucinations_v1"),
    "safety": ("safety_v3", "safety_v1"),
    "final_response_quality": ("final_response_quality_v2", _RUBRICS),
    "final_response_match": ("final_response_match_v3", "final_response_match_v2"),
    "final_response_reference_free": ("final_response_reference_free_v2", _RUBRICS),
    "tool_use_quality": ("tool_use_quality_v2", _TOOLS),
    "multi_turn_general_quality": ("multi_turn_general_quality_v2", _CONVERSATION),
    "multi_turn_text_quality": ("multi_turn_text_quality_v2", _CONVERSATION),
    "multi_turn_task_success": ("multi_turn_task_success_v1", _CONVERSATION),
    "multi_turn_trajectory_quality": ("multi_turn_trajectory_quality_v1", _CONVERSATION),
    "multi_turn_tool_use_quality": ("multi_turn_tool_use_quality_v1", _TOOLS),
    # The workbench sends these nowhere: they are not text, have another request, or are prompts in Google's storage.
    **{f"gecko_text2{what}": ("", "") for what in ("image", "video")},
    **dict.fromkeys(("coherence", "fluency", "verbosity", "question_answering_quality"), ("", _RUBRICS)),
    **dict.fromkeys(("summarization_quality", "multi_turn_chat_quality", "multi_turn_safety"), ("", _RUBRICS)),
    **dict.fromkeys(("exact_match", "bleu"), ("", _WORDS)),
    **dict.fromkeys(("tool_call_valid", "tool_name_match"), ("", _CALLS)),
    **dict.fromkeys(("tool_parameter_key_match", "tool_parameter_kv_match"), ("", _CALLS)),
}
"""Metric of Google's service → its newest version ("" if the workbench cannot ask for it), nearest criterion here."""
_BODY = ("prompt_template", "custom_function", "custom_function_file", "remote_custom_function")
_SCALE = re.compile(r"\b[01](?:\s*-\s*|\s*–\s*|\s+to\s+)(\d{1,3})\b")


@with_config(OPEN)
class CustomMetric(TypedDict, total=False):
    """An entry of `custom_metrics`."""

    name: str
    custom_function: str
    custom_function_file: str
    prompt_template: str
    execution: str
    judge_model: str | None
    judge_model_sampling_count: Annotated[int, Ge(1), Le(32)] | None
    judge_model_system_instruction: str | None
    judge_model_generation_config: GenerateContentConfig | None
    metric_spec_parameters: dict[str, Any] | None
    result_parsing_function: str | None
    remote_custom_function: str | None
    judge_model_step_configs: dict[str, Any] | None
    return_raw_output: bool | None
    metric_resource_name: str | None


@with_config(OPEN)
class MetricsFile(TypedDict, total=False):
    """A whole `eval_config.yaml`."""

    metrics_to_run: list[str]
    custom_metrics: list[CustomMetric]


@dataclass(frozen=True)
class MetricsConfig:
    """A metrics file that was read.

    `entries` has, for each known metric that the file defines or selects (lower-case name), the entry that
    `with_metrics` puts into a config's `custom_metrics`. `selected` are the names of the metrics to run.
    """

    path: Path | None
    selected: tuple[str, ...] = ()
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()


def read_metrics(path: Path, root: Path) -> MetricsConfig:
    """Read a file of metrics. Never raises: every problem is a fault. Paths of functions are relative to `root`."""
    try:
        text = read_regular(path, LARGEST_YAML).decode("utf-8-sig")
        content = yaml_data(text)
    except OSError as error:
        return MetricsConfig(path, faults=(unreadable(path, error),))
    except YamlError as error:
        place = re.match(r"line (\d+), column (\d+): ", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        message = f"this is not YAML: {str(error)[place.end() if place else 0 :]}"
        return MetricsConfig(path, faults=(Fault(path, line, column, "", message),))
    except Exception as error:
        return MetricsConfig(path, faults=(unexpected(path, error),))
    reading = _Reading(path, root)
    breaches = list(reading.breaches(content))
    faults = [one.at(path, yaml_place(text, one.location), json_path(one.location)) for one in breaches]
    for key, line, column in repeated_keys(text):
        message = f"the key `{one_line(key, limit=60)}` occurs again: the last one counts"
        faults.append(Fault(path, line, column, "", message, "", "warning"))
    return MetricsConfig(path, tuple(reading.selected), reading.entries, tuple(faults))


class _Reading:
    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, root
        self.selected: dict[str, None] = {}
        self.entries: dict[str, dict[str, Any]] = {}

    def breaches(self, content: Any) -> Iterator[Breach]:
        """Yield the errors and warnings of the file's content, and collect its metrics."""
        if not isinstance(content, dict):
            wanted = "`metrics_to_run` and `custom_metrics`"
            yield Breach((), f"a file of metrics must be an object with {wanted}, not {describe(content)}")
            return
        yield from _misspelt(content, frozenset(MetricsFile.__annotations__))
        wrong = breaches_of(MetricsFile, content)
        yield from wrong
        if wrong:
            return
        for number, metric in enumerate(content.get("custom_metrics") or ()):
            if name := string(metric.get("name")):
                if name.lower() in self.entries:
                    message = f"`{one_line(name, limit=60)}` is defined again: agents-cli uses the last definition"
                    yield Breach(("custom_metrics", number, "name"), message, "Rename one", "warning")
                yield from below(("custom_metrics", number), self._own(name.lower(), metric))
        for number, name in enumerate(content.get("metrics_to_run") or ()):
            yield from below(("metrics_to_run", number), self._selected(name))
        if not content.get("metrics_to_run"):
            message = "`metrics_to_run` is empty, so this file judges nothing"
            yield Breach(("metrics_to_run",), message, "Name the metrics to run", "warning", on_key=True)

    def _selected(self, name: str) -> Iterator[Breach]:
        key = name.lower()
        if key not in self.entries and (entry := _of_service(key)) is not None:
            self.entries[key] = entry
        if key in self.entries:
            self.selected[key] = None
            return
        otherwise = "Criteria of the workbench go into the test_config.json beside the dataset"
        hint = nearest_hint(key, [*self.entries, *_SERVICE], otherwise)
        shown = one_line(name, limit=60)
        yield Breach((), f"`{shown}` is neither defined in `custom_metrics` nor a metric of Google's service", hint)

    def _own(self, name: str, metric: dict[str, Any]) -> Iterator[Breach]:
        """Collect one entry of `custom_metrics`, and yield why agents-cli refuses it."""
        yield from _misspelt(metric, frozenset(CustomMetric.__annotations__))
        bodies = [key for key in _BODY if key in metric]
        service = _of_service(name)
        self.entries[name] = service or _unavailable("")
        if "rubric_group_name" in metric:
            hint = "Use `metric_spec_parameters.rubric_group_key` with a metric of Google's service"
            yield Breach(("rubric_group_name",), "agents-cli does not support `rubric_group_name`", hint, on_key=True)
        elif not bodies and service is None:
            message = f"`{name}` has neither `custom_function`, `custom_function_file` nor `prompt_template`"
            yield Breach((), message, nearest_hint(name, _SERVICE))
        elif bodies and service is not None and re.search(r"_v\d+$", name):
            message = f"the name `{name}` belongs to Google's service, which ignores this definition"
            yield Breach(("name",), message, f"Rename it, for example to `my_{name}`")
        elif {"custom_function", "custom_function_file"} <= metric.keys():
            message = "both `custom_function` and `custom_function_file` are given"
            yield Breach(("custom_function_file",), message, "Keep one", on_key=True)
        elif "custom_function" in metric or "custom_function_file" in metric:
            yield from self._function(name, metric)
        elif "prompt_template" in metric:
            yield from self._template(name, metric)
        elif bodies:
            self.entries[name] = _unavailable("")

    def _function(self, name: str, metric: dict[str, Any]) -> Iterator[Breach]:
        execution = metric.get("execution", "local")
        source, file = metric.get("custom_function", ""), metric.get("custom_function_file", "")
        if execution not in ("local", "remote"):
            yield Breach(("execution",), f"`execution` is {describe(execution)}", "Write local or remote")
        elif execution == "remote":
            self.entries[name] = _unavailable("")
        elif file:
            path = self._path.parent / file
            if not path.is_file():
                message = f"there is no file {file} (looked for {path})"
                yield Breach(("custom_function_file",), message, f"It is relative to the folder of {self._path.name}")
                return
            inside = real_path(path)
            shown = inside.relative_to(self._root).as_posix() if inside.is_relative_to(self._root) else str(inside)
            self.entries[name] = _entry("function", source="", file=shown, suggested=_suggested(_text_of(path)))
        else:
            self.entries[name] = _entry("function", source=source, file="", suggested=_suggested(source))

    def _template(self, name: str, metric: dict[str, Any]) -> Iterator[Breach]:
        template = metric["prompt_template"]
        if not template.strip():
            yield Breach(("prompt_template",), "`prompt_template` is empty")
            return
        if metric.get("result_parsing_function"):
            message = "`result_parsing_function` runs only in Google's service; here, the judge replies with JSON"
            yield Breach(("result_parsing_function",), message, "", "warning", on_key=True)
        options: dict[str, Any] = {"num_samples": metric.get("judge_model_sampling_count") or 1}
        if metric.get("judge_model"):
            options["judge_model"] = metric["judge_model"]
        if metric.get("judge_model_generation_config"):
            options["judge_model_config"] = metric["judge_model_generation_config"]
        instruction = string(metric.get("judge_model_system_instruction"))
        self.entries[name] = _entry(
            "template",
            prompt_template=template,
            judge_model_options=options,
            system_instruction=instruction,
            suggested=_suggested(f"{instruction} {template}"),
        )


def with_metrics(config: CriteriaConfig | None, metrics: MetricsConfig | None, beside: Path) -> CriteriaConfig:
    """Return the criteria of a dataset: its metrics, then the other criteria of `config`.

    The metrics are those that their file selects, and those that it defines and `config` names. A metric gets the
    threshold that `config` has under its name. A metric without one is informational. `beside` is the path of `config`,
    which may not exist.
    """
    given = config or CriteriaConfig(None, ())
    metrics = metrics or MetricsConfig(None)
    named = {item.name.lower(): item for item in given.criteria}
    names = dict.fromkeys((*metrics.selected, *(name for name in metrics.entries if name in named)))
    criteria = [replace(named[name], name=name) if name in named else Criterion(name, 0.0, None, {}) for name in names]
    criteria += [item for item in given.criteria if item.name.lower() not in names]
    return replace(
        given,
        path=given.path or metrics.path,
        criteria=tuple(criteria),
        custom_metrics={**given.custom_metrics, **{name: metrics.entries[name] for name in names}},
        # The default criteria never apply here.
        faults=(*metrics.faults, *(fault for fault in given.faults if fault.message != NO_CRITERIA)),
        has_criteria=True,
        metrics_file=metrics.path,
        thresholds_file=beside,
    )


def metric_place(path: Path, name: str) -> tuple[int, int, str]:
    """Return the line, column and JSON path of a metric in the file that defines or selects it, or (0, 0, "")."""
    try:
        text = read_regular(path, LARGEST_YAML).decode("utf-8-sig")
        content = mapping(yaml_data(text))
    except (OSError, ValueError):
        return 0, 0, ""
    defined = [mapping(metric).get("name") for metric in _list(content.get("custom_metrics"))]
    for key, names in (("custom_metrics", defined), ("metrics_to_run", _list(content.get("metrics_to_run")))):
        places = [number for number, found in enumerate(names) if string(found).lower() == name.lower()]
        if places:
            location: Location = (key, places[-1])
            return *yaml_place(text, location), json_path(location)
    return 0, 0, ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def metrics_of(config: CriteriaConfig) -> MetricsConfig | None:
    """Return the metrics that are part of a dataset's criteria, or None for an evalset's."""
    if config.thresholds_file is None:
        return None
    entries = {name: entry for name, entry in config.custom_metrics.items() if own_entry(entry)}
    selected = tuple(item.name for item in config.criteria if item.name in entries)
    return MetricsConfig(config.metrics_file, selected, entries)


def own_entry(entry: Any) -> dict[str, Any]:
    """Return the part of an entry of `custom_metrics` that is a metric of agents-cli, or {} for a function of ADK."""
    return mapping(mapping(entry).get(OWN_KEY))


def _entry(kind: str, **fields: Any) -> dict[str, Any]:
    return {OWN_KEY: {"kind": kind, **fields}}


def _unavailable(nearest_criterion: str) -> dict[str, Any]:
    return _entry("service", metric="", nearest=nearest_criterion, suggested=0.8)


def _of_service(name: str) -> dict[str, Any] | None:
    """Return the entry of a metric of Google's service, or None if it has no metric with this name."""
    base = re.sub(r"_v\d+$", "", name)
    if base.startswith("rouge"):
        return _unavailable(_WORDS)
    if base not in _SERVICE:
        return None
    newest, nearest_criterion = _SERVICE[base]
    metric = name if newest and base != name else newest
    return _entry("service", metric=metric, nearest=nearest_criterion, suggested=0.8)


def _misspelt(value: Mapping[str, Any], known: frozenset[str]) -> Iterator[Breach]:
    for key in value:
        if key not in known and (meant := nearest(key, known)):
            yield Breach((key,), f"unknown key `{key}`: agents-cli ignores it", f"Did you mean `{meant}`?", on_key=True)


def _suggested(text: str) -> float:
    """Return a threshold to propose: four fifths of the scale that a function or prompt names (`1-5`), else 0.8."""
    found = _SCALE.search(text)
    return round(int(found[1]) * 0.8, 1) if found and int(found[1]) else 0.8


def _text_of(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8", "replace")
    except OSError:
        return ""
