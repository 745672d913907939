"""The command `compare`: changes from one run to another with their causes, regressions first."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_line
from workbench.store.judge_details import is_without_model, judge_name, judged_by
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.events.events import CaseRef, MetricResult
    from workbench.results.compare.compare import ChangedCase, Comparison
    from workbench.store.execution import Execution
    from workbench.store.history.summary import Summary

SCHEMA = "agent-workbench/compare/1"
_SHOWN = 50
"""Maximum number of cases listed for each kind of change that leaves the verdict as it is."""
_LINE = 300
_SAME, _REGRESSIONS, _USAGE = 0, 1, 2
_WORDS = {"regression": "REGRESSION", "fix": "FIX", "other": "CHANGED", "unfinished": "UNFINISHED", "score": "SCORE"}
_UNLIKE = "not frozen in the same way, so not compared"
_MORE = {"unfinished": "without a verdict", "score": "with changed scores"}
_DESCRIPTION = """Compare two runs. Lists regressions, then fixes, then changed scores. Each has the differences between
the runs that can have caused it: prompt, code, model, versions, criteria, expected value, tool output, judge.

\b
A, B  the earlier and the later run: an ID, the start of one, `last`, `baseline`, a JSON report, or a
      result file of ADK or agents-cli. If you give one run, the baseline is A.

\b
Exit codes
    0  no regression; cases that were cancelled or did not run do not count
    1  a case passed in A and ended in B without passing
    2  the command line or a run is wrong, or the runs have no comparable case in common
"""


@common.command("compare", _DESCRIPTION, "Show what changed from one run to another, and why.")
@click.argument("words", metavar="A B", nargs=-1)
@common.AS_JSON
@common.STATE_DIR
def compare_command(words: tuple[str, ...], as_json: bool, state_dir: Path | None) -> int:
    """Compare two runs and return the exit code."""
    if not 1 <= len(words) <= 2:
        raise Refused(f"name one or two runs, not {len(words)}", try_help="agent-workbench compare")
    first, second = words if len(words) == 2 else ("baseline", words[0])

    state = common.known_runs((first, second), state_dir)
    from workbench.results.compare.compare import compare
    from workbench.store.history.reading import open_summary

    here = Path.cwd()
    before, trouble = open_summary(first, state, here)
    after, more = open_summary(second, state, here)
    for line in (*trouble, *more):
        warn(line)
    found = compare(before, after, state)
    if as_json:
        write_line(sys.stdout, json.dumps(_report(found)))
    else:
        # One write, because there may be thousands of lines.
        write_line(sys.stdout, "\n".join(_lines(found)))
    if has_failed() or found.is_empty:
        return _USAGE
    return _REGRESSIONS if found.count("regression") else _SAME


def _lines(found: "Comparison") -> Iterator[str]:
    yield _run_line("A", found.before)
    yield _run_line("B", found.after)
    for change, word in _WORDS.items():
        cases = [case for case in found.cases if case.change == change]
        most = _SHOWN if change in _MORE else len(cases)
        for case in cases[:most]:
            yield from _case_lines(case, word)
        if len(cases) > most:
            yield f"and {counted(len(cases) - most, 'more case')} {_MORE[change]} (--json has them all)"
    apart = {"only in A": found.only_before, "only in B": found.only_after, _UNLIKE: found.unlike}
    for word, executions in apart.items():
        if executions:
            yield f"{word}: {few((_label(one.ref) for one in executions), 5)}"
    if found.is_empty:
        yield "The runs have no comparable case in common"
    if found.files or found.differences:
        yield "Differences between the runs:"
    for words in found.differences:
        yield f"  {one_line(words, limit=500)}"
    for file in found.files:
        yield f"  {file.kind} {one_line(file.path)}" + ("" if file.lines else " (content not stored)")
        yield from (f"    {plain(line[:_LINE])}" for line in file.lines)
    yield _summary_line(found)


def _case_lines(case: "ChangedCase", word: str) -> Iterator[str]:
    verdict = f" {_verdict(case.before)} -> {_verdict(case.after)}"
    why = "; ".join(f"{cause.kind.replace('_', ' ')}: {cause.what}" for cause in case.causes)
    head = f"{word} {_label(case.ref)}{'' if case.change == 'score' else verdict}"
    yield head + (f" | {one_line(why, limit=500)}" if why else "")
    if case.change == "unfinished":
        return
    if (error := case.after.error) is not None:
        yield f"    {one_line(f'{error.kind}: {error.message}', limit=300)}"
    for name in case.metrics:
        old, new = (one.scores.get(name) for one in (case.before, case.after))
        reason = f": {one_line(new.reason, limit=300)}" if new is not None and new.reason else ""
        said = " (function)" if _by_function(old) or _by_function(new) else ""
        yield f"    {one_line(name, limit=100)} {_score(old)} -> {_score(new)}{said}{reason}"


def _verdict(execution: "Execution") -> str:
    return execution.state if execution.finished else "no verdict"


def _score(result: "MetricResult | None") -> str:
    if result is None:
        return "none"
    from workbench.text.scores import cut_score

    return result.status.replace("_", " ") if result.score is None else cut_score(result.score)


def _run_line(name: str, run: "Summary") -> str:
    counts = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in run.counts().items() if count)
    from workbench.results.frozen import frozen_part
    from workbench.results.plain_lines import commit_words

    commit = commit_words(run.git.get("commit"), run.git.get("dirty"))
    at = f", commit {commit}" if commit else ""
    frozen = frozen_part(one.frozen for one in run.executions.values())
    more = f", {frozen}" if frozen else ""
    more += ", injected faults, so not compared" if run.has_faults else ""
    return one_line(f"{name}: {run.run_id} ({counts or 'no cases'}{at}{more})", limit=300)


def _summary_line(found: "Comparison") -> str:
    has_verdicts = found.before.has_verdicts and found.after.has_verdicts
    verdicts = [counted(found.count("regression"), "regression"), counted(found.count("fix"), "fix", "fixes")]
    parts = [
        *(verdicts if has_verdicts else ["no verdicts compared"]),
        *([counted(found.count("other"), "other verdict")] if found.count("other") else []),
        *([f"{unfinished} without a verdict (not counted)"] if (unfinished := found.count("unfinished")) else []),
        counted(found.count("score"), "changed score"),
        f"{found.unchanged} unchanged",
        *([f"{len(found.unlike)} not comparable"] if found.unlike else []),
    ]
    return ", ".join(parts)


def _label(ref: "CaseRef") -> str:
    return one_line(ref.label, limit=200)


def _report(found: "Comparison") -> dict[str, Any]:
    from workbench.results.compare.compare import ORDER

    return {
        "schema": SCHEMA,
        "a": _run_json(found.before),
        "b": _run_json(found.after),
        "summary": {**{change: found.count(change) for change in ORDER}, "unchanged": found.unchanged},
        "cases": [_case_json(case) for case in found.cases],
        "only_in_a": [dataclasses.asdict(one.ref) for one in found.only_before],
        "only_in_b": [dataclasses.asdict(one.ref) for one in found.only_after],
        "not_compared": [dataclasses.asdict(one.ref) for one in found.unlike],
        "files": [dataclasses.asdict(file) for file in found.files],
        "differences": list(found.differences),
    }


def _run_json(run: "Summary") -> dict[str, Any]:
    return {name: getattr(run, name) for name in ("run_id", "started", "git", "versions", "models")}


def _case_json(case: "ChangedCase") -> dict[str, Any]:
    before, after = case.before, case.after
    return {
        **dataclasses.asdict(case.ref),
        "change": case.change,
        "before": before.state if before.finished else None,
        "after": after.state if after.finished else None,
        "frozen": after.frozen is not None,
        "place": after.machine or None,
        "causes": [dataclasses.asdict(cause) for cause in case.causes],
        "metrics": [
            {
                "name": name,
                "before": _metric_json(before.scores.get(name)),
                "after": _metric_json(after.scores.get(name)),
            }
            for name in case.metrics
        ],
    }


def _metric_json(result: "MetricResult | None") -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "score": result.score,
        "threshold": result.threshold,
        "status": result.status,
        "reason": result.reason,
        "judge": judge_name(result.details) or None,
        "judged_by": judged_by(result.details),
    }


def _by_function(result: "MetricResult | None") -> bool:
    return result is not None and is_without_model(judged_by(result.details))
