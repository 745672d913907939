"""Results of ADK's judged evaluators for the vectors on stdin (the format of tests/parity).

`test_against_adk.py` runs this module as a process. The judge is scripted: it words each verdict so that ADK's readers
understand it.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from typing import Any

import tests.criteria.no_services  # isort: skip  # noqa: F401
from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

_REPLIES: list[str] = []


class ScriptedJudge(BaseLlm):  # type: ignore[misc]
    @classmethod
    def supported_models(cls) -> list[str]:
        return ["scripted-judge"]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=_REPLIES.pop(0))]))


def _verdict(word: str, key: str) -> str:
    return f'{{"reasoning": "so",\n"{key}": "{word}",\n}}' if word != "unparsable" else "who knows"


def _verdicts(sample: dict[str, str]) -> str:
    blocks = (f"ID: {each}\nProperty: text of {each}\nRationale: so\nVerdict: {word}" for each, word in sample.items())
    return "\n".join(blocks)


def _labels(step: dict[str, Any]) -> str:
    sentences = [*step["sentences"], *["Made up."] * len(step["labels"])]
    block = "sentence: {}\nlabel: {}\nrationale: so\nsupporting_excerpt: null\ncontradicting_excerpt: null\n"
    return "\n".join(block.format(*pair) for pair in zip(sentences, step["labels"], strict=False))


def _script(vector: dict[str, Any]) -> list[str]:
    judge = vector["judge"]
    match vector["metric"]:
        case "final_response_match_v2":
            return [_verdict(word, "is_the_agent_response_valid") for turn in judge["samples"] for word in turn]
        case "per_turn_user_simulator_quality_v1":
            asked = [*judge["samples"][1:], judge["stop_signal"]]
            return [_verdict(word, "is_valid") for turn in asked for word in turn]
        case "hallucinations_v1":
            steps = [step for turn in judge["invocations"] for step in turn]
            cut = ["".join(f"<sentence>{each}</sentence>" for each in step["sentences"]) for step in steps]
            return [reply for step, text in zip(steps, cut, strict=True) for reply in (text, _labels(step))]
        case _:
            return [_verdicts(sample) for turn in judge["samples"] for sample in turn]


async def _result(vector: dict[str, Any]) -> dict[str, Any]:
    _REPLIES[:] = _script(vector)
    criterion = BaseCriterion.model_validate(vector["criterion"])
    metric = EvalMetric(metric_name=vector["metric"], threshold=criterion.threshold, criterion=criterion)
    expected, scenario = vector["expected"], vector.get("conversation_scenario")
    try:
        found = await DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric).evaluate_invocations(
            [Invocation.model_validate(turn) for turn in vector["actual"]],
            None if expected is None else [Invocation.model_validate(turn) for turn in expected],
            ConversationScenario.model_validate(scenario) if scenario else None,
        )
    except ValueError as error:
        return {"error": str(error), "stage": "evaluate"}
    return {
        "overall_score": found.overall_score,
        "overall_status": found.overall_eval_status.name,
        "per_invocation": [
            {
                "score": turn.score,
                "status": turn.eval_status.name,
                "rubric_scores": [
                    {"rubric_id": each.rubric_id, "score": each.score} for each in turn.rubric_scores or ()
                ],
            }
            for turn in found.per_invocation_results
        ],
    }


async def main() -> None:
    vectors = json.load(sys.stdin)
    for vector in vectors:
        vector["result"] = await _result(vector)
    json.dump(vectors, sys.stdout)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    LLMRegistry.register(ScriptedJudge)
    asyncio.run(main())
