"""Run by `test_against_adk.py` in its own process: what google-adk's loaders say of files and values.

One JSON object a line in, one out. In: {"what", "text", ...}. Out: {"accepted", "value"}, the value as ADK writes it
itself, without what it makes up (ids and times); for {"what": "fields"} the fields of every model, by name.
"""

import json
import logging
import sys
import tempfile
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_case import EvalCase, Invocation
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file
from google.genai.types import GenerateContentConfig


def _model(kind: type[pydantic.BaseModel]) -> Callable[[dict[str, Any]], Any]:
    return lambda question: _dumped(kind.model_validate_json(question["text"]))


def _dumped(value: pydantic.BaseModel) -> Any:
    return json.loads(value.model_dump_json(exclude_none=True, exclude_unset=True))


def _file(question: dict[str, Any], load: Callable[[str], EvalSet]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.json")
        path.write_text(question["text"], encoding="utf-8")
        cases = load(str(path)).eval_cases
    return [_without_inventions(_dumped(case)) for case in cases]


def _without_inventions(case: dict[str, Any]) -> dict[str, Any]:
    case.pop("creation_timestamp", None)
    for turn in case.get("conversation", []):
        turn.pop("creation_timestamp", None)
        turn.pop("invocation_id", None)
    return case


def _evalset_file(question: dict[str, Any]) -> list[Any]:
    return _file(question, lambda path: load_eval_set_from_file(path, "id"))


def _test_file(question: dict[str, Any]) -> list[Any]:
    nothing = EvalConfig()
    cases = _file(
        question, lambda path: AgentEvaluator._load_eval_set_from_file(path, nothing, question.get("session") or {})
    )
    return [{**case, "eval_id": ""} for case in cases]


def _session(question: dict[str, Any]) -> list[Any]:
    from google.adk.cli.utils.evals import convert_session_to_eval_invocations
    from google.adk.sessions.session import Session

    turns = convert_session_to_eval_invocations(Session.model_validate_json(question["text"]))
    return [turn.model_dump(mode="json", exclude_none=True) for turn in turns]


def _fields(annotation: Any) -> Any:
    """Return {name: nested fields} of every model in a type, or None without one."""
    if annotation is GenerateContentConfig:
        return dict.fromkeys(annotation.model_fields)
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return {name: _fields(field.annotation) for name, field in annotation.model_fields.items()}
    found: dict[str, Any] = {}
    for argument in typing.get_args(annotation):
        found |= _fields(argument) or {}
    return found or None


_ANSWERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "case": _model(EvalCase),
    "turn": _model(Invocation),
    "set": _model(EvalSet),
    "config": _model(EvalConfig),
    "evalset_file": _evalset_file,
    "test_file": _test_file,
    "session": _session,
}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        question = json.loads(line)
        answer: dict[str, Any]
        if question["what"] == "fields":
            answer = {kind.__name__: _fields(kind) for kind in (EvalSet, EvalConfig)}
        else:
            try:
                answer = {"accepted": True, "value": _ANSWERS[question["what"]](question)}
            except Exception as error:  # any exception means that ADK rejects the value
                answer = {"accepted": False, "value": f"{type(error).__name__}: {error}"[:500]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
