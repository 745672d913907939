"""A bench whose judge is a function of the test, and functions that build turns."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from workbench.criteria.base import Functions, ScoreRequest
from workbench.files.criteria import Criterion
from workbench.judges.base import JudgeFault, JudgeIdentity, JudgeOptions, NotAvailableError, Question, Reply

Turn = dict[str, Any]
Answer = Callable[[Question, int], Any]
FAULT = Reply(None, JudgeFault("quota", "too many requests", "429 RESOURCE_EXHAUSTED"))


class Bench:
    """A bench with a scripted judge.

    `answer(question, sample)` returns a Reply, a text, or JSON data. `asked` lists the (question, sample) in order.
    """

    def __init__(self, answer: Answer, *, all_votes: bool = False, ratings: Any = None) -> None:
        self.all_votes = all_votes
        self.asked: list[tuple[Question, int]] = []
        self.forgotten: list[tuple[str, int]] = []
        self.options = JudgeOptions()
        self.identity = JudgeIdentity("scripted", "python", "SCRIPTED")
        self._answer, self._ratings = answer, ratings

    def judge(self, options: JudgeOptions) -> "Bench":
        self.options = options
        return self

    def service(self) -> "Bench":
        if self._ratings is None:
            raise NotAvailableError("no project", "set GOOGLE_CLOUD_PROJECT")
        return self

    def functions(self) -> Functions:
        raise NotAvailableError("no functions")

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        self.asked.append((question, sample))
        said = self._answer(question, sample)
        if isinstance(said, Reply):
            return said
        return Reply(said if isinstance(said, str) else json.dumps(said))

    def forget(self, question: Question, sample: int = 1) -> None:
        self.forgotten.append((question.kind, sample))

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = self._ratings(metric, instance)
        return {
            "score": None,
            "explanation": "",
            "error": None,
            "seconds": 0.1,
            "attempts": 1,
            "cached": False,
            **given,
        }


def verdicts(*words: str) -> Answer:
    """Answer the n-th sample of every question with the n-th word: a verdict, `garbage` or `fault`."""

    def answer(question: Question, sample: int) -> Any:
        word = words[sample - 1]
        return {"fault": FAULT, "garbage": "???"}.get(word) or {"reasoning": f"it is {word}", "verdict": word}

    return answer


def turn(text: str | None = "fine", *events: Turn, user: str = "hello", **others: Any) -> Turn:
    made: Turn = {"user_content": {"parts": [{"text": user}]}, **others}
    if text is not None:
        made["final_response"] = {"parts": [{"text": text}]}
    if events:
        made["intermediate_data"] = {"invocation_events": list(events)}
    return made


def event(author: str, *parts: Turn, **others: Any) -> Turn:
    return {"author": author, "content": {"parts": list(parts)}, **others}


def said(text: str) -> Turn:
    return {"text": text}


def call(name: str, args: Any = None, call_id: str = "1") -> Turn:
    return {"function_call": {"name": name, "args": args or {}, "id": call_id}}


def result(name: str, response: Any, call_id: str = "1") -> Turn:
    return {"function_response": {"name": name, "response": response, "id": call_id}}


def rubric(rubric_id: str, kind: str | None = None, text: str = "") -> Turn:
    made: Turn = {"rubric_id": rubric_id, "rubric_content": {"text_property": text or f"text of {rubric_id}"}}
    return made if kind is None else {**made, "type": kind}


def request(name: str, *turns: Turn, expected: Any = (), threshold: float = 0.5, **others: Any) -> ScoreRequest:
    """Return a request. `expected` () means the same turns, None no reference; `options` are the criterion's."""
    options = others.pop("options", {})
    reference = turns if expected == () else None if expected is None else tuple(expected)
    return ScoreRequest(Criterion(name, threshold, threshold, options), reference, turns, **others)


def samples(number: int) -> Turn:
    return {"judge_model_options": {"num_samples": number}}
