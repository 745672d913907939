"""A judge that looks for a word: `keyword:refund` finds answers with "refund" in them."""

import json

from workbench.judges.base import (
    Answer,
    JudgeCallError,
    JudgeEnvironment,
    JudgeIdentity,
    JudgeOptions,
    NotAvailableError,
    Question,
)
from workbench.judges.kinds import Connection, JudgeKind

PREFIX = "keyword:"


def identify(model: str, environment: JudgeEnvironment) -> JudgeIdentity:
    """Return who judges. Raise an error if something is missing: here the word, often a key."""
    word = model.removeprefix(PREFIX)
    if not word:
        raise NotAvailableError(f"{model} names no word", "write keyword:WORD")
    return JudgeIdentity(model, "keyword", f"a search for {word}", by="rules")


class Keyword:
    """The judge itself, in its own process. Limits, retries and the cache are common."""

    async def ready(self) -> None:
        """Return at once: nothing has to start."""

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Return the reply that the prompt asks for, as text."""
        if question.kind != "final_response_match":
            raise JudgeCallError("unreadable", f"keyword cannot answer {question.kind}")
        word = options.model.removeprefix(PREFIX)
        verdict = "valid" if word in question.data["response"] else "invalid"
        return Answer(json.dumps({"reasoning": f"looked for {word}", "verdict": verdict}))

    async def close(self) -> None:
        """Return at once: nothing has to stop."""


def connect(to: Connection) -> Keyword:
    return Keyword()


KEYWORD = JudgeKind(
    name="keyword",
    spelling="`keyword:WORD` (looks for a word)",
    answers_for=lambda model: model.startswith(PREFIX),
    identify=identify,
    connect="workbench_example.keyword:connect",
    determinants=lambda question, model, environment: {"data": question.data},
)
