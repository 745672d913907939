"""A case's part of its evalset and criteria config, as inputs of its verdict.

A run stores it in full (event `CaseStarted`). These inputs are made from that event, or from the current
files. Both are JSON without secrets.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.events.events import CaseStarted
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.store.inputs import CODE, Bundle, Input, digest

_JUDGE = "judge_model_options"
_LONGEST = 60
LONG = "#"
"""Prefix of the digest of a value that is too long to show."""
_MESSAGE = "user_content"
_INPUTS = {
    "prompt",
    "agent_data",
    "conversation_history",
    "user_scenario",
    "reference",
    "rubric_groups",
    "eval_case_id",
}
"""Keys of a dataset's case that are inputs of the agent, or expected in the form of an evalset. The ID is its name."""


def started_bundles(started: CaseStarted, config_file: str | None) -> tuple[Bundle, ...]:
    """Return the inputs of a case that has started: those of the case itself, then those of its config."""
    return started_case(started), *started_config(started, config_file)


def started_case(started: CaseStarted) -> Bundle:
    """Return the inputs in the evalset of a case that has started."""
    return case_bundle(
        started.expected,
        started.scenario,
        started.session,
        started.rubrics,
        started.final_session_state,
        started.dataset_case,
    )


def started_config(started: CaseStarted, config_file: str | None) -> tuple[Bundle, Bundle]:
    """Return the inputs in the config of a case that has started."""
    config = stored_config(started.criteria, started.custom_metrics, None)
    simulator = None if started.scenario is None else started.simulator
    return criteria_bundle(config, config_file), simulator_bundle(simulator, config_file)


def case_bundle(
    turns: Sequence[Mapping[str, Any]] | None,
    scenario: Mapping[str, Any] | None,
    session: Mapping[str, Any] | None,
    rubrics: Sequence[Any],
    final_session_state: Any = None,
    dataset_case: Mapping[str, Any] | None = None,
) -> Bundle:
    """Return the inputs of a case. `scenario` has its persona in full. `session` is None if it is not known."""
    expected = {
        key: digest([turn.get(key) for turn in turns or ()])
        for key in sorted({key for turn in turns or () for key in turn if key != _MESSAGE})
    }
    if rubrics:
        expected["rubrics"] = digest([list(rubrics), expected.get("rubrics")])
    if final_session_state is not None:
        expected["final_session_state"] = digest(final_session_state)
    expected |= {key: digest(value) for key, value in (dataset_case or {}).items() if key not in _INPUTS}
    messages = {} if turns is None else {"user messages": digest([turn.get(_MESSAGE) for turn in turns])}
    inputs: dict[Input, dict[str, str]] = {"case": messages, "expected": expected, "scenario": _values(scenario or {})}
    return Bundle(inputs if session is None else {**inputs, "session": _values(session)})


def criteria_bundle(config: CriteriaConfig, file: str | None) -> Bundle:
    """Return the criteria with their thresholds and options, and the options of their judges."""
    criteria: dict[str, str] = {}
    judge: dict[str, str] = {}
    for item in config.criteria:
        criteria[f"{item.name} threshold"] = readable(None if item.is_informational else item.threshold)
        for option, value in item.options.items():
            if option == _JUDGE and isinstance(value, dict):
                judge |= {f"{item.name} {key}": readable(each) for key, each in value.items()}
            else:
                criteria[f"{item.name} {option}"] = readable(value)
        if item.name in config.custom_metrics:
            criteria[f"{item.name} {CODE}"] = readable(config.custom_metrics[item.name])
    return Bundle({"criteria": criteria, "judge": judge}, file)


def simulator_bundle(config: Mapping[str, Any] | None, file: str | None) -> Bundle:
    """Return the settings of the simulated user, without values if `config` is None."""
    return Bundle({"simulator": {key: readable(value) for key, value in (config or {}).items()}}, file)


def readable(value: Any) -> str:
    """Return the JSON of a value if it is short enough to show, else its digest."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else LONG + digest(value)


def _values(data: Mapping[str, Any]) -> dict[str, str]:
    return {key: digest(value) for key, value in data.items()}
