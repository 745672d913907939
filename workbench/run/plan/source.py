"""The sources of a plan entry's transcript, and the answers of models that are stored for a resumed run."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.criteria.base import Scored
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseFinished, CaseRef, Event, Usage
from workbench.run.forking import Fork
from workbench.store.transcripts import StoredCase


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer in a case.

    `request` is a digest of the whole request. `responses` are ADK's LlmResponses as JSON text. None means that the
    previous answer to the same request was incomplete.
    """

    case: CaseRef
    agent: str
    request: str
    responses: tuple[str, ...] | None

    def frame(self) -> dict[str, Any]:
        """Return the frame for the worker (`docs/worker-protocol.md`)."""
        return {"op": "answered", "agent": self.agent, "asked": self.request, "responses": self.responses}


class AnswerStorage:
    """The storage for answers of a run. `keep` stores them, as JSON text, in any thread.

    `environments` maps agent names to their environments. Answers that contain a secret are not stored: without it,
    they would be other answers.
    """

    def __init__(self, keep: Callable[[Sequence[str]], None], environments: Mapping[str, Mapping[str, str]]) -> None:
        self._keep = keep
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: list[str] = []
        self._secrets = {name: Secrets([values]) for name, values in environments.items()}

    def append(self, answer: Answer) -> None:
        """Store an answer that a worker sent, soon and in order."""
        case = answer.case
        name = [case.agent, case.evalset_file, case.eval_set_id, case.eval_id, case.repeat]
        given = {"agent": answer.agent, "asked": answer.request, "responses": answer.responses}
        text = json.dumps({"case": name, **given})
        secrets = self._secrets.get(case.agent)
        if secrets is None or any(sign in text for sign in secrets.markers):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "answers")
        self._waiting.append(text)
        self._thread.submit(self._store)

    def _store(self) -> None:
        """Store all answers that wait, in one change."""
        count = len(self._waiting)
        texts, self._waiting[:count] = self._waiting[:count], []
        if texts:
            self._keep(texts)

    def close(self) -> None:
        """Wait until all answers are stored. Call it in a thread."""
        if self._thread is not None:
            self._thread.shutdown()


def read(lines: Iterable[Mapping[str, Any]]) -> dict[CaseRef, list[Answer]]:
    """Return the reusable answers of each case, in their order. Other lines are ignored."""
    found: dict[CaseRef, list[Answer]] = {}
    for line in lines:
        try:
            agent, file, eval_set_id, eval_id, repeat = line["case"]
            case = CaseRef(_text(agent), _text(file), _text(eval_set_id), _text(eval_id), int(repeat))
            answer = read_answer(case, line)
        except (KeyError, TypeError, ValueError):
            continue
        before = found.setdefault(case, [])
        if answer.responses is not None:
            before.append(answer)
            continue
        # The one before turned out to be incomplete.
        key = answer.agent, answer.request
        same = [index for index, one in enumerate(before) if (one.agent, one.request) == key]
        if same:
            del before[same[-1]]
    return found


def read_answer(case: CaseRef, data: Any) -> Answer:
    """Return the answer in a worker's message, or in a stored line.

    Raises:
        TypeError: it has another shape.
    """
    if not isinstance(data, dict):
        raise TypeError("an answer is not an object")
    responses = data.get("responses")
    if responses is not None:
        if not isinstance(responses, list):
            raise TypeError("responses is not a list")
        responses = tuple(map(_text, responses))
    return Answer(case, _text(data.get("agent")), _text(data.get("asked")), responses)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]!r} is not a string")
    return value


@dataclass(frozen=True, slots=True)
class AgentSource:
    """A transcript that the agent makes by running the case.

    The case is in `evalset` at `index`, which is None for a file that cannot be read. `answers` are the models' answers
    from before the run was interrupted. With `fork`, the case is that of the forked conversation, and `index` only says
    that there is one.
    """

    evalset: EvalsetEntry
    index: int | None
    answers: tuple[Answer, ...] = ()
    fork: Fork | None = None


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A stored transcript that only needs scores.

    `verdicts` are still valid, so their criteria are not scored again. `spent` is the usage of this run for the case so
    far.
    """

    case: StoredCase
    verdicts: tuple[Scored, ...] = ()
    spent: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class DecidedSource:
    """A result of the interrupted run that is being resumed. `events` end with `finished`."""

    events: tuple[Event, ...]
    finished: CaseFinished


Source: TypeAlias = AgentSource | StoredSource | DecidedSource
