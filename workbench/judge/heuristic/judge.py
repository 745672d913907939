"""Replies of the rules to each kind of question, as the JSON text that its prompt asks for."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from workbench.judge.answering import Answer, JudgeCallError
from workbench.judge.base import JudgeOptions, Question, QuestionKind
from workbench.judge.heuristic import VERSION
from workbench.judge.heuristic.answers import Finding, compare
from workbench.judge.heuristic.claims import label
from workbench.judge.heuristic.rubrics import decide, situation
from workbench.judge.heuristic.texts import sentences
from workbench.judge.heuristic.user_messages import consistent
from workbench.judge.kinds import Connection


class Heuristic:
    """Rules as a `workbench.judge.answering.Answerer`. All samples of one question get the same reply."""

    async def ready(self) -> None:
        """Return at once: nothing has to start."""

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Reply to a question. A thread is used, so that a long text does not block other work.

        Raises:
            JudgeCallError: The question is for a simulated user, or its data has the wrong shape.
        """
        return Answer(await asyncio.to_thread(reply, question), model_version=VERSION)

    async def close(self) -> None:
        """Return at once: nothing has to stop."""


def reply(question: Question) -> str:
    """Return the reply to a question. Raises the same errors as `Heuristic.answer`."""
    rule = _RULES.get(question.kind)
    if rule is None:
        message = (
            f"heuristic has no rules for {question.kind!r}: rules cannot simulate a user. Name a model, or a Python"
            " function (python:package.module:function), in user_simulator_config.model"
        )
        raise JudgeCallError("unreadable", message)
    try:
        return json.dumps(rule(question.data), ensure_ascii=False)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        message = f"heuristic cannot read the data of a {question.kind!r} question: {type(error).__name__}: {error}"
        raise JudgeCallError("unreadable", message) from error


def _rubrics(data: Mapping[str, Any]) -> dict[str, Any]:
    happened = situation(data)
    found = [(str(rubric.get("id")), decide(str(rubric.get("text") or ""), happened)) for rubric in data["rubrics"]]
    return {"verdicts": [{"id": own, "rationale": one.why, "verdict": _word(one, "yes", "no")} for own, one in found]}


def _claims(data: Mapping[str, Any]) -> dict[str, Any]:
    found = label(data["sentences"], data["context"])
    return {"claims": [{"number": number, **asdict(claim)} for number, claim in enumerate(found, start=1)]}


def _verdict(found: Finding) -> dict[str, Any]:
    return {"reasoning": found.why, "verdict": _word(found, "valid", "invalid")}


def _word(found: Finding, yes: str, no: str) -> str:
    return "unclear" if found.holds is None else yes if found.holds else no


_RULES: dict[QuestionKind, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "final_response_match": lambda data: _verdict(compare(data["user"], data["response"], data["reference"])),
    "rubrics": _rubrics,
    "sentences": lambda data: {"sentences": sentences(data["text"])},
    "claims": _claims,
    "user_message": lambda data: _verdict(consistent(data)),
}


def connect(to: Connection) -> Heuristic:
    """Return the rules, which are the same for each environment."""
    return Heuristic()
