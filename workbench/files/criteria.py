"""Criteria configs (`test_config.json`, `eval_config.json`, the file of `--config`) in every shape that ADK reads.

Names and options of criteria are not checked here; `workbench.criteria.registry` does that.
"""

import math
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.breaches import breaches_of, describe, faults_of, resolve, scan_file
from workbench.files.case_rules import dropped, dropped_keys, mistyped
from workbench.files.faults import Breach, Fault, Location, Places, below, nearest, nearest_hint, snake, unexpected
from workbench.files.file_access import read_regular
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import LARGEST_TREE, is_scannable
from workbench.files.json_text.text_file import TextFile, file_faults, unreadable
from workbench.files.opening import not_json
from workbench.files.schema import SIMULATORS, BaseCriterion, CustomMetric, EvalConfig, LiveModel
from workbench.files.spelling import get
from workbench.text.json_values import mapping

DEFAULTS = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""ADK's defaults for a run without a config."""
NO_CRITERIA = "no `criteria`: the defaults apply here, but ADK would judge nothing"
_CONFIG_KEYS = frozenset(EvalConfig.__annotations__)
TEMPLATE_NAMES = ("stop_signal", "conversation_plan", "conversation_history")
"""Names that a simulator's custom instructions must use, in Jinja's braces."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of a config."""

    name: str
    threshold: float
    value: Any
    """The JSON value as the file has it: a number, text, bool or object. None without a threshold."""
    options: dict[str, Any]
    """All keys of `value` except `threshold`, in snake_case; {} if it is not an object."""

    @property
    def is_informational(self) -> bool:
        """Whether the criterion has no threshold, so its score never decides the verdict."""
        return self.value is None


@dataclass(frozen=True)
class CriteriaConfig:
    """A criteria config. `path` is None for the defaults."""

    path: Path | None
    criteria: tuple[Criterion, ...]
    """The criteria, in the order of the file."""
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    user_simulator_config: dict[str, Any] | None = None
    live_model_config: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = ()
    has_criteria: bool = True
    """Whether the file has a `criteria` key. If not, the defaults apply. `{"criteria": {}}` means no criteria."""
    tree: tuple[Node, Places] | None = field(default=None, repr=False, compare=False)
    """The tree and places of the file's text. None for the defaults and for a file without a value."""
    metrics_file: Path | None = None
    """The `eval_config.yaml` of google-agents-cli that defines metrics of a dataset, or None."""
    thresholds_file: Path | None = None
    """The `test_config.json` beside a dataset, which may not exist yet; None for evalsets."""

    @property
    def broken(self) -> bool:
        """Whether the file has a fault that stops a run before it starts."""
        return any(fault.severity == "error" for fault in self.faults)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that define the criteria."""
        return tuple(dict.fromkeys(path for path in (self.path, self.metrics_file) if path is not None))

    @property
    def edited_file(self) -> Path | None:
        """The file in which users edit thresholds, or None for the defaults."""
        return self.thresholds_file or self.path

    def place(self, location: Location) -> tuple[int, int]:
        """Return the line and column (from 1) of a location like `("criteria", "response_match_score", "threshold")`.

        The place is that of the key or list item, or of its nearest parent in the file. Without a `tree`, it is (0, 0).
        """
        if self.tree is None:
            return 0, 0
        root, places = self.tree
        _, child = resolve(root, location)
        return places.at(root.start if child is None else child.key_start)


def read_config(path: Path) -> CriteriaConfig:
    """Read a criteria config. Never raises.

    A missing, unreadable or wrong file gives a config with faults, and with the criteria that could be read.
    """
    try:
        return parse_config(path, read_regular(path, LARGEST_TREE))
    except OSError as error:
        return CriteriaConfig(path, (), faults=(unreadable(path, error),))
    except Exception as error:
        return CriteriaConfig(path, (), faults=(unexpected(path, error),))


def parse_config(path: Path, content: bytes) -> CriteriaConfig:
    """Return the config in this content of `path`, which is perhaps not saved yet."""
    file = TextFile(content)
    if not is_scannable(file.data):
        return CriteriaConfig(path, (), faults=(Fault(path, 0, 0, "", "the file is too large for a criteria config"),))
    if file.other_encoding:
        return CriteriaConfig(path, (), faults=tuple(file_faults(path, file)))
    scanned, places, faults = scan_file(path, file)
    wrong = any(fault.severity == "error" for fault in faults)
    foreign = not_json(path, file.text(), places, 'Expected {"criteria": {…}}') if wrong else None
    if foreign is not None:
        return CriteriaConfig(path, (), faults=(foreign,))
    if scanned.root is None:
        return CriteriaConfig(path, (), faults=tuple(faults))
    value = scanned.root.value()
    if all(flaw.certain for flaw in scanned.flaws if flaw.severity == "error"):
        faults += faults_of(path, config_breaches(value), scanned.root, places)
    faults.sort(key=lambda fault: (fault.line, fault.column))
    tree = (scanned.root, places)
    if not isinstance(value, dict):
        return CriteriaConfig(path, (), faults=tuple(faults), tree=tree)
    named = mapping(value.get("criteria"))
    return CriteriaConfig(
        path,
        tuple(criterion for name, item in named.items() if (criterion := _criterion(name, item))),
        mapping(get(value, "custom_metrics")),
        mapping(get(value, "user_simulator_config")) or None,
        mapping(get(value, "live_model_config")) or None,
        tuple(faults),
        "criteria" in value,
        tree,
    )


def default_config() -> CriteriaConfig:
    """Return the config that applies if no file is found: trajectory 1.0, response match 0.8."""
    return CriteriaConfig(None, tuple(Criterion(name, value, value, {}) for name, value in DEFAULTS.items()))


def stored_config(
    criteria: dict[str, Any], custom_metrics: dict[str, Any], user_simulator_config: dict[str, Any] | None
) -> CriteriaConfig:
    """Return the config that judged a stored run, from the values that the run recorded."""
    items = ((name, value, _criterion(name, value)) for name, value in criteria.items())
    read = (item or Criterion(name, 0.0, None, {}) for name, value, item in items if item or value is None)
    return CriteriaConfig(None, tuple(read), custom_metrics, user_simulator_config)


def _criterion(name: str, value: Any) -> Criterion | None:
    """Return the criterion, or None if it has no readable threshold; the file then has a fault."""
    options = mapping(value)
    threshold = number_of(options.get("threshold") if isinstance(value, dict) else value)
    return None if threshold is None else Criterion(name, threshold, value, _options(options))


def _options(value: dict[str, Any]) -> dict[str, Any]:
    options = {}
    for key, item in value.items():
        name = snake(key) if to_camel(snake(key)) == key else key
        if name == "judge_model_options" and isinstance(item, dict):
            item = _options(item)
        if key != "threshold":
            options[name] = item
    return options


def config_breaches(content: Any) -> list[Breach]:
    """Return the errors and warnings of a config's content.

    A threshold of NaN or infinity, which ADK accepts, and a misspelt `criterias`, which ADK ignores, are errors here.
    """
    if not isinstance(content, dict):
        return [Breach((), f"a config must be an object with `criteria`, not {describe(content)}")]
    found = list(_key_breaches(content))
    found += breaches_of(EvalConfig, content)
    criteria = content.get("criteria")
    if isinstance(criteria, dict):
        for name, value in criteria.items():
            found += below(("criteria", name), _criterion_breaches(name, value))
    simulator = get(content, "user_simulator_config")
    if isinstance(simulator, dict):
        found += below(("user_simulator_config",), _simulator_breaches(simulator))
    for name, metric in mapping(get(content, "custom_metrics")).items():
        found += below(("custom_metrics", name), dropped_keys(CustomMetric, metric))
    found += below(("live_model_config",), dropped_keys(LiveModel, get(content, "live_model_config")))
    return found


def _criterion_breaches(name: str, value: Any) -> Iterator[Breach]:
    if not isinstance(value, dict):
        yield from _threshold_breaches(value, f"`{name}`")
        return
    for breach in breaches_of(BaseCriterion, value):
        if breach.location != ("threshold",):
            yield breach
    if "threshold" in value:
        yield from below(("threshold",), _threshold_breaches(value["threshold"], "`threshold`"))


def number_of(value: Any) -> float | None:
    """Return the threshold as ADK reads it, or None if ADK rejects the value.

    ADK accepts numbers, text that spells a number, true and false.
    """
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if isinstance(value, str) and value.isascii():
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _threshold_breaches(value: Any, what: str) -> Iterator[Breach]:
    number = number_of(value)
    if number is None:
        wanted = "a number" if what == "`threshold`" else "a number, or an object with `threshold`"
        yield Breach((), f"{what} must be {wanted}, not {describe(value)}", _number_hint(value))
    elif not math.isfinite(number):
        yield Breach((), f"{what} is {number}: no score can be compared with it", "Write a finite number")
    elif not isinstance(value, (int, float)) or isinstance(value, bool):
        message = f"{what} is {describe(value)}: ADK reads it as the number {number:g}"
        yield Breach((), message, f"Write {number:g}", "warning")


def _number_hint(value: Any) -> str:
    if value is None:
        return "To leave out a criterion, delete its line"
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return "Write 0.8 for 80%"
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]+,[0-9]+\s*", value):
        return "Use a decimal point, not a comma"
    return ""


def _key_breaches(content: dict[str, Any]) -> Iterator[Breach]:
    for key in content:
        if key in _spellings(_CONFIG_KEYS):
            continue
        if hint := nearest_hint(key, _CONFIG_KEYS):
            yield Breach((key,), f"unknown key `{key}`: ADK would ignore it", hint, on_key=True)
        else:
            yield dropped((key,), _CONFIG_KEYS)
    if "criteria" not in content and not any(nearest(key, {"criteria"}) for key in content):
        yield Breach((), NO_CRITERIA, 'Write "criteria": {} to judge nothing', "warning")
    elif content.get("criteria") == {}:
        yield Breach(("criteria",), "there are no criteria, so nothing is judged", "", "warning", on_key=True)


def _simulator_breaches(simulator: dict[str, Any]) -> Iterator[Breach]:
    kind = simulator.get("type") or "llm_backed"
    schema = SIMULATORS.get(kind) if isinstance(kind, str) else None
    if schema is None or (simulator.get("type") is not None and kind != simulator["type"]):
        message = f"`type` is {describe(simulator['type'])}, which is not a known simulator"
        yield Breach(("type",), message, f"Known: {', '.join(SIMULATORS)}")
        return
    yield from breaches_of(schema, {key: item for key, item in simulator.items() if key != "type" or item is not None})
    instructions = get(simulator, "custom_instructions")
    if isinstance(instructions, str):
        yield from below(("custom_instructions",), _template_breaches(instructions))
    yield from mistyped(simulator.keys() - _spellings(schema.model_fields), schema.model_fields)


def _template_breaches(instructions: str) -> Iterator[Breach]:
    """Yield the faults that ADK finds in instructions, and a warning for each unknown name."""
    yield from (Breach((), fault) for fault in instruction_faults(instructions))
    with suppress(TemplateFaultError):
        for name in sorted(names_in(instructions) - {*TEMPLATE_NAMES, "persona"}):
            hint = nearest_hint(name, [*TEMPLATE_NAMES, "persona"])
            yield Breach((), f"the instructions use `{name}`, which is always empty", hint, "warning")


def _spellings(known: Collection[str]) -> set[str]:
    return {*known, *map(to_camel, known)}


class TemplateFaultError(ValueError):
    """A text is not a Jinja template. The message says why and on which of its lines."""


@lru_cache(maxsize=64)
def names_in(template: str) -> frozenset[str]:
    """Return the names that a template uses and does not define. ADK checks them in custom instructions.

    Raises:
        TemplateFaultError: the text cannot be parsed.
    """
    # 30 ms to import, and few configs have a template.
    from jinja2 import TemplateError, TemplateSyntaxError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    # ADK defines this filter for the texts of personas. Its effect does not matter here.
    environment.filters["render_string_filter"] = str
    try:
        return frozenset(meta.find_undeclared_variables(environment.parse(template)))
    except TemplateSyntaxError as error:
        raise TemplateFaultError(f"{error.message} (line {error.lineno} of the text)") from None
    except (TemplateError, RecursionError) as error:
        raise TemplateFaultError(str(error) or "it is nested too deeply") from None


def instruction_faults(template: str, *, with_persona: bool = False) -> list[str]:
    """Return [] if custom instructions can be used, else a list with one sentence that says why not.

    The instructions must be a Jinja template and use the names that a simulated user needs.
    """
    try:
        used = names_in(template)
    except TemplateFaultError as error:
        return [f"the instructions are not a valid Jinja template: {error}"]
    wanted = [*TEMPLATE_NAMES, *(["persona"] if with_persona else [])]
    missing = ", ".join(f"{{{{ {name} }}}}" for name in wanted if name not in used)
    if not missing:
        return []
    why = " (the scenario has a persona)" if missing == "{{ persona }}" else ""
    return [f"the instructions must use {missing}{why}"]
