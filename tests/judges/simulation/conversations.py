"""Functions that build turns and judges."""

from collections.abc import Callable
from typing import Any

from workbench.judges.base import JudgeIdentity, JudgeOptions, Question, Reply


def said(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text} for text in texts]}


def turn(user: str, answer: str, *events: dict[str, Any]) -> dict[str, Any]:
    """Return a turn as ADK records it: the event of the final answer has no content."""
    return {
        "user_content": said("user", user),
        "final_response": said("model", answer),
        "intermediate_data": {"invocation_events": [*events, {"author": "desk"}]},
    }


class Player:
    """A judge that answers with `answer(question)`: a text or a Reply."""

    identity = JudgeIdentity("python:tests:player", "python")
    options = JudgeOptions("python:tests:player", samples=1)

    def __init__(self, answer: Callable[[Question], str | Reply]) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        assert sample == 1
        self.asked.append(question)
        answer = self._answer(question)
        return answer if isinstance(answer, Reply) else Reply(answer)

    def forget(self, question: Question, sample: int = 1) -> None:
        raise AssertionError("a message that was read is forgotten")
