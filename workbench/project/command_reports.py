"""The reports of `check`, `freeze`, `history`, `migrate` and `status` with `--json`: what each command lists.

Their schemas in `docs/` are generated from the models here.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from workbench.editing.freezing import Change
from workbench.events.events import CaseStatus
from workbench.exporting.report_shape import Count, Part, Words
from workbench.files.walk import relative_to
from workbench.project.last_verdicts import LastVerdict
from workbench.store.history.summary import ListedRun
from workbench.store.inputs import Effect, Input
from workbench.store.reasons import JudgedBy


class CheckSummary(Part):
    """The numbers of checked files and cases, and of problems found."""

    files: Count
    cases: Count
    errors: Count
    warnings: Count
    notes: Count


class CheckProblem(Part):
    """A problem in a file."""

    severity: Literal["error", "warning", "note"]
    rule: Words
    file: Words
    """Path relative to `root`; the name of the package for a problem of an extension."""
    line: int | None
    """Counts from 1; null for a file as a whole."""
    column: int | None
    """Counts from 1; null if it is not known."""
    json_path: Words
    message: Words
    hint: Words


class CheckWorker(Part):
    """A worker of a place."""

    name: Words
    usable: bool
    about: Words
    """Its Python version and operating system; empty if they are not known."""
    why: Words
    """Why it is not usable, or empty."""
    imported: dict[Words, Words | None]
    """For each agent why it cannot be imported: empty if it can, null if that was not tried."""


class CheckPlace(Part):
    """The findings about the place of `--on`."""

    place: Words
    """The place as in `--on`; empty if it cannot be used."""
    address: Words
    """The address of its scheduler; empty if the place cannot be used."""
    encrypted: bool
    files: dict[Words, Count]
    """The files that would be sent, with their sizes in bytes."""
    left_out: dict[Words, Words]
    """The files that would not be sent, with the reasons."""
    variables: list[Words]
    """Names of variables that would be sent."""
    needs: dict[Words, Words]
    """Versions of packages that workers need."""
    workers: list[CheckWorker]


class Check(Part):
    """The problems of a project."""

    schema_name: Annotated[Literal["agent-workbench/check/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    summary: CheckSummary
    problems: list[CheckProblem]
    place: CheckPlace | None
    """Null without `--on`, and for this machine."""


class FreezeCase(Part):
    """The result of freezing a case."""

    agent: Words
    evalset_file: Words
    eval_set_id: Words
    eval_id: Words
    repeat: int
    change: Change
    file: Words | None
    """Its frozen file, relative to the current folder; null if it is not frozen."""
    tool_calls: Count
    model_calls: Count
    why: Words
    """Why it is not frozen, or empty."""
    remarks: list[Words]


class Freeze(Part):
    """The result of freezing the cases of a run."""

    schema_name: Annotated[Literal["agent-workbench/freeze/1"], Field(alias="schema")]
    dry_run: bool
    """Whether nothing was written."""
    cases: list[FreezeCase]
    pruned: list[Words]
    """Removed recordings of deleted cases, relative to the current folder."""


class MigrateFile(Part):
    """The migration of a file, or of saved conversations that become one evalset."""

    file: Words
    """The new file. The same as the old one if that is replaced."""
    converted: bool
    why_not: Words
    """Why it is left unchanged, or empty."""
    cases: Count
    turns: Count
    tool_calls: Count
    """Recorded tool calls, for saved conversations."""
    model_calls: Count
    remarks: list[Words]
    """Parts that have no place in the current schema, or were left out."""


class Migrate(Part):
    """The migration of old files."""

    schema_name: Annotated[Literal["agent-workbench/migrate/1"], Field(alias="schema")]
    dry_run: bool
    """Whether nothing was written."""
    files: list[MigrateFile]


class RunCounts(Part):
    """The number of executions by status."""

    passed: int
    failed: int
    error: int
    not_evaluated: int
    cancelled: int
    """Includes the executions that did not end (`no_verdict`). If the run ended uninterrupted, they are errors."""


class HistoryRun(Part):
    """A stored run, or a result file of another program."""

    run_id: Words
    started: Words
    """UTC, ISO 8601; empty if it is not known."""
    seconds: float | None
    """Duration; null if the end of the run is not stored, or another program made it."""
    interrupted: bool
    scored_from: Words
    """The run whose transcripts it scored again, or several, separated by `, `; empty if agents ran."""
    counts: RunCounts
    no_verdict: int
    """The number of executions that did not end."""
    calls: int
    """Calls of the agents' models."""
    tokens: int
    commit: Words | None
    """The git commit; null if it is not known."""
    dirty: bool | None
    """Whether files differed from the commit; null if that is not known."""
    agents: list[Words]
    files: list[Words]
    """The evalsets, relative to `root`."""
    by_function: bool
    """Whether a function judged anything."""
    other_criteria: bool
    """Whether criteria were changed for this run only."""
    injected: bool
    """Whether faults were injected into calls."""
    fork: Words
    """The run that it forks; empty if it forks none."""
    frozen: int
    """The number of executions that were replayed."""
    kept_in: Words
    """The nested state folder that has the run, relative to `root`; empty for the project's own."""
    baseline: bool
    adk: bool
    """Whether another program made it."""
    made_by: Words | None
    """`adk` or `agents-cli`; null for our runs."""
    file: Words | None
    """The result file of another program, relative to `root`; null for our runs."""


class History(Part):
    """The stored runs of a project."""

    schema_name: Annotated[Literal["agent-workbench/history/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    runs: list[HistoryRun]
    """The runs, newest first."""


class ChangedInput(Part):
    """An input that changed since the verdict was made."""

    input: Input
    """The kind of input."""
    name: Words
    """The name of the variable, file or option; empty if the run did not record inputs of this kind."""
    file: Words | None
    """The file with the input, relative to `root`; null if the input is not in a file."""
    effect: Effect
    """The work that the change requires: `run` the agent, `score` the transcript again, or `decide` again on stored
    scores."""


class StatusCase(Part):
    """One case with its last verdict. A file in which no case can be read has one entry with an empty `eval_id`."""

    agent: Words
    """The agent's name; empty if the evalset belongs to none."""
    evalset_file: Words
    """Path relative to `root`, separated by `/`."""
    eval_set_id: Words
    eval_id: Words
    status: CaseStatus | None
    """The last verdict, the worst of the repeats; null without one."""
    run_id: Words | None
    """The run that made the verdict; null without one."""
    stale: bool
    """Whether the verdict was made with other inputs; false without a verdict."""
    frozen: bool
    """Whether recorded answers were replayed."""
    judged_by: JudgedBy | None
    """`function` or `rules`: no language model judged; null if no judge was asked."""
    place: Words | None
    """The machine that the agent ran on; null for this one."""
    unseen: list[Words]
    """Inputs of the agent that `stale` cannot see: child programs, forked processes, sockets, databases, outside
    files, files it changes. Empty without a verdict."""
    changed: list[ChangedInput]
    """The changed inputs that make the verdict stale; empty if it is not stale."""


class Status(Part):
    """The last verdicts of a project."""

    schema_name: Annotated[Literal["agent-workbench/status/1"], Field(alias="schema")]
    root: Words
    """Absolute path of the folder that the paths are relative to."""
    cases: list[StatusCase]
    """The cases, in the order of the files."""


REPORTS: Final[dict[str, type[Part]]] = {
    "check": Check,
    "freeze": Freeze,
    "history": History,
    "migrate": Migrate,
    "status": Status,
}
"""The models by command."""


def report_text(command: str, **values: Any) -> str:
    """Return the report of a command as one line of JSON in ASCII. `values` are the fields of its model."""
    report = REPORTS[command].model_validate({"schema": f"agent-workbench/{command}/1", **values})
    return json.dumps(report.model_dump(by_alias=True))


def history_text(root: str, runs: Iterable[tuple[ListedRun, str, bool]]) -> str:
    """Return the report of `history`.

    Each run comes with its nested state folder (`kept_in`), and whether it is the baseline.
    """
    listed = [
        HistoryRun.of(
            run,
            commit=run.commit or None,
            kept_in=kept_in,
            baseline=is_baseline,
            adk=run.is_foreign,
            made_by=run.made_by or None,
            file=relative_to(run.file, Path(root)) if run.is_foreign else None,
        )
        for run, kept_in, is_baseline in runs
    ]
    return report_text("history", root=root, runs=listed)


def status_text(root: str, verdicts: Iterable[LastVerdict]) -> str:
    """Return the report of `status`."""
    cases = [
        StatusCase.of(
            verdict,
            run_id=verdict.run_id or None,
            stale=bool(verdict.changed),
            frozen=any(verdict.frozen),
            place=verdict.machine or None,
            changed=list(map(ChangedInput.of, verdict.changed)),
        )
        for verdict in verdicts
    ]
    return report_text("status", root=root, cases=cases)
