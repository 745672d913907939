"""The transcript of a case, its scoring, and the context that all cases of a run share.

Stored transcripts are in `workbench.store.transcripts`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from workbench.criteria.base import WHOLE, Scored
from workbench.criteria.registry import needs_bench, with_informational
from workbench.criteria.secrets import Secrets, not_scored_again
from workbench.events.events import (
    CallsRecorded,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FaultHandling,
    Frozen,
    InnerCalls,
    MetricResult,
    MetricScored,
    Noticed,
    SpansRecorded,
    Thawed,
    ToolFault,
    Usage,
)
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase
from workbench.files.run_options import RunOptions
from workbench.judges.scenario import full_scenario
from workbench.run.fault_outcome import decide, fault_question, judged_handling, observe, with_facts
from workbench.run.plan.preflight_cases import scenario_criteria
from workbench.run.plan.source import AnswerStorage, StoredSource
from workbench.run.processes.agent_process import Reads
from workbench.run.processes.children import Children
from workbench.run.scoring.client import Conversation
from workbench.run.scoring.verdict import case_status, judge_usage, metric_error


class CallCounts(NamedTuple):
    """The counts of calls of a replayed case so far. All fields are as in `Frozen`."""

    tools: int = 0
    models: int = 0
    live: int = 0
    misses: int = 0
    reordered: tuple[str, ...] = ()


@dataclass
class Transcript:
    """The invocations of an agent in a case, one for each turn.

    The transcript is complete if `error` is None. Otherwise, `error` says why not, and `status` is the case's status.
    `shared_process_died` means that a process of several cases died. It is then not known which case is to blame.
    `parent_stopped` means that a signal stopped the parent process, which was replaced.
    """

    turns: list[dict[str, Any]] = field(default_factory=list)
    error: CaseError | None = None
    status: CaseStatus = "error"
    usage: Usage = field(default_factory=Usage)
    shared_process_died: bool = False
    parent_stopped: bool = False
    machine: str = ""
    """The other machine on which the case ran, or "" for this machine."""
    reads: Reads | None = None
    """Files that the case and the import of its agent read; None if the case ended without reporting them."""
    unseen: tuple[str, ...] = ()
    """Inputs of the case that cannot be compared (`CaseFinished.unseen`)."""
    calls: CallCounts = field(default_factory=CallCounts)
    declared: dict[tuple[str, str], tuple[str | None, str]] = field(default_factory=dict)
    """Agent and tool → digests of its declaration and source, for each tool that a replayed case had."""
    differs: str = ""
    """The difference of a request from the recorded one, as in the worker's message `Failed`, or ""."""
    frozen: Frozen | None = None
    """The counts of the replay, or None if all calls were live."""
    thawed: Thawed | None = None
    """The differences of a live case from its recording, or None if they were not compared."""
    state: dict[str, Any] | None = None
    """The session state after the last turn, or None if it is not needed or not known."""
    inner_calls: list[InnerCalls] = field(default_factory=list)
    """The calls inside agents that are used as tools, for each turn."""
    recording: tuple[Path, ...] = ()
    """The frozen file of a replayed case, even if it does not exist, and the files that it names."""


def stored_events(source: StoredSource, config: CriteriaConfig, at: float) -> Iterator[Event]:
    """Yield the stored events of the case with the current criteria. `at` is its start in the run, in seconds."""
    started, ref = source.case.started, source.case.ref
    if started is not None:
        criteria = {criterion.name: criterion.value for criterion in config.criteria}
        yield replace(started, case=ref, at=at, criteria=criteria, custom_metrics=config.custom_metrics)
        yield from source.case.steps


def case_of(started: CaseStarted | None) -> EvalCase:
    """Return the eval case of an execution that started, as it was then. Its file may have changed since."""
    assert started is not None  # Callers have its transcript.
    session, state, given = started.session or None, started.final_session_state, started.dataset_case
    ref = started.case
    return EvalCase(ref.eval_id, started.expected, started.scenario, session, started.rubrics, state, None, given)


def settled_verdicts(source: StoredSource, config: CriteriaConfig) -> tuple[Scored, ...]:
    """Return the verdicts that need no scoring: those still valid, and `not_evaluated` ones due to replaced secrets."""
    valid = {one.result.name for one in source.verdicts}
    impossible = not_scored_again(source.case, config)
    return (*source.verdicts, *(one for one in impossible if one.result.name not in valid))


def unsuited_error(source: StoredSource, scored: Sequence[Scored]) -> CaseError | None:
    """Return the error of a simulated conversation that no criterion can judge, or None for other conversations."""
    started = source.case.started
    judges_nothing = ("not_applicable", "informational")
    if started is None or started.scenario is None or any(one.result.status not in judges_nothing for one in scored):
        return None
    if any(one.result.name in started.custom_metrics for one in scored):
        return None
    return CaseError(
        "config",
        "no criterion of the config can judge a conversation with a simulated user",
        f"Add one of these criteria: {', '.join(scenario_criteria())}",
    )


@dataclass(frozen=True)
class RunContext:
    """The shared context of the cases of one run.

    `emit` publishes an event, and `at` returns the seconds since the run began. `secrets` are removed from everything
    that is shown. `environment_of` returns the environment of an agent's judges (`AgentSetting.judge_environment`).
    `with_inputs` adds the inputs of the verdict to a `CaseFinished`. It also gets the transcript, and whether the user
    was simulated. `note_inputs` is called in a thread with files that a case is about to read. `note_reads` stores soon
    what agents have read, before a case is scored. `answers` stores answers of models, or is None. `records` says
    whether the calls of agents are recorded.
    """

    options: RunOptions
    children: Children
    emit: Callable[[Event], None]
    at: Callable[[], float]
    secrets: Secrets
    environment_of: Callable[[str], Mapping[str, Any]]
    with_inputs: Callable[[CaseFinished, Transcript, bool], Awaitable[CaseFinished]]
    note_inputs: Callable[[Iterable[Path]], None] = lambda files: None
    note_reads: Callable[[], None] = lambda: None
    root: Path = Path()
    records: bool = False
    answers: AnswerStorage | None = None
    noticed: set[str] = field(default_factory=set)
    """Texts that `notice_once` has emitted in this run."""

    def notice_once(self, text: str) -> None:
        """Emit a notice, unless the run has emitted it before."""
        if text not in self.noticed:
            self.noticed.add(text)
            self.emit(Noticed("info", text))


@dataclass
class Verdicts:
    """The outcome of a case. `error` says why it has no verdict, or which error occurred besides a failed criterion.

    `scored` are its verdicts: those that were kept, then the others in the order of the criteria. `usage` is the usage
    of its judges.
    """

    status: CaseStatus
    error: CaseError | None
    scored: list[Scored] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class CaseScoring:
    """The scoring of the case `ref` by the criteria of `config`.

    Each verdict becomes an event as soon as it exists. `kept` are verdicts that stay valid. Their criteria are not
    scored again.
    """

    def __init__(self, ref: CaseRef, config: CriteriaConfig, context: RunContext, kept: Sequence[Scored] = ()) -> None:
        names = {one.result.name for one in kept}
        self._ref = ref
        self._kept = tuple(kept)
        self._config = replace(config, criteria=tuple(item for item in config.criteria if item.name not in names))
        self._context = context
        self._conversation: Conversation | None = None
        self._cancelled: CaseError | None = None

    def cancel(self, reason: CaseError) -> None:
        """Stop asking judges. If a criterion then has no verdict, `reason` becomes the case's error."""
        self._cancelled = self._cancelled or reason
        if self._conversation is not None:
            self._context.children.scorer.skip_judges(self._conversation)

    async def run(self, case: EvalCase, transcript: Transcript) -> Verdicts:
        """Score a complete transcript of the case."""
        config = self._config
        asks = any(self._asks(item.name) for item in config.criteria)
        conversation = Conversation(
            with_informational(config.criteria),
            case.turns,
            transcript.turns,
            None if case.scenario is None else full_scenario(case.scenario),
            case.rubrics,
            config.custom_metrics,
            self._context.environment_of(self._ref.agent) if asks else None,
            self._ref.repeat,
            self._context.options.all_votes,
            (case.final_session_state, transcript.state),
            case.dataset_case,
            transcript.inner_calls,
            transcript.usage,
        )
        for one in self._kept:
            self._context.emit(MetricScored(self._ref, one.result, one.turns))
        fresh = await self._score(conversation)
        scored = [*self._kept, *fresh]
        error = metric_error(scored)
        named = {one.result.name for one in scored}
        if self._cancelled is not None and any(item.name not in named for item in config.criteria):
            return Verdicts("cancelled", self._cancelled, scored, judge_usage(fresh))
        results = [one.result for one in scored]
        status = case_status(results, allow_not_evaluated=self._context.options.allow_not_evaluated)
        return Verdicts(status, error, scored, judge_usage(fresh))

    async def _score(self, conversation: Conversation) -> list[Scored]:
        """Return the verdicts, and emit each as soon as it exists. Keep the conversation for `cancel`.

        Computed explanations may quote parts of secrets that cannot be recognised later. If the conversation contains
        secrets, explanations are therefore computed from the cleaned text.
        """
        scorer = self._context.children.scorer
        shown = self._without_secrets(conversation)
        explained: dict[str, Scored] = {}
        if shown is not None:
            explained = {one.result.name: one for one in await scorer.score(shown, lambda one: None)}

        def show(one: Scored) -> None:
            other = explained.get(one.result.name)
            one = one if other is None else _explained_by(one, other)
            self._context.emit(MetricScored(self._ref, one.result, one.turns))
            if one.result.details.get(WHOLE):
                text = f"`{one.result.name}` gives no results per turn: `adk eval` stops at such a metric"
                self._context.notice_once(text)

        if self._cancelled is not None:
            conversation = self._only_computed(conversation)
        self._conversation = conversation
        return await scorer.score(conversation, show)

    def _only_computed(self, conversation: Conversation) -> Conversation:
        criteria = [item for item in conversation.criteria if not self._asks(item.name)]
        return replace(conversation, criteria=criteria, environment=None)

    def _without_secrets(self, conversation: Conversation) -> Conversation | None:
        """Return the conversation without secrets and with computed criteria only, or None if it has no secrets."""
        secrets = self._context.secrets
        data = [
            conversation.expected and list(conversation.expected),
            list(conversation.actual),
            conversation.states,
            list(conversation.inner_calls),
        ]
        if not secrets.may_contain(json.dumps(data)):
            return None
        expected, actual, states, inner_calls = secrets.clean_data(data)
        computed = self._only_computed(conversation)
        return replace(computed, expected=expected, actual=actual, states=tuple(states), inner_calls=inner_calls)

    def _asks(self, name: str) -> bool:
        return needs_bench(name, custom=name in self._config.custom_metrics)


def _explained_by(scored: Scored, other: Scored) -> Scored:
    """Return the verdict of `scored` with the reasons and details of `other`, except those of an error."""

    def explained(one: MetricResult, shown: MetricResult) -> MetricResult:
        if one.status == "error" and shown.status != "error":
            return one
        # An accepted answer may hold `[secret NAME]`, which differs from the secret but looks the same.
        hidden = "" if one.status == shown.status else "a secret, which is replaced here, decides"
        reason = "; ".join(filter(None, (shown.reason, hidden)))
        return replace(one, reason=reason, details=shown.details)

    turns = tuple(map(explained, scored.turns, other.turns))
    return Scored(explained(scored.result, other.result), turns)


Ask: TypeAlias = Callable[[CriteriaConfig, Sequence[dict[str, Any]]], Awaitable[Verdicts]]
"""A function that scores turns by the criteria of a config. Nothing is published."""


async def fault_handling(
    fault: ToolFault,
    judging: CriteriaConfig,
    recorded: Sequence[CallsRecorded | SpansRecorded],
    transcript: Transcript,
    case: EvalCase,
    ask: Ask,
) -> FaultHandling:
    """Return how the agent handled the injected fault.

    `judging` has all criteria of the case. `recorded` are the agent's calls, with their spans.
    """
    seen = await asyncio.to_thread(observe, recorded, transcript.turns, case.turns or (), fault, case.session_input)
    found = decide(seen, transcript.error)
    if found is not None:
        return found
    question = fault_question(fault, judging, called_again=seen.called_again)
    assert seen.turn is not None
    asked = await ask(question, [transcript.turns[seen.turn]])
    name = question.criteria[0].name
    scored = next((one for one in asked.scored if one.result.name == name), None)
    if scored is None:
        found = FaultHandling("not_evaluated", "" if asked.error is None else asked.error.message)
    else:
        found = judged_handling(scored)
    return with_facts(found, seen)
