"""The command `freeze`: store the answers that tools (with `--models`, also models) gave in a run, to replay them."""

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, write_line
from workbench.files.walk import relative_to
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.editing.freezing import Freezing, FrozenCase

_DESCRIPTION = """Store the answers that tools (with `--models`, also models) gave in a run, to replay them with
`run --frozen`. What is replayed needs no servers or keys. Each finished case gets a file beside its evalset:
refunds.evalset.frozen/late_parcel.frozen.json. Review and commit it.

\b
RUN  the ID of a run or the start of one, `last`, or a JSON report

After a run with `--frozen --on-miss live`, only the calls that were made live are added.
"""


@common.command("freeze", _DESCRIPTION, "Store the answers that tools gave in a run, to replay them.")
@click.argument("words", metavar="RUN", nargs=-1)
@common.cases("Freeze")
@click.option("--models", is_flag=True, help="Store the answers of models, too, for `run --frozen=all`.")
@click.option(
    "--prune", is_flag=True, help="Drop recorded calls that a frozen run did not use, and recordings of deleted cases."
)
@click.option("--dry-run", is_flag=True, help="Write nothing. Print what would be done.")
@common.AS_JSON
@common.STATE_DIR
def freeze_command(
    words: tuple[str, ...],
    cases: tuple[str, ...],
    models: bool,
    prune: bool,
    dry_run: bool,
    as_json: bool,
    state_dir: Path | None,
) -> int:
    """Freeze the cases and return the exit code."""
    if len(words) != 1:
        what = f"give one run; {words[1]!r} is a second one" if words else "no run given"
        hint = "" if words else "`agent-workbench freeze last` freezes the newest run"
        raise Refused(what, hint=hint, try_help="agent-workbench freeze")
    from workbench.project.freezing import freeze_run

    common.known_runs(words, state_dir)
    try:
        done = freeze_run(
            words[0],
            folder=Path.cwd(),
            cases=cases,
            models=models,
            prune=prune,
            dry_run=dry_run,
            explicit_state=state_dir,
        )
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        raise Refused(f"nothing was frozen: {where}") from None
    if as_json:
        from workbench.project.command_reports import report_text

        cases_told = list(map(_case_report, done.cases))
        pruned = list(map(_shown, done.pruned))
        write_line(sys.stdout, report_text("freeze", dry_run=dry_run, cases=cases_told, pruned=pruned))
    else:
        _say(done, dry_run=dry_run)
    return 2 if has_failed() else 0


def _case_report(case: "FrozenCase") -> dict[str, object]:
    recording = case.recording
    return {
        **asdict(case.ref),
        "change": case.change,
        "file": None if recording is None else _shown(case.file),
        "tool_calls": 0 if recording is None else len(recording.calls),
        "model_calls": 0 if recording is None else len(recording.models),
        "why": case.why,
        "remarks": list(case.remarks),
    }


def _say(done: "Freezing", *, dry_run: bool) -> None:
    remarks: dict[str, list[str]] = {}
    for case in done.cases:
        write_line(sys.stdout, one_line(_line(case), limit=1000))
        for remark in case.remarks:
            remarks.setdefault(remark, []).append(case.ref.eval_id)
    for path in done.pruned:
        write_line(sys.stdout, one_line(f"pruned {_shown(path)}", limit=1000))
    for remark, ids in remarks.items():
        write_line(sys.stderr, one_line(f"{few(ids)}: {remark}", limit=1000))
    counts = Counter(case.change for case in done.cases)
    parts = [f"{counted(count, 'case')} {change}" for change, count in counts.items()]
    nothing = " (dry run: nothing was written)" if dry_run and done.contents else ""
    write_line(sys.stderr, one_line(f"{', '.join(parts)}{nothing}", limit=1000))


def _line(case: "FrozenCase") -> str:
    if case.recording is None:
        return f"{case.change} {case.ref.label}: {case.why}"
    counts = [counted(len(case.recording.calls), "tool call")]
    if case.recording.models:
        counts.append(counted(len(case.recording.models), "model call"))
    return f"{case.change} {_shown(case.file)}: {', '.join(counts)}"


def _shown(path: Path) -> str:
    return relative_to(path, Path.cwd())
