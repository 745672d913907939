"""Questions to judges, their replies, the identity of a judge, and the environment that it runs in.

A judge is anything that answers a `Question` with text: a model behind an API, a Python function, rules. Its answer is
untrusted data; the code that asked must read and validate it.

A client makes one attempt, without cache, limits, retries or timeouts, which the judge pool adds. An attempt is
cancelled when its time is over or the user stops it. The client then releases all its resources.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, TypeAlias, cast

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field

from workbench.agents.environment import JudgeEnvironment as JudgeEnvironment
from workbench.events.events import Usage
from workbench.files.breaches import breaches_of
from workbench.files.genai_types import STRICT, GenerateContentConfig
from workbench.store.reasons import JudgedBy

QuestionKind: TypeAlias = Literal[
    "final_response_match", "rubrics", "sentences", "claims", "user_message", "simulated_user", "score"
]
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
"""ADK's judge if a criterion names none."""
DEFAULT_SAMPLES = 5


class NotAvailableError(Exception):
    """A judge or service that cannot be used, because a key, a credential or an extra is missing.

    `str(error)` is one sentence with the cause, and `hint` says how to enable the judge or service.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge.

    `prompt` is everything that a model reads. `schema` is the JSON schema of the answer, for models with structured
    output (None: free text). `data` is the source of the prompt, for judges that do not read prompts; docs/judges.md
    describes its shape for each `kind`.
    """

    kind: QuestionKind
    prompt: str
    schema: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """A criterion's `judge_model_options`, as read from the config.

    `config` is a GenerateContentConfig as JSON. `parallel` is the criterion's limit of calls at once, or None.
    """

    model: str = DEFAULT_MODEL
    config: Mapping[str, Any] = field(default_factory=dict)
    samples: int = DEFAULT_SAMPLES
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeFault:
    """Reason why there is no reply, or only a part of one.

    `code` is the service's own code ("429 RESOURCE_EXHAUSTED"). `message` contains no API keys.
    """

    kind: FaultKind
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to one sample of a question, after all retries.

    `text` is None if there was no reply. Then `fault` says why, or is None too if the service sent an empty reply. A
    reply that was cut off has both. `seconds` is the time of the attempt that answered (0 if cached). `model_version`
    is the version that the service reports.
    """

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
    """Identity of a judge, as users see it.

    `kind` is the name of a kind of judge, `note` a remark about it ("rules, not a language model"), `base_url` an
    address other than the service's own.
    """

    model: str
    kind: str
    note: str = ""
    base_url: str = ""
    by: JudgedBy = "model"

    def as_json(self) -> dict[str, str]:
        """Return the identity as JSON data; `by` is left out for models."""
        whole = {"model": self.model, "kind": self.kind, "note": self.note, "base_url": self.base_url}
        return whole if self.by == "model" else {**whole, "by": self.by}


class Judge(Protocol):
    """A judge with its options, for one criterion of one case."""

    @property
    def identity(self) -> JudgeIdentity:
        """Identity to show for this judge."""

    @property
    def options(self) -> JudgeOptions:
        """Options of the criterion."""

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        """Return the reply to a question. Only cancellation raises.

        `sample` (from 1) distinguishes the samples of one question: each may get another answer, and each is cached
        separately. Limits, retries, timeouts and the cache are handled here.
        """

    def forget(self, question: Question, sample: int = 1) -> None:
        """Remove the reply from the cache because it is useless; the next call asks again."""


def record(question: Question, identity: JudgeIdentity, replies: "list[dict[str, Any]]") -> dict[str, Any]:
    """Return a question as `details["questions"]` stores it. `replies` come from `reply_record`."""
    return {"kind": question.kind, "prompt": question.prompt, "judge": identity.as_json(), "replies": replies}


def reply_record(sample: int, reply: Reply, verdict: Any = None, unread: str = "") -> dict[str, Any]:
    """Return a reply as details store it. `verdict` was read from it; `unread` says why nothing could be read."""
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


def question_usage(question: Mapping[str, Any]) -> Usage:
    """Return the usage of the replies to a question (`record`)."""
    replies = [reply for reply in question.get("replies") or () if isinstance(reply, dict)]
    uncached = [reply for reply in replies if not reply.get("cached")]
    return Usage(
        judge_calls=len(uncached),
        judge_calls_cached=len(replies) - len(uncached),
        judge_input_tokens=sum(reply.get("input_tokens") or 0 for reply in uncached),
        judge_output_tokens=sum(reply.get("output_tokens") or 0 for reply in uncached),
    )


_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHTS_END = re.compile(r"^[ \t]*</think(?:ing)?>|</think(?:ing)?>[ \t]*$", re.MULTILINE | re.IGNORECASE)
"""Closing tag at the edge of a line, where no string of JSON can contain it."""


def without_thoughts(text: str) -> str:
    """Return the part of `text` after the model's thoughts, or "" if the thoughts were cut off.

    Some servers send only the closing tag. A text without tags of thoughts is returned unchanged.
    """
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_END.search(text)
    return text[thoughts.end() :] if thoughts else text


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
        """Do one-time work (an import, a child process) before the first attempt, whose time limit excludes it.

        Failures are reported by `answer`.
        """

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt to get an answer.

        Raises:
            JudgeCallError: There is no answer.
        """

    async def close(self) -> None:
        """Close connections and child processes."""


class JudgeModelOptions(BaseModel):
    """ADK's options for a judge. Unknown keys are refused. Keys may be in snake_case or camelCase."""

    model_config = ConfigDict(**STRICT, defer_build=True)

    judge_model: str = Field(
        DEFAULT_MODEL, description="The judge: gemini-…, provider/model (LiteLLM) or python:package.module:function."
    )
    judge_model_config: GenerateContentConfig | None = Field(
        None, description="google-genai's settings for a call, such as temperature and seed."
    )
    num_samples: Annotated[int, Ge(1)] = Field(
        DEFAULT_SAMPLES,
        description="Samples per question; the majority decides. Samples that cannot change it are skipped.",
    )
    parallelism_limit: Annotated[int, Ge(1)] = Field(
        cast(int, None),
        description="Maximum number of questions of this criterion at once.",
        json_schema_extra={"none": "no separate limit"},
    )

    def as_judge_options(self) -> JudgeOptions:
        """Return the options for a judge.

        A missing `parallelism_limit` means no limit: ADK's default of 1 applies only to its own queue.
        """
        config = dict(self.judge_model_config or {})
        return JudgeOptions(self.judge_model, config, self.num_samples, self.parallelism_limit)


def read_judge_options(options: Mapping[str, Any]) -> JudgeOptions:
    """Read the value of `judge_model_options`; {} gives the defaults.

    Raises:
        ValueError: ADK would refuse the value. The message names the key.
    """
    breaches = breaches_of(JudgeModelOptions, options)
    if breaches:
        raise ValueError("; ".join(breach.message for breach in breaches))
    return JudgeModelOptions.model_validate(options).as_judge_options()
