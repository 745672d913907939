"""What is asked of a judge, what comes back, and who it is.

A judge is whatever answers a `Question` with text: a model behind an API, a Python function, rules. Its answer is
data from outside; whoever asked reads and validates it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

QuestionKind: TypeAlias = Literal[
    "final_response_match",
    "rubrics",
    "sentences",
    "claims",
    "user_message",
    "simulated_user",
]
JudgedBy: TypeAlias = Literal["rules", "model", "function"]
FaultKind: TypeAlias = Literal[
    "quota",  # 429, after all retries
    "timeout",
    "blocked",  # the service refused to answer: safety, recitation
    "http",  # another status of the service
    "connection",  # refused, reset, truncated
    "unreadable",  # what came back is no reply of this service
    "cut",  # the reply reached the limit of its tokens
    "raised",  # a Python judge's own exception
    "limit",  # --max-judge-calls is reached: the call was not made
]

DEFAULT_MODEL = "gemini-2.5-flash"
"""ADK's judge where a criterion names none."""
DEFAULT_SAMPLES = 5


class NotAvailableError(Exception):
    """There is no judge (or service) to ask: a key, a credential, an extra is missing. `str(error)` is one sentence
    with the cause, `hint` the one line that would enable it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge. `prompt` is all that a model reads; `schema` the JSON schema of the answer, for models
    that offer structured output (None: free text); `data` what the prompt was made from, for judges that do not read
    prompts (its shape for each `kind` stands in docs/python-functions.md)."""

    kind: QuestionKind
    prompt: str
    schema: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """A criterion's `judge_model_options`, read: `config` is a GenerateContentConfig as JSON; `parallel` the cap of
    the criterion, None where the config sets none."""

    model: str = DEFAULT_MODEL
    config: Mapping[str, Any] = field(default_factory=dict)
    samples: int = DEFAULT_SAMPLES
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeFault:
    """Why there is no reply: `code` as the service gives it ("429 RESOURCE_EXHAUSTED"), `message` scrubbed of keys."""

    kind: FaultKind
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of asking once, all retries included. `text` is None where nothing came: `fault` says why, or is None
    too where the service sent an empty reply. A reply that was cut has both. `seconds` is the time of the attempt that
    answered (0 where cached), `model_version` what the service says it is."""

    text: str | None
    fault: JudgeFault | None = None
    model_version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    attempts: int = 1
    cached: bool = False


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """Who judges, as every surface shows it: `kind` is the name of a kind of judges, `note` what must be said of it
    besides ("rules, not a language model"), `base_url` an address that is not the service's own."""

    model: str
    kind: str
    note: str = ""
    base_url: str = ""
    by: JudgedBy = "model"

    def as_json(self) -> dict[str, str]:
        whole = {"model": self.model, "kind": self.kind, "note": self.note, "base_url": self.base_url}
        return whole if self.by == "model" else {**whole, "by": self.by}


class Judge(Protocol):
    """A judge, with its options, for one criterion of one case."""

    @property
    def identity(self) -> JudgeIdentity: ...

    @property
    def options(self) -> JudgeOptions: ...

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        """The reply to a question; never raises but when cancelled. `sample` (from 1) tells apart the samples of one
        question: each may get another answer, and each is kept for itself. Limits, retries, time-outs and the cache
        are dealt with here."""
        ...

    def forget(self, question: Question, sample: int = 1) -> None:
        """The reply is not kept, for nothing can be done with it: whoever asks next asks afresh."""
        ...


def record(question: Question, identity: JudgeIdentity, replies: "list[dict[str, Any]]") -> dict[str, Any]:
    """A question as `details["questions"]` keeps it; `replies` are made with `reply_record`."""
    return {"kind": question.kind, "prompt": question.prompt, "judge": identity.as_json(), "replies": replies}


def reply_record(sample: int, reply: Reply, verdict: Any = None, unread: str = "") -> dict[str, Any]:
    """A reply as details keep it: `verdict` what was read from it, `unread` why nothing could be."""
    fault = reply.fault
    return {
        "sample": sample,
        "text": reply.text,
        "verdict": verdict,
        "unread": unread,
        "fault": None if fault is None else {"kind": fault.kind, "code": fault.code, "message": fault.message},
        "model_version": reply.model_version,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "seconds": reply.seconds,
        "attempts": reply.attempts,
        "cached": reply.cached,
    }
