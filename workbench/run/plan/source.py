"""The sources of a plan entry's transcript: an agent, a stored transcript, or an interrupted run."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.criteria.base import Scored
from workbench.criteria.secrets import Secrets, holds_secrets
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    FilesRead,
    MetricScored,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    Sources,
    Usage,
    UserSimulated,
)
from workbench.judges.base import question_usage
from workbench.run.forking import Fork
from workbench.run.scoring.verdict import judge_usage, with_judges
from workbench.store.inputs import RunInputs
from workbench.store.transcripts import StoredCase

RETRIED = frozenset({"cancelled", "crashed", "internal", "simulator", "judge", "quota"})
"""Kinds of errors that another attempt may avoid. All others are results, because the agent would fail again."""


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
    """The storage for answers of a run. `keep` stores them, as JSON text. It is called in a thread.

    `environments` maps agent names to their environments. Answers that contain a secret are not stored: without the
    secret, they would be other answers.
    """

    def __init__(self, keep: Callable[[Sequence[str]], None], environments: Mapping[str, Mapping[str, str]]) -> None:
        self._keep = keep
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: list[str] = []
        self._secrets = {name: Secrets([values]) for name, values in environments.items()}

    def append(self, answer: Answer) -> None:
        """Queue an answer that a worker sent, to be stored soon and in order. Drop it if it may contain a secret."""
        case = answer.case
        name = [case.agent, case.evalset_file, case.eval_set_id, case.eval_id, case.repeat]
        given = {"agent": answer.agent, "asked": answer.request, "responses": answer.responses}
        text = json.dumps({"case": name, **given})
        secrets = self._secrets.get(case.agent)
        if secrets is None or secrets.may_contain(text):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "answers")
        self._waiting.append(text)
        self._thread.submit(self._store)

    def _store(self) -> None:
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
    """Return the answer in a worker's message, or in a stored line. Raise TypeError if it has another shape."""
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
        raise TypeError(f"{repr(value)[:80]} is not a string")
    return value


@dataclass(frozen=True, slots=True)
class AgentSource:
    """A transcript that the agent makes by running the case.

    The case is in `evalset` at `index`, which is None for a file that cannot be read. `answers` are the models' answers
    from before the run was interrupted. With `fork`, the case is that of the forked conversation, and `index` is a
    number without meaning.
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


@dataclass
class InterruptedCase:
    """One execution of a case, as far as the run got.

    `events` are the events of its last attempt. `damaged` says whether an unreadable line may be about the case.
    """

    stored: StoredCase
    events: list[Event] = field(default_factory=list)
    damaged: bool = False
    answers: list[Answer] = field(default_factory=list)
    """Stored answers of models to its agent."""
    is_frozen: bool = False
    """Whether the run was frozen."""

    @property
    def has_result(self) -> bool:
        """Whether it has a verdict, or an error that would occur again."""
        ended = self.stored.finished
        if ended is None or self.damaged or (self.stored.started is None and len(self.events) > 1):
            return False
        if ended.error is None:
            return self.stored.started is not None
        return ended.error.kind not in RETRIED

    @property
    def has_transcript(self) -> bool:
        """Whether the transcript is complete and only scores are missing.

        A transcript with a replaced secret is not scored, because criteria would not see the agent's original words. A
        replayed case runs again, because only the end of its events says how it was replayed.
        """
        stored = self.stored
        if self.is_frozen or self.has_result or self.damaged or stored.started is None:
            return False
        is_complete = stored.why_incomplete() is None and bool(stored.turns)
        return is_complete and not holds_secrets([stored.started, *stored.turns])

    @property
    def scored(self) -> tuple[Scored, ...]:
        """The valid verdicts of a case with a transcript."""
        found = [event for event in self.events if isinstance(event, MetricScored)]
        by_name = {event.result.name: Scored(event.result, event.turns) for event in found}
        return tuple(one for one in by_name.values() if one.result.status != "error")

    @property
    def usage(self) -> Usage:
        """The usage of a conversation: that of its last turn, plus the simulated user's question after it."""
        ends = [step for step in self.stored.steps if isinstance(step, UserSimulated) and step.ended]
        return with_judges(self.stored.turns[-1].usage, question_usage(ends[-1].question) if ends else Usage())

    @property
    def spent(self) -> Usage:
        """The usage of a case with a transcript: that of the conversation and of the valid verdicts."""
        return with_judges(self.usage, judge_usage(self.scored))

    def source(self, fresh: AgentSource) -> Source:
        """Return the source for the rest of the case. `fresh` would run it from the start."""
        if self.has_result and self.stored.finished is not None:
            return DecidedSource(tuple(self.events), self.stored.finished)
        if self.has_transcript:
            return StoredSource(self.stored, self.scored, self.spent)
        return replace(fresh, answers=tuple(self.answers))

    def take(self, event: Event) -> None:
        """Add the next event of this case."""
        if isinstance(event, CaseStarted):
            self.events, self.damaged = [], False
        elif self.stored.finished is not None:
            # The start of this attempt was lost.
            self.damaged = True
        self.events.append(event)
        self.stored.take(event)


@dataclass
class InterruptedRun:
    """An interrupted run.

    `announced` is its first event. `sources` are the recorded files of its agents. `seconds` is its duration so far.
    `ended` says whether it ended without being killed, and `complete` whether it also finished all cases. `cut_short`
    says whether it started no more cases after one that did not pass (`-x`).
    """

    announced: RunStarted
    cases: dict[CaseRef, InterruptedCase]
    sources: Sources = field(default_factory=dict)
    seconds: float = 0.0
    inputs: RunInputs = field(default_factory=RunInputs)
    written: dict[str, list[str]] = field(default_factory=dict)
    """Agent → files that it wrote."""
    ended: bool = False
    complete: bool = False
    cut_short: bool = False
    _before: float = 0.0
    """Duration of the run up to its last resumption, in seconds."""

    @property
    def began(self) -> float | None:
        """The start of the run in seconds of the epoch, or None if it is not known."""
        try:
            return datetime.fromisoformat(self.announced.started).timestamp()
        except ValueError:
            return None

    @property
    def results(self) -> int:
        """Number of cases with a result."""
        return sum(case.has_result for case in self.cases.values())

    @property
    def transcripts(self) -> int:
        """Number of cases that only need scores."""
        return sum(case.has_transcript for case in self.cases.values())

    @property
    def answers(self) -> int:
        """Number of stored model answers for cases that start again."""
        return sum(len(case.answers) for case in self.cases.values() if not case.has_result and not case.has_transcript)

    @property
    def judge_calls(self) -> int:
        """Number of judge calls that count against the limit of the run."""
        found = 0
        for case in self.cases.values():
            if case.has_result and case.stored.finished is not None:
                found += case.stored.finished.usage.judge_calls
            elif case.has_transcript:
                found += case.spent.judge_calls
        return found

    def take(self, event: Event | None) -> None:
        """Add the next event of the run, or None for an unreadable line."""
        match event:
            case None:
                # The line may belong to any case that has not finished. A case that starts later is not affected.
                for case in self.cases.values():
                    case.damaged = case.damaged or case.stored.finished is None
            case RunResumed():
                self.ended = self.complete = False
                self._before = self.seconds
            case RunFinished():
                self.ended, self.complete = True, not (event.interrupted or event.cancelled)
                self.seconds = event.duration_seconds
                self._read(event.sources)
            case FilesRead():
                self._read(event.sources)
                self.inputs.extend(event.bundles)
                for key, numbers in event.planned.items():
                    self.inputs.planned[key] = [*self.inputs.planned.get(key, ()), *numbers]
                self.written |= event.written
            case RepeatsDropped():
                self.cut_short = self.cut_short or event.after is not None
                for dropped in event.cases:
                    self.cases.pop(dropped, None)
            case _:
                ref = getattr(event, "case", None)
                if ref in self.cases:
                    self._take_of_case(self.cases[ref], event)

    def _take_of_case(self, case: InterruptedCase, event: Event) -> None:
        case.take(event)
        if isinstance(event, CaseFinished):
            case.stored.inputs = self.inputs.bundles_of(event.inputs)
        began = 0.0 if case.stored.started is None else case.stored.started.at
        if isinstance(event, CaseFinished):
            began += event.duration_seconds
        if isinstance(event, CaseStarted | CaseFinished):
            self.seconds = max(self.seconds, self._before + began)

    def _read(self, sources: Sources) -> None:
        for agent, files in sources.items():
            self.sources[agent] = {**self.sources.get(agent, {}), **files}


def interrupted_run(events: Iterable[Event | None]) -> InterruptedRun | None:
    """Collect the events of an interrupted run. An event that is None represents an unreadable line.

    Return None if the first event is not `RunStarted`.
    """
    found: InterruptedRun | None = None
    for event in events:
        if isinstance(event, RunStarted):
            inputs = RunInputs(event.inputs)
            frozen = bool(inputs.options.get("frozen"))
            cases = {planned.case: InterruptedCase(StoredCase(planned), is_frozen=frozen) for planned in event.cases}
            found = InterruptedRun(event, cases, dict(event.sources), inputs=inputs)
        elif found is None:
            return None
        else:
            found.take(event)
    return found
