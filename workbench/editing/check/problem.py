"""The problems that `check` finds, and the names of its rules."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.files.faults import Fault

Rule: TypeAlias = Literal[
    "file",  # invalid JSON, or a violation of ADK's schema
    "owner",  # an evalset without an agent, with a changed agent, or matched by location
    "name",  # a file that looks like an evalset but has another name
    "config",  # the criteria's names, thresholds and options
    "never-passes",  # a threshold that no score reaches
    "cannot-apply",  # a criterion that does not apply to any case
    "empty-reference",  # no expected answer, although a criterion compares with it
    "untyped-rubric",  # a rubric that ADK ignores
    "empty-rubric",  # a rubric without text
    "same-rubric",  # two rubrics with the same ID in a case and a turn
    "unused",  # an expectation that no criterion compares
    "history",  # events in a session_input, which ADK rejects or ignores
    "turns",  # a malformed turn: an empty message, a wrong role or unmatched IDs
    "test-file-sessions",  # a test file with more than one case
    "unknown-tool",  # an expected tool that the agent does not declare
    "unknown-argument",  # an expected argument that the tool lacks, or a missing required one
    "argument-type",  # a value that the tool's annotation does not allow
    "set-id",  # an eval_set_id or app name that makes ADK fail when it saves results
    "recording",  # a damaged or foreign recording, or an ignore list for an unknown tool
    "same-set-id",  # two evalsets of an agent with the same ID
    "stop-signal",  # a criterion waits for another stop signal than the simulated user sends
    "simulator",  # a simulated user that cannot run
    "function",  # a custom metric or judge whose function does not exist
    "judge",  # no judge is available: a key is missing or a model is unknown
    "key",  # the agent's own model has no key
    "model",  # a model name of the agent that ADK does not know, or that looks misspelled
    "retires",  # the model of an agent, judge or simulated user has an announced end
    "source",  # a module of the agent that is not valid Python
    "import",  # the agent cannot be imported (only with --import)
    "extension",  # a package whose extension of the workbench is broken
    "place",  # a place with other machines that cannot be used as it is (only with --on)
    "missing",  # a file that agents used, and that other machines will not have (only with --on)
    "environment",  # a line of `.env` that is not understood
]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem found by `check`.

    `fault` has the place, the message and the severity. An `error` stops a run or makes it useless, a `warning` may be
    intended, a `note` is for information.
    """

    rule: Rule
    fault: Fault
