"""Our scores and statuses against the ones that ADK's own evaluators gave, through the front door: the criterion is
read from a config file, the invocations as an evalset's are, and the registry does the scoring."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.events import MetricResult
from workbench.metrics.base import NotScorableError, Scored, ScoreRequest
from workbench.metrics.registry import check_criteria, score
from workbench.model.criteria import read_config
from workbench.model.invocation import normalise_invocation

Vector = dict[str, Any]
Result = dict[str, Any]

DECIDED_DIFFERENTLY: dict[str, Callable[[Vector], Result]] = {}
"""Quirk → the `result` that our documented rule (docs/adk-compatibility.md) gives for a vector, worked out here and not
by the implementation. The criteria scored so far follow ADK in every quirk."""
_TOLERANCE = 1e-9
_NO_VERDICT = ("error", "not_evaluated", "not_applicable")


class RefusedError(ValueError):
    """The front door found the vector's criterion or invocations wrong."""


def test_vector(vector: Vector, outcome: dict[str, Any], tmp_path: Path) -> None:
    scored = _scored(vector, tmp_path)
    wrong = _differences(vector["result"], scored)
    if not wrong:
        outcome["outcome"] = "equal"
        return
    rules = [DECIDED_DIFFERENTLY[quirk] for quirk in vector.get("quirks") or () if quirk in DECIDED_DIFFERENTLY]
    if any(not _differences(rule(vector), scored) for rule in rules):
        outcome["outcome"] = "differ as documented"
        return
    pytest.fail(f"{vector['id']} ({vector['note']}): {'; '.join(wrong)}")


def _scored(vector: Vector, folder: Path) -> Scored | ValueError:
    """What came out, or the refusal."""
    try:
        return score(_request(vector, folder))
    except (RefusedError, NotScorableError) as refusal:
        return refusal


def _request(vector: Vector, folder: Path) -> ScoreRequest:
    file = folder / "test_config.json"
    file.write_text(json.dumps({"criteria": {vector["metric"]: vector["criterion"]}}), encoding="utf-8")
    config = read_config(file)
    errors = [fault for fault in (*config.faults, *check_criteria(config)) if fault.severity == "error"]
    if errors:
        raise RefusedError(errors[0].sentence())
    expected = vector["expected"]
    return ScoreRequest(
        criterion=config.criteria[0],
        expected=None if expected is None else _turns(expected),
        actual=_turns(vector["actual"]),
        scenario=vector.get("conversation_scenario"),
        rubrics=tuple(vector.get("case_rubrics") or ()),
    )


def _turns(invocations: list[Any]) -> tuple[dict[str, Any], ...]:
    try:
        return tuple(normalise_invocation(invocation) for invocation in invocations)
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _differences(wanted: Result, got: Scored | ValueError) -> list[str]:
    if isinstance(got, ValueError):
        return [] if "error" in wanted else [f"refused: {got}"]
    if "error" in wanted:
        refused = got.result.status in _NO_VERDICT and got.result.score is None
        return [] if refused else [f"ADK refuses ({wanted['error']}), ours is {got.result.status}"]
    wrong = _compare("overall", wanted["overall_score"], wanted["overall_status"], got.result)
    turns = wanted["per_invocation"]
    if len(turns) != len(got.turns):
        return [*wrong, f"{len(turns)} turns, got {len(got.turns)}"]
    for number, (turn, result) in enumerate(zip(turns, got.turns, strict=True), 1):
        wrong += _compare(f"turn {number}", turn["score"], turn["status"], result)
    return wrong


def _compare(what: str, score: float | None, status: str, got: MetricResult) -> list[str]:
    wrong = []
    statuses = _NO_VERDICT if status == "NOT_EVALUATED" else (status.lower(),)
    if got.status not in statuses:
        wrong.append(f"{what}: {status}, got {got.status} ({got.reason})")
    if (score is None) != (got.score is None) or abs((score or 0.0) - (got.score or 0.0)) > _TOLERANCE:
        wrong.append(f"{what}: score {score}, got {got.score}")
    return wrong
