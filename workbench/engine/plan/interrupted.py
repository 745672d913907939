"""An interrupted run: its cases with a result, and transcripts that only lack their scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from workbench.dependencies.run_inputs import RunInputs
from workbench.engine.plan.answers import Answer
from workbench.engine.plan.replaced_secrets import holds_secrets
from workbench.engine.plan.source import AgentSource, DecidedSource, Source, StoredSource
from workbench.engine.plan.transcripts import StoredCase
from workbench.engine.plan.usage import judge_usage, question_usage, with_judges
from workbench.events import (
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
from workbench.metrics.base import Scored

_RETRIED = frozenset({"cancelled", "crashed", "internal", "simulator", "judge", "quota"})
"""Errors whose cause may have passed. Any other one is a result: the agent would do the same again."""


@dataclass
class InterruptedCase:
    """One execution of a case as far as the run came with it: `events` of its last attempt. `damaged`: a line that may
    have been about it cannot be read."""

    stored: StoredCase
    events: list[Event] = field(default_factory=list)
    damaged: bool = False
    answers: list[Answer] = field(default_factory=list)
    """What models had answered its agent."""

    @property
    def has_result(self) -> bool:
        """Whether it has a verdict, or an error that would come again."""
        ended = self.stored.finished
        if ended is None or self.damaged or (self.stored.started is None and len(self.events) > 1):
            return False
        if ended.error is None:
            return self.stored.started is not None
        return ended.error.kind not in _RETRIED

    @property
    def has_transcript(self) -> bool:
        """Whether it lacks nothing but scores. One with something hidden in it is not scored: a criterion would see
        other words than the agent said."""
        if self.has_result or self.damaged or self.stored.started is None or self.stored.why_incomplete() is not None:
            return False
        return bool(self.stored.turns) and not holds_secrets([self.stored.started, *self.stored.turns])

    @property
    def scored(self) -> tuple[Scored, ...]:
        """The verdicts that hold, of a case with a transcript."""
        found = [event for event in self.events if isinstance(event, MetricScored)]
        by_name = {event.result.name: Scored(event.result, event.turns) for event in found}
        return tuple(one for one in by_name.values() if one.result.status != "error")

    @property
    def usage(self) -> Usage:
        """What the conversation cost, of a case with a transcript: as its last turn told, and what a simulated user was
        asked after that."""
        ends = [step for step in self.stored.steps if isinstance(step, UserSimulated) and step.ended]
        return with_judges(self.stored.turns[-1].usage, question_usage(ends[-1].question) if ends else Usage())

    def source(self, fresh: AgentSource) -> Source:
        """Return where the rest of the case comes from, which `fresh` would run from its beginning."""
        if self.has_result and self.stored.finished is not None:
            return DecidedSource(tuple(self.events), self.stored.finished)
        if self.has_transcript:
            spent = with_judges(self.usage, judge_usage(self.scored))
            return StoredSource(self.stored, self.scored, spent)
        return replace(fresh, answers=tuple(self.answers))

    def take(self, event: Event) -> None:
        """The next event of this case."""
        if isinstance(event, CaseStarted):
            self.events, self.damaged = [], False
        elif self.stored.finished is not None:
            # Its beginning was lost.
            self.damaged = True
        self.events.append(event)
        self.stored.take(event)


@dataclass
class InterruptedRun:
    """An interrupted run: how it announced itself, what it has of each case, the files that its agents read, and how
    many seconds it took. `ended`: it came to an end, and not by being killed; `complete`: with everything done."""

    announced: RunStarted
    cases: dict[CaseRef, InterruptedCase]
    sources: Sources = field(default_factory=dict)
    seconds: float = 0.0
    inputs: RunInputs = field(default_factory=RunInputs)
    written: dict[str, list[str]] = field(default_factory=dict)
    """Agent → files that it wrote."""
    ended: bool = False
    complete: bool = False
    _before: float = 0.0
    """Seconds until it was resumed the last time."""

    @property
    def began(self) -> float | None:
        """When it began, in seconds of the epoch; None where that is not known."""
        try:
            return datetime.fromisoformat(self.announced.started).timestamp()
        except ValueError:
            return None

    @property
    def results(self) -> int:
        """How many cases need nothing any more."""
        return sum(case.has_result for case in self.cases.values())

    @property
    def transcripts(self) -> int:
        """How many are only to be scored."""
        return sum(case.has_transcript for case in self.cases.values())

    @property
    def answers(self) -> int:
        """How many answers of models there are for cases that begin anew."""
        return sum(len(case.answers) for case in self.cases.values() if not case.has_result and not case.has_transcript)

    def recall(self, answers: Mapping[CaseRef, list[Answer]]) -> None:
        """Takes what models had answered."""
        for ref, case in self.cases.items():
            case.answers = answers.get(ref, [])

    @property
    def judge_calls(self) -> int:
        """How many calls its judges have had, of those that a run may make."""
        ended = [case.stored.finished for case in self.cases.values() if case.has_result]
        return sum(event.usage.judge_calls for event in ended if event is not None)

    def take(self, event: Event | None) -> None:
        """The next event of the run; None for a line that cannot be read."""
        match event:
            case None:
                # The line may have been the beginning of a case: one that begins later is whole.
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
                self.written |= event.written
            case RepeatsDropped():
                for dropped in event.cases:
                    self.cases.pop(dropped, None)
            case _:
                ref = getattr(event, "case", None)
                if ref in self.cases:
                    self._take_of_case(self.cases[ref], event)

    def _take_of_case(self, case: InterruptedCase, event: Event) -> None:
        case.take(event)
        if isinstance(event, CaseFinished):
            case.stored.inputs = self.inputs.of(event.inputs)
        began = 0.0 if case.stored.started is None else case.stored.started.at
        if isinstance(event, CaseFinished):
            began += event.duration_seconds
        if isinstance(event, CaseStarted | CaseFinished):
            self.seconds = max(self.seconds, self._before + began)

    def _read(self, sources: Sources) -> None:
        for agent, files in sources.items():
            self.sources[agent] = {**self.sources.get(agent, {}), **files}


def interrupted_run(events: Iterable[Event | None]) -> InterruptedRun | None:
    """What the events of a run hold, None among them standing for a line that cannot be read. None where they do not
    begin with its announcement."""
    found: InterruptedRun | None = None
    for event in events:
        if isinstance(event, RunStarted):
            cases = {planned.case: InterruptedCase(StoredCase(planned)) for planned in event.cases}
            found = InterruptedRun(event, cases, dict(event.sources), inputs=RunInputs(event.inputs))
        elif found is None:
            return None
        else:
            found.take(event)
    return found
