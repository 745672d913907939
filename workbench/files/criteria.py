"""Criteria configs (`test_config.json`, `eval_config.json`, the file of `--config`) in every shape that ADK reads.

Names and options of criteria are not checked here; `workbench.criteria.registry` does that.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.breaches import snake
from workbench.files.config_rules import config_breaches, number_of
from workbench.files.faults import Fault, Places, unexpected
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import LARGEST_TREE, is_scannable, scan
from workbench.files.json_text.text_file import TextFile, file_faults, unreadable
from workbench.files.locating import fault_of, faults_of, find
from workbench.files.opening import not_json
from workbench.files.spelling import get
from workbench.text.json_values import mapping

DEFAULTS = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""ADK's defaults for a run without a config."""
_EXPECTED = 'Expected {"criteria": {…}}'


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of a config."""

    name: str
    threshold: float
    value: Any
    """The JSON value as the file has it: a number, text, bool or object. None without a threshold."""
    options: dict[str, Any]
    """All keys of an object except `threshold`, in snake_case. {} for a number."""

    @property
    def is_informational(self) -> bool:
        """Whether no config gives it a threshold, so that its score never decides."""
        return self.value is None


@dataclass(frozen=True)
class CriteriaConfig:
    """A config that was read. `path` is None for the defaults."""

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

    def place(self, json_path: str) -> tuple[int, int]:
        """Return the line and column (from 1) of a path like `criteria.response_match_score.threshold`.

        The place is the key's place, if there is a key. A path that the file lacks gives the place of its nearest
        parent. The defaults have (0, 0).
        """
        if self.tree is None:
            return 0, 0
        root, places = self.tree
        child = find(root, json_path)
        return places.at(root.start if child is None else child.key_start)


def read_config(path: Path) -> CriteriaConfig:
    """Read a criteria config. Never raises.

    A file that is missing, unreadable or wrong has faults, and only the criteria that could be read.
    """
    try:
        return _parsed(path, TextFile.read(path, LARGEST_TREE))
    except OSError as error:
        return CriteriaConfig(path, (), faults=(unreadable(path, error),))
    except Exception as error:
        return CriteriaConfig(path, (), faults=(unexpected(path, error),))


def parse_config(path: Path, content: bytes) -> CriteriaConfig:
    """Return the config that `path` would be with this content, which may not be saved yet."""
    return _parsed(path, TextFile(content))


def _parsed(path: Path, file: TextFile) -> CriteriaConfig:
    if not is_scannable(file.data):
        return CriteriaConfig(path, (), faults=(Fault(path, 0, 0, "", "the file is too large for a criteria config"),))
    if file.other_encoding:
        return CriteriaConfig(path, (), faults=tuple(file_faults(path, file)))
    text = file.text()
    places = Places(text)
    scanned = scan(text, places=places)
    faults = [*file_faults(path, file), *(fault_of(path, flaw, places) for flaw in scanned.flaws)]
    wrong = any(fault.severity == "error" for fault in faults)
    foreign = not_json(path, text, places, _EXPECTED) if wrong else None
    if foreign is not None:
        return CriteriaConfig(path, (), faults=(foreign,))
    if scanned.root is None:
        return CriteriaConfig(path, (), faults=tuple(faults))
    content = scanned.root.value()
    doubtful = any(flaw.severity == "error" and not flaw.certain for flaw in scanned.flaws)
    if not doubtful:
        faults += faults_of(path, config_breaches(content), scanned.root, places)
    faults.sort(key=lambda fault: (fault.line, fault.column))
    tree = (scanned.root, places)
    if not isinstance(content, dict):
        return CriteriaConfig(path, (), faults=tuple(faults), tree=tree)
    named = mapping(content.get("criteria"))
    return CriteriaConfig(
        path,
        tuple(criterion for name, value in named.items() if (criterion := _criterion(name, value))),
        mapping(get(content, "custom_metrics")),
        mapping(get(content, "user_simulator_config")) or None,
        mapping(get(content, "live_model_config")) or None,
        tuple(faults),
        "criteria" in content,
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
