"""Protocols of the clients that answer: one attempt each, without cache, limits, retries or timeouts.

The judge pool adds these. An attempt is cancelled when its time is over or the user stops it. The client then releases
everything it holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from workbench.judges.base import FaultKind, JudgeFault, JudgeOptions, Question

Scrub: TypeAlias = Callable[[str], str]
"""Function that removes keys from a text (`workbench.judges.secret_forms.Scrubber`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one attempt.

    `text` is None or blank if the service sent nothing. `cut` is the service's word for a reply that reached its token
    limit ("MAX_TOKENS"), else "".
    """

    text: str | None
    model_version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """Result of the evaluation service for one instance.

    `rubrics` are the rubrics that the service generated, each `{"id", "text", "met", "reasoning"}`.
    """

    score: float | None
    explanation: str = ""
    rubrics: tuple[dict[str, Any], ...] = ()


class JudgeCallError(Exception):
    """An attempt without an answer.

    - `message`: one sentence for the user, without keys, with the way to fix it if there is one
    - `code`: as the service gives it ("429 RESOURCE_EXHAUSTED")
    - `retry_after`: seconds that the service asks to wait
    - `retryable`: whether the same attempt may succeed a little later
    - `final`: whether every further question would be refused too, because the key is invalid or may not use the model

    `kind` "quota" with `retryable` pauses all calls to the same model with the same environment.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        code: str = "",
        retry_after: float | None = None,
        retryable: bool = False,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.message = message
        self.code = code
        self.retry_after = retry_after
        self.retryable = retryable
        self.final = final


def cut_fault(reason: str, *, begun: bool) -> JudgeFault:
    """Return the fault of a reply that reached its token limit. `begun` is true if some of its text arrived."""
    how = "cut off" if begun else "cut off before its first word"
    message = f"the reply was {how} ({reason}): raise max_output_tokens in judge_model_config"
    return JudgeFault("cut", message, reason)


class Answerer(Protocol):
    """A judge of one environment. One object answers all its questions, many at once."""

    async def ready(self) -> None:
        """Wait for one-time work (an import, a child process), so that it is not part of an attempt.

        Failures are reported by `answer`.
        """
        ...

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt to get an answer.

        Raises:
            JudgeCallError: There is none.
        """
        ...

    async def close(self) -> None:
        """Close connections and child processes."""
        ...


class Rater(Protocol):
    """The evaluation service for one environment. One object rates everything, many instances at once."""

    async def ready(self) -> None:
        """Wait for one-time work, as `Answerer.ready` does."""
        ...

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> Rating:
        """Make one attempt to get a rating. `workbench.criteria.base.Service.rate` describes `instance`.

        Raises:
            JudgeCallError: There is none.
        """
        ...

    async def close(self) -> None:
        """Close connections and child processes."""
        ...
