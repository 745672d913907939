"""The sources of a plan entry's transcript."""

from dataclasses import dataclass, field
from typing import TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.engine.plan.answers import Answer
from workbench.engine.plan.transcripts import StoredCase
from workbench.events import CaseFinished, Event, Usage
from workbench.forking.fork import Fork
from workbench.metrics.base import Scored


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
