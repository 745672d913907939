"""Errors and values agree with the installed google-adk."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.files import samples
from tests.files.adk_process import Adk
from tests.files.invocations import normalise_invocation
from workbench.files.breaches import known_keys, type_at
from workbench.files.criteria import config_breaches
from workbench.files.current_cases import validate, validate_case
from workbench.files.evalset import EvalsetDocument, open_evalset
from workbench.files.genai_types import GenerateContentConfig
from workbench.files.schema import SIMULATORS, UserPersona
from workbench.files.schema import EvalCase as CaseSchema
from workbench.files.schema import EvalConfig as ConfigSchema
from workbench.files.schema import EvalSet as EvalSetSchema

_MODELLED = "2.13."


def _adk_version() -> str | None:
    try:
        return version("google-adk") if importlib.util.find_spec("google.adk") else None
    except ModuleNotFoundError:
        return None


pytestmark = pytest.mark.skipif(
    not (_adk_version() or "").startswith(_MODELLED), reason=f"google-adk {_MODELLED}x is not installed"
)
_quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def adk() -> Iterator[Adk]:
    process = Adk()
    yield process
    process.close()


def _ours(schema: Any) -> Any:
    """Return fields in the form that the oracle uses."""
    found: dict[str, Any] = {}
    if names := known_keys(schema):
        return {name: _ours(type_at(schema, (name,))) for name in names}
    for argument in getattr(schema, "__args__", ()):
        found |= _ours(argument) or {}
    return found or None


def test_every_field_of_every_model_is_known(adk: Adk) -> None:
    theirs = adk.ask("fields")
    ours = {"EvalSet": _ours(EvalSetSchema), "EvalConfig": _ours(ConfigSchema)}
    ours["EvalSet"]["eval_cases"] = _ours(CaseSchema)
    ours["EvalSet"]["eval_cases"]["conversation_scenario"]["user_persona"] = _ours(UserPersona)
    del ours["EvalSet"]["eval_cases"]["session_input"]["events"]  # ADK keeps this key and does not read it.
    ours["EvalConfig"]["user_simulator_config"] = {
        name: fields for kind in SIMULATORS.values() for name, fields in _ours(kind).items()
    }
    # Criteria are checked by hand and may have any extra keys.
    theirs["EvalConfig"]["criteria"] = None
    assert ours == theirs
    assert _ours(GenerateContentConfig) == theirs["EvalConfig"]["user_simulator_config"]["model_configuration"]


@given(samples.slightly_wrong(samples.CASE, samples.CASE, samples.SCENARIO, samples.NAMED_PERSONA))
@_quick
def test_cases_are_rejected_exactly_where_adk_rejects_them(adk: Adk, case: Any) -> None:
    text = json.dumps(case)
    answer = adk.ask("case", text)
    value, breaches = validate_case(text.encode())
    assert (value is not None) == answer["accepted"], (breaches, answer["value"])
    assert answer["accepted"] or any(breach.severity == "error" for breach in breaches)


@given(samples.slightly_wrong(samples.EVALSET))
@_quick
def test_evalsets_are_rejected_exactly_where_adk_rejects_them(adk: Adk, evalset: dict[str, Any]) -> None:
    if isinstance(evalset.get("eval_cases"), list) and evalset["eval_cases"]:
        return  # the cases have their own test
    text = json.dumps(evalset)
    value, breaches = validate(EvalSetSchema, text.encode())
    assert (value is not None) == adk.ask("set", text)["accepted"], breaches


@given(samples.slightly_wrong(samples.CONFIG, samples.AUDIO_CONFIG))
@_quick
def test_configs_are_rejected_where_adk_rejects_them(adk: Adk, config: Any) -> None:
    """Misspelt keys and thresholds that are not finite are errors only for the workbench."""
    text = json.dumps(config)
    errors = [breach.message for breach in config_breaches(config) if breach.severity == "error"]
    own = [message for message in errors if "would ignore it" in message or "can be compared" in message]
    answer = adk.ask("config", text)
    assert bool(errors) == (not answer["accepted"]) or own == errors, (errors, answer["value"])


@given(samples.slightly_wrong(samples.WRITTEN_TURN, samples.RECORDED_TURN))
@_quick
def test_turns_are_normalised_as_adk_reads_them(adk: Adk, turn: Any) -> None:
    answer = adk.ask("turn", json.dumps(turn))
    if answer["accepted"]:
        assert adk.ask("turn", json.dumps(normalise_invocation(turn)))["value"] == answer["value"]
    else:
        with pytest.raises(ValueError, match=r"\w"):
            normalise_invocation(turn)


@given(content=samples.slightly_wrong(samples.OLD_EVALSET))
@_quick
def test_old_evalset_format_is_converted_as_adk_converts_it(
    adk: Adk, content: Any, new_folder: Callable[[], Path]
) -> None:
    if not _is_old(content, "data") and not _is_old(content, "name"):
        return
    path = new_folder() / "old.evalset.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    document = open_evalset(path)
    answer = adk.ask("evalset_file", json.dumps(content))
    names = [item.get("name") for item in content if isinstance(item, dict)]
    if answer["accepted"] and len(set(names)) == len(names):
        assert not document.broken, document.faults
        assert [adk.ask("case", json.dumps(case))["value"] for case in _cases(document)] == answer["value"]
    else:
        assert document.broken


@given(
    content=samples.slightly_wrong(samples.OLD_TEST),
    session=st.sampled_from([None, {}, {"app_name": "x"}, {"app_name": "x", "user_id": "u", "state": {"a": None}}]),
)
@_quick
def test_old_test_format_is_converted_as_adk_converts_it(
    adk: Adk, content: Any, session: dict[str, Any] | None, new_folder: Callable[[], Path]
) -> None:
    if not _is_old(content, "query"):
        return
    path = new_folder() / "old.test.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    document = open_evalset(path, initial_session=session)
    answer = adk.ask("test_file", json.dumps(content), session=session)
    if answer["accepted"]:
        assert not document.broken, document.faults
        (case,) = _cases(document)
        assert adk.ask("case", json.dumps({**case, "eval_id": ""}))["value"] == answer["value"][0]
    else:
        assert document.broken


def _is_old(content: Any, key: str) -> bool:
    return isinstance(content, list) and any(isinstance(item, dict) and key in item for item in content)


def _cases(document: EvalsetDocument) -> list[dict[str, Any]]:
    found = []
    for summary in document.cases:
        case = document.case(summary.index)
        converted: dict[str, Any] = {"eval_id": case.eval_id, "conversation": list(case.turns or ())}
        found.append(converted if case.session_input is None else {**converted, "session_input": case.session_input})
    return found
