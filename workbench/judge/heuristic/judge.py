"""The judge itself: each kind of question to its rules, and their findings as the JSON text that is expected."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from workbench.judge.answering import Answer, JudgeCallError
from workbench.judge.base import JudgeOptions, Question, QuestionKind
from workbench.judge.heuristic.answers import Comparison, compare
from workbench.judge.heuristic.claims import label
from workbench.judge.heuristic.measured import VERSION
from workbench.judge.heuristic.rubrics import judge as judge_rubrics
from workbench.judge.heuristic.sentences import sentences
from workbench.judge.heuristic.user_messages import consistent


class Heuristic:
    """Implements `workbench.judge.answering.Answerer`. Samples of one question are all the same."""

    async def ready(self) -> None:
        """At once: there is nothing to start."""

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        return await answer(question, options, sample)

    async def close(self) -> None:
        """There is nothing to close."""


async def answer(question: Question, options: JudgeOptions, sample: int) -> Answer:
    """The reply to a question of any kind, in the JSON that its prompt asks for. It is made in a thread, so that a
    long text keeps nobody else waiting.

    Raises:
        JudgeCallError: it is asked to play a user, which rules cannot, or the question's data is not as documented.
    """
    return Answer(await asyncio.to_thread(reply, question), model_version=VERSION)


def reply(question: Question) -> str:
    """As `answer`, at once."""
    rule = _RULES.get(question.kind)
    if rule is None:
        message = (
            f"heuristic has no rules for {question.kind!r}: rules cannot play a user. Name a model, or a Python"
            " function (python:package.module:function), in user_simulator_config.model"
        )
        raise JudgeCallError("unreadable", message)
    try:
        return json.dumps(rule(question.data), ensure_ascii=False)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        message = f"heuristic cannot read the data of a {question.kind!r} question: {type(error).__name__}: {error}"
        raise JudgeCallError("unreadable", message) from error


def _match(data: Mapping[str, Any]) -> dict[str, Any]:
    return _verdict(compare(data["user"], data["response"], data["reference"]))


def _rubrics(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"verdicts": judge_rubrics(data)}


def _sentences(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"sentences": sentences(data["text"])}


def _claims(data: Mapping[str, Any]) -> dict[str, Any]:
    found = label(data["sentences"], data["context"])
    return {
        "claims": [
            {
                "number": number,
                "rationale": claim.rationale,
                "supporting_excerpt": claim.supporting,
                "contradicting_excerpt": claim.contradicting,
                "label": claim.label,
            }
            for number, claim in enumerate(found, start=1)
        ]
    }


def _user_message(data: Mapping[str, Any]) -> dict[str, Any]:
    return _verdict(consistent(data))


def _verdict(found: Comparison) -> dict[str, Any]:
    return {"reasoning": found.reason, "verdict": "valid" if found.valid else "invalid"}


_RULES: dict[QuestionKind, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "final_response_match": _match,
    "rubrics": _rubrics,
    "sentences": _sentences,
    "claims": _claims,
    "user_message": _user_message,
}
