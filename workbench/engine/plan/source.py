"""Where the transcript of a plan entry comes from."""

from dataclasses import dataclass, field
from typing import TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.engine.plan.answers import Answer
from workbench.engine.plan.transcripts import StoredCase
from workbench.events import CaseFinished, Event, Usage
from workbench.metrics.base import Scored


@dataclass(frozen=True, slots=True)
class AgentSource:
    """The agent: the case is run. It stands in `evalset` at `index`; None for a file that cannot be read.

    `answers` are what its models had answered before the run was interrupted.
    """

    evalset: EvalsetEntry
    index: int | None
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A stored run: the case only lacks scores.

    `kept` are verdicts that hold, so that nobody is asked for them. `spent` is what this run has paid for the case
    already.
    """

    case: StoredCase
    kept: tuple[Scored, ...] = ()
    spent: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class DecidedSource:
    """The interrupted run that is being resumed: the case has its result. `events` end with `finished`."""

    events: tuple[Event, ...]
    finished: CaseFinished


Source: TypeAlias = AgentSource | StoredSource | DecidedSource
