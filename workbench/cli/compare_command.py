"""The command `compare`: changes from one run to another with their causes, regressions first."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_file, write_line
from workbench.text.counting import counted, counted_status, cut_score, few
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.events.events import CaseRef, MetricResult
    from workbench.results.gate import Gate
    from workbench.results.run_comparison import ChangedCase, Comparison
    from workbench.store.execution import Execution
    from workbench.store.history.summary import Summary

_SHOWN = 50
"""Maximum number of cases listed for each kind of change in `_MORE`."""
_LINE = 300
"""Maximum number of characters of a line of a changed file."""
_SAME, _REGRESSIONS, _USAGE = 0, 1, 2
"""Exit codes."""
_WORDS = {"regression": "REGRESSION", "fix": "FIX", "other": "CHANGED", "unfinished": "UNFINISHED", "score": "SCORE"}
"""Each kind of change with the word that begins its lines, in their order."""
_MORE = {"unfinished": "without a verdict", "score": "with changed scores"}
"""The kinds of change of which only the first cases are listed, with the words for their cases."""
_DESCRIPTION = """Compare two runs. Lists regressions, then fixes, then changed scores. Each has the differences between
the runs that can have caused it: prompt, code, model, versions, criteria, expected value, tool output, judge.

\b
A, B  the earlier and the later run: an ID, the start of one, `last`, `baseline`, a JSON report, or a
      result file of ADK or agents-cli. If you give one run, the baseline is A.

\b
Exit codes
    0  no regression; cases that were cancelled or did not run do not count
    1  a case passed in A and ended in B without passing; with --gate: a loss that chance does not
       explain, or a new error
    2  the command line or a run is wrong, or the runs have no comparable case in common
"""


@common.command("compare", _DESCRIPTION, "Show what changed from one run to another, and why.")
@click.argument("words", metavar="A B", nargs=-1)
@click.option(
    "--gate", "is_gate", is_flag=True, help="Fail only for a loss that chance does not explain, or for new errors."
)
@click.option(
    "--alpha",
    type=float,
    metavar="SHARE",
    help="With --gate: accepted risk that a change without effect fails.  [default: 0.05]",
)
@click.option(
    "--markdown",
    type=common.FILE,
    metavar="FILE",
    callback=common.checked_file("--markdown"),
    help="Write a comment for a pull request to FILE.",
)
@common.AS_JSON
@common.STATE_DIR
def compare_command(
    words: tuple[str, ...],
    is_gate: bool,
    alpha: float | None,
    markdown: Path | None,
    as_json: bool,
    state_dir: Path | None,
) -> int:
    """Compare two runs and return the exit code."""
    if alpha is not None and not is_gate:
        raise Refused("--alpha works only with --gate", try_help="agent-workbench compare")
    if alpha is not None and not 0.000001 <= alpha <= 0.5:  # NaN is in no range.
        raise Refused(f"--alpha must be from 0.000001 to 0.5, not {alpha:g}", try_help="agent-workbench compare")
    if not 1 <= len(words) <= 2:
        raise Refused(f"name one or two runs, not {len(words)}", try_help="agent-workbench compare")
    first, second = words if len(words) == 2 else ("baseline", words[0])

    state = common.known_runs((first, second), state_dir)
    from workbench.results.gate import gate, gate_text
    from workbench.results.run_comparison import compare
    from workbench.results.statistics import ALPHA
    from workbench.store.history.reading import open_summary

    here = Path.cwd()
    before, trouble = open_summary(first, state, here)
    after, more = open_summary(second, state, here)
    for line in (*trouble, *more):
        warn(line)
    found = compare(before, after, state)
    weighed = gate(found, state, alpha=alpha or ALPHA)
    if is_gate and not found.has_verdicts:
        raise Refused("--gate needs verdicts, and results of agents-cli have only scores")
    verdict = gate_text(weighed) if is_gate else None
    if as_json:
        from workbench.project.compare_report import compare_report

        write_line(sys.stdout, json.dumps(compare_report(found, weighed, verdict)))
    else:
        # One write, because there may be thousands of lines.
        write_line(sys.stdout, "\n".join([*_lines(found, weighed), *_gate_lines(weighed, verdict)]))
    if markdown is not None:
        from workbench.exporting.tables import comparison_markdown

        content = comparison_markdown(found, weighed, verdict, os.environ)
        if not write_file("--markdown", markdown, lambda: (content,)):
            return _USAGE
    if has_failed() or not (weighed.is_comparable if is_gate else not found.is_empty):
        return _USAGE
    return _REGRESSIONS if (weighed.failed if is_gate else found.count("regression")) else _SAME


def _lines(found: "Comparison", weighed: "Gate") -> Iterator[str]:
    yield _run_line("A", found.before)
    yield _run_line("B", found.after)
    for change, word in _WORDS.items():
        cases = [case for case in found.cases if case.change == change]
        most = _SHOWN if change in _MORE else len(cases)
        for case in cases[:most]:
            yield from _case_lines(case, word)
        if len(cases) > most:
            yield f"and {counted(len(cases) - most, 'more case')} {_MORE[change]} (--json has them all)"
    apart = {
        "only in A": found.only_before,
        "only in B": found.only_after,
        "not frozen in the same way, so not compared": found.unlike,
    }
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
    yield from _chance_lines(weighed)
    yield _summary_line(found)


def _chance_lines(weighed: "Gate") -> Iterator[str]:
    """Yield lines about cases that pass less often, the pass rate, and cases that are not compared."""
    from workbench.results.gate import chance_text, change_text, drop_text, notes, p_text, rate_text

    if repeated := [drop for drop in weighed.drops if not drop.is_single or drop.flaky]:
        yield "Cases that pass less often:"
        yield from (f"  {_label(drop.ref)} {drop_text(drop)}" for drop in repeated)
    if single := [drop for drop in weighed.drops if drop.is_single]:
        yield (
            f"{counted(len(single), 'case')} passed in A and failed in B, in one run each. That says little about a"
            f" case ({chance_text(single[0].chance)}). Repeat with --runs 3"
        )
    if not (rates := weighed.rates).cases:
        return
    yield (
        f"Pass rate of {counted(rates.cases, 'case')}: {rate_text(rates.before)} -> {rate_text(rates.after)},"
        f" {change_text(rates)}, {rates.result} ({p_text(rates.p)})"
    )
    yield from (f"  {note}" for note in notes(weighed))
    if weighed.left_out:
        yield f"  not compared: {few(map(_label, weighed.left_out), 5)}"


def _gate_lines(weighed: "Gate", verdict: str | None) -> Iterator[str]:
    """Yield the new errors, the flaky cases and the decision of `--gate`; nothing without it."""
    if verdict is None:
        return
    for one in weighed.new_errors:
        why = f": {one.error.kind}: {one.error.message}" if one.error is not None else ""
        yield one_line(f"new error: {one.ref.label}{why}", limit=500)
    if weighed.flaky:
        named = (f"{_label(ref)} ({one_line(words)})" for ref, words in weighed.flaky.items())
        yield f"known as flaky: {few(named, _SHOWN)}"
    yield f"gate {'undecided' if weighed.passed is None else 'passed' if weighed.passed else 'failed'}: {verdict}"


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
    return result.status.replace("_", " ") if result.score is None else cut_score(result.score)


def _run_line(name: str, run: "Summary") -> str:
    counts = ", ".join(counted_status(status, count) for status, count in run.counts().items() if count)
    from workbench.results.frozen import frozen_count
    from workbench.results.plain_lines import commit_words

    commit = commit_words(run.git.get("commit"), run.git.get("dirty"))
    at = f", commit {commit}" if commit else ""
    frozen = frozen_count(sum(one.frozen is not None for one in run.executions.values()), len(run.executions))
    more = f", {frozen}" if frozen else ""
    more += ", injected faults, so not compared" if run.has_faults else ""
    return one_line(f"{name}: {run.run_id} ({counts or 'no cases'}{at}{more})", limit=300)


def _summary_line(found: "Comparison") -> str:
    has_verdicts = found.before.has_verdicts and found.after.has_verdicts
    verdicts = [counted(found.count("regression"), "regression"), counted(found.count("fix"), "fix", "fixes")]
    parts = [
        *(verdicts if has_verdicts else ["no verdicts compared"]),
        *([counted(found.count("other"), "other verdict")] if found.count("other") else []),
        *([f"{unfinished:,} without a verdict (not counted)"] if (unfinished := found.count("unfinished")) else []),
        counted(found.count("score"), "changed score"),
        f"{found.unchanged:,} unchanged",
        *([f"{len(found.unlike):,} not comparable"] if found.unlike else []),
    ]
    return ", ".join(parts)


def _label(ref: "CaseRef") -> str:
    return one_line(ref.label, limit=200)


def _by_function(result: "MetricResult | None") -> bool:
    from workbench.store.reasons import is_without_model, judged_by

    return result is not None and is_without_model(judged_by(result.details))
