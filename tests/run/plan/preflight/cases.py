"""Cases, environments and their preflight notices, without running anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.run.project import turn
from workbench.events.events import Noticed
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.evalset import EvalCase
from workbench.files.run_options import RunOptions
from workbench.judges.base import JudgeEnvironment
from workbench.run.plan.preflight import notices
from workbench.run.plan.preflight_cases import PreflightCase

KEY = {"GOOGLE_API_KEY": "scripted-key"}
JUDGE = {"judge_model": "gemini-2.5-flash", "num_samples": 5}
RUBRIC = {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite"}}
TYPED = {**RUBRIC, "type": "FINAL_RESPONSE_QUALITY"}
QUALITY = "per_turn_user_simulator_quality_v1"
ANSWER = "rubric_based_final_response_quality_v1"


def criteria(**options: Mapping[str, Any]) -> tuple[Criterion, ...]:
    return tuple(Criterion(name, 0.5, {}, dict(given)) for name, given in options.items())


def config(
    named: tuple[Criterion, ...], simulator: dict[str, Any] | None = None, custom: dict[str, Any] | None = None
) -> CriteriaConfig:
    return CriteriaConfig(Path("/p/test_config.json"), named, custom or {}, simulator)


def looked(
    settings: CriteriaConfig,
    *,
    agent: str = "desk",
    eval_id: str = "a",
    turns: int | None = 2,
    persona: Any = None,
    rubrics: tuple[dict[str, Any], ...] = (),
) -> PreflightCase:
    """Return a case with so many turns, or with a scenario if None."""
    told = {"starting_prompt": "Hi", "conversation_plan": "p", "user_persona": persona}
    scenario = {key: value for key, value in told.items() if value is not None} if turns is None else None
    conversation = None if turns is None else tuple(turn("hi", "ok") for _ in range(turns))
    case = EvalCase(eval_id, conversation, scenario, None, rubrics, None, {})
    return PreflightCase(agent, f"{agent}/all.evalset.json", case, settings, f"{agent}/test_config.json")


def said(
    *cases: PreflightCase,
    values: Mapping[str, Mapping[str, str]] | Mapping[str, str] = KEY,
    scale: float = 1.0,
    **options: Any,
) -> list[Noticed]:
    """Return the notices. `values` is the environment of all agents, or of each one by name."""

    def environment_of(agent: str) -> JudgeEnvironment:
        own = values.get(agent, values)
        assert isinstance(own, Mapping)
        return JudgeEnvironment(agent, {"NO_GCE_CHECK": "true", "HOME": "/nowhere", **own})  # type: ignore[dict-item]

    return list(notices(cases, environment_of, RunOptions(**options), scale))


def texts(*cases: PreflightCase, **given: Any) -> list[str]:
    return [notice.message for notice in said(*cases, **given)]
