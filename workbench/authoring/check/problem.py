"""One thing that `check` found."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.model.faults import Fault

Rule: TypeAlias = Literal[
    "file",  # the file's JSON, or what ADK's schema says of it
    "owner",  # an evalset without an agent, with another one than before, or matched by location
    "name",  # a file that looks like an evalset under another name
    "config",  # the criteria's names, thresholds and options
    "never-passes",  # a threshold that no score reaches
    "cannot-apply",  # a criterion that has nothing to judge in any case
    "empty-reference",  # no expected answer, though a criterion compares with it
    "untyped-rubric",  # a rubric that ADK ignores
    "empty-rubric",  # a rubric without text
    "same-rubric",  # two rubrics of one id in a case and a turn
    "turns",  # a turn whose sides do not fit: nobody speaks, or the wrong one
    "test-file-sessions",  # a test file with more than one case
    "unknown-tool",  # expected, and not declared by the agent
    "unknown-argument",  # of a tool that the agent declares
    "argument-type",  # a value that the tool's annotation does not allow
    "set-id",  # an eval_set_id or app name with which ADK fails when it saves its results
    "same-set-id",  # two evalsets of an agent that an id does not tell apart
    "stop-signal",  # a criterion expects another one than the simulated user gives
    "simulator",  # a simulated user that cannot play
    "function",  # a custom metric or judge whose function is not there
    "judge",  # nobody can be asked: a key is missing, a model is unknown
    "key",  # the agent's own model has no key
    "model",  # the agent's own model has a name that ADK does not know, or that looks misspelt
    "source",  # a module of the agent that is not valid Python
    "import",  # the agent cannot be imported (only with --import)
    "extension",  # a package whose extension of the workbench is broken
    "environment",  # a line of `.env` that is not understood
]


@dataclass(frozen=True, slots=True)
class Problem:
    """`fault` has place, words and severity: `error` stops a run or makes it worthless, `warning` may be meant, `note`
    is only to be known."""

    rule: Rule
    fault: Fault
