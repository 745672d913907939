"""What the desk asks of whoever really answers: one attempt, without cache, limits, retries or time-outs.

Those are the desk's. An attempt is cancelled when its time is over or when the user says so; whoever answers lets go
of what it holds then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from workbench.judge.base import FaultKind, JudgeFault, JudgeOptions, Question

Scrub: TypeAlias = Callable[[str], str]
"""Takes keys out of a text (`workbench.judge.scrub.Scrubber`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one attempt. `text` is None or blank where the service sent nothing. `cut` is the service's
    word for a reply that reached the limit of its tokens ("MAX_TOKENS"), else ""."""

    text: str | None
    model_version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """What the evaluation service gave for one instance. `rubrics` are those that it made up itself: `{"id", "text",
    "met", "reasoning"}` each."""

    score: float | None
    explanation: str = ""
    rubrics: tuple[dict[str, Any], ...] = ()


class JudgeCallError(Exception):
    """An attempt that brought no answer. `message` is one sentence for the user, already scrubbed of keys, with the
    way out where there is one; `code` as the service gives it ("429 RESOURCE_EXHAUSTED"); `retry_after` the seconds
    that the service asks to wait; `retryable` whether the same attempt may go well a little later. `kind` "quota" with
    `retryable` pauses all that goes to the same model with the same environment. `final` means that every further
    question to it would be refused as well: the key is not valid, or may not use the model."""

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
    """Return the fault of a reply that reached the limit of its tokens; `begun` if some of its text arrived."""
    how = "cut" if begun else "cut before it began"
    message = f"the reply was {how} ({reason}): raise max_output_tokens in judge_model_config"
    return JudgeFault("cut", message, reason)


class Answerer(Protocol):
    """A judge of one environment; one object serves all its questions, many of them at once."""

    async def ready(self) -> None:
        """Until it can be asked: what takes its time once (an import, a child) is not part of an attempt. What fails
        here is told by `answer`."""
        ...

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """One attempt to get an answer.

        Raises:
            JudgeCallError: there is none.
        """
        ...

    async def close(self) -> None:
        """Ends connections and child processes."""
        ...


class Rater(Protocol):
    """The evaluation service for one environment; one object serves all, many at once."""

    async def ready(self) -> None:
        """As `Answerer.ready`."""
        ...

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> Rating:
        """One attempt to get a rating; `instance` as `workbench.metrics.base.Service.rate` describes it.

        Raises:
            JudgeCallError: there is none.
        """
        ...

    async def close(self) -> None: ...
