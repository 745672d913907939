"""Export of runs as Markdown for pull requests, and as CSV for spreadsheets. Foreign text is escaped."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from workbench.events.events import CaseRef
from workbench.exporting.exporter import Exporter, RunContext
from workbench.results import evidence
from workbench.results.causes import by_cause, cause_text, failing_groups, group_by_cause, is_shared
from workbench.results.document import Subject
from workbench.results.explain import matched_by_location, other_criteria, reasons, verdict
from workbench.results.faces import COUNTED
from workbench.results.faults import cell_text, fault_rows, handling_text, outcomes
from workbench.results.frozen import FROZEN, drift_texts, frozen_total, frozen_words, thawed_total
from workbench.results.gate import Drop, Gate, chance_text, change_text, notes, p_text, rate_text
from workbench.results.lines import View
from workbench.results.machines import lost_words, placed_texts
from workbench.results.plain_lines import case_label, commit_words, label, marks
from workbench.results.plain_summary import count_text, repeats_of
from workbench.results.repeat_texts import cells
from workbench.results.run_comparison import Comparison
from workbench.run.fault_outcome import WAYS
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.summary import Summary
from workbench.store.reasons import UNKNOWN, Cause, judged_by
from workbench.store.store import Store
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

_MAX_OPEN = 20
"""Maximum number of cases that did not pass and are not folded."""
_MAX_CHARACTERS = 60_000
"""Maximum length of a comment or an issue. GitHub accepts up to 65,536 characters."""
_FENCES = re.compile("`{3,}")
_COLUMNS = (
    "run_id agent evalset_file eval_set_id eval_id repeat case_status error metric score threshold metric_status reason"
    " seconds model_calls input_tokens output_tokens judge_calls criteria_changed matched_by"
    " fault_tool fault outcome frozen frozen_tools frozen_models frozen_live frozen_misses"
    " drift_same drift_changed drift_gone drift_new drift_unknown place attempt lost judged_by"
)
_STATES = {"passed": "✅ passed", "failed": "❌ failed", "not_evaluated": "⚪ not evaluated"}


def build_markdown(store: Store, context: RunContext | None = None) -> bytes:
    """Return the newest run as Markdown in UTF-8. Cases that did not pass come first, with reasons and triage."""
    known = context or RunContext()
    text, most = fitting(lambda most: _markdown(store, known, most, 0), 200)
    # The evidence of cases that did not pass gets the room that the list leaves.
    room = min(_MAX_CHARACTERS - len(text), 20_000)
    return ("\n".join(_markdown(store, known, most, room)) + "\n").encode("utf-8", "replace")


def fitting(lines: Callable[[int], Iterable[str]], most: int) -> tuple[str, int]:
    """Return the text of `lines(most)` and `most`, halved until the text fits into a comment or `most` is 1."""
    text = "\n".join(lines(most)) + "\n"
    return (text, most) if len(text) <= _MAX_CHARACTERS or most == 1 else fitting(lines, most // 2)


def build_csv(store: Store) -> bytes:
    """Return the newest run as CSV (UTF-8 with a BOM, for Excel): one line per criterion, at least one per case."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(_COLUMNS.split())
    for record in store.read_current():
        table.writerows(_rows(store, record))
    return codecs.BOM_UTF8 + out.getvalue().encode("utf-8", "replace")


def code_span(text: str) -> str:
    """Return foreign text as a Markdown code span, which makes no link, mention or HTML, or "" for an empty text."""
    safe = one_line(text, limit=300).replace("|", "\\|")
    if not safe:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", safe)), default=0) + 1)
    pad = " " if safe[0] == "`" or safe[-1] == "`" else ""
    return f"{fence}{pad}{safe}{pad}{fence}"


def _markdown(store: Store, context: RunContext, most: int, room: int) -> Iterator[str]:
    """Yield the lines of the Markdown, with `room` characters of evidence.

    It has at most `most` cases of each kind, and `most` reasons for each case.
    """
    run = store.run
    records = list(store.current_records())
    passed = [record for record in records if record.state == "passed"]
    cancelled = [record for record in records if record.state == "cancelled"]
    others = by_cause(record for record in records if record.state not in ("passed", "cancelled"))
    yield f"### agent-workbench: {count_text(store)}"
    yield ""
    yield f"Run {code_span(run.run_id)}, {code_span(run.started)}"
    if frozen := frozen_total(record.frozen for record in records):
        yield ""
        yield frozen
    if thawed := thawed_total(read_details(record).thawed for record in records if record.drifted is not None):
        yield ""
        yield thawed
    for note in matched_by_location(records):
        yield ""
        yield code_span(note)
    yield from _causes(records, most)
    if run.has_faults:
        yield from _faults(records)
    shown = min(_MAX_OPEN, most)
    yield from _problems(others[:shown], context, most)
    yield from _evidence(others[:shown], room)
    if folded := others[shown:most]:
        yield ""
        yield f"<details><summary>{len(folded):,} more that did not pass</summary>"
        yield from _problems(folded, context, most)
        yield ""
        yield "</details>"
    if len(others) > most:
        yield ""
        yield f"and {len(others) - most:,} more that did not pass"
    yield from _repeats(store, most)
    yield from _folded("passed", passed, context, most)
    yield from _folded("cancelled", cancelled, context, most)


def _folded(word: str, records: list[Execution], context: RunContext, most: int) -> Iterator[str]:
    """Yield the lines of a folded list of cases, each with its passed criteria or its reaction to a fault.

    Yield nothing if there are no cases.
    """
    if not records:
        return
    yield ""
    yield f"<details><summary>{len(records):,} {word}</summary>"
    yield ""
    for record in map(read_details, records[:most]):
        scores = ", ".join(
            verdict(replace(result, reason=""), marks(record, result))
            for result in record.metrics.values()
            if result.status == "passed"
        )
        if record.handling is not None:
            scores = handling_text(record.handling)
        more = "".join(f" ⚑ {code_span(text)}" for text in _triage(record, context))
        more += "".join(f" {text}" for text in _marks(record))
        yield f"- {code_span(case_label(record))}{f' {code_span(scores)}' if scores else ''}{more}"
    if len(records) > most:
        yield f"- and {len(records) - most:,} more"
    yield ""
    yield "</details>"


def _problems(records: list[Execution], context: RunContext, most: int) -> Iterator[str]:
    """Yield a table of cases that did not pass, with `most` reasons each. Yield nothing without cases."""
    if records:
        yield ""
        yield "| | case | why |"
        yield "|---|---|---|"
    for record in map(read_details, records):
        why_not = reasons(record)
        texts = list(map(code_span, why_not[:most]))
        if len(why_not) > most:
            texts.append(f"and {counted(len(why_not) - most, 'more reason')}")
        texts += [f"⚑ {code_span(text)}" for text in _triage(record, context)]
        texts += _marks(record)
        why = "<br>".join(texts) or "no criterion applied"
        yield f"| {_STATES.get(record.state, '⚠️ error')} | {code_span(case_label(record))} | {why} |"


def _evidence(records: list[Execution], room: int) -> Iterator[str]:
    """Yield the folded evidence of the first cases, as many as fit into `room` characters."""
    blocks: list[str] = []
    for record in map(read_details, records):
        block = "\n".join(["", code_span(case_label(record)), "", *evidence_block(record, full=False)])
        room -= len(block) + 1
        if room < 100:  # The lines around the evidence need some, too.
            break
        blocks.append(block)
    if blocks:
        words = "evidence" if len(blocks) == len(records) else f"evidence of the first {counted(len(blocks), 'case')}"
        yield from ("", f"<details><summary>{words}</summary>", *blocks, "", "</details>")


def evidence_block(record: CaseRecord, *, full: bool) -> Iterator[str]:
    """Yield the evidence of a case as on the screen, in a fenced block."""
    lines = [line.plain.rstrip() for line in evidence.build(Subject(record), View(100, full, signs=True)).lines]
    fence = "`" * max(3, 1 + max((len(found) for line in lines for found in _FENCES.findall(line)), default=0))
    yield from (f"{fence}text", *lines, fence)


def _causes(records: list[Execution], most: int) -> Iterator[str]:
    """Yield the table of causes if any two cases share a cause."""
    groups = failing_groups(records)
    if not any(map(is_shared, groups)):
        return
    yield ""
    yield "| cases | why they fail |"
    yield "|---:|---|"
    for group in groups[:most]:
        yield f"| {len(group.cases):,} | {code_span(cause_text(group.cause))} |"
    if len(groups) > most:
        yield ""
        yield f"and {counted(len(groups) - most, 'more cause')}"


def _faults(records: list[Execution]) -> Iterator[str]:
    yield ""
    yield f"| agent | tool |{''.join(f' {way.title} |' for way in WAYS.values())}"
    yield f"|---|---|{'---|' * len(WAYS)}"
    for row in fault_rows(records):
        cells = "".join(f" {cell_text(cell)} |" for cell in map(outcomes, row.cells.values()))
        yield f"| {code_span(row.agent)} | {code_span(row.tool)} |{cells}"


def _repeats(store: Store, most: int) -> Iterator[str]:
    """Yield the table of pass rates if any case ran more than once."""
    cases = repeats_of(store)
    if cases:
        yield ""
        yield "| repeats of | passed | rate (95%) | pass^k | | |"
        yield "|---|---|---|---|---|---|"
    for case in cases[:most]:
        passed, rate, hat, mark, more = cells(case)
        shown = f"**{mark}**" if case.flaky else mark
        yield f"| {code_span(label(case.ref))} | {passed} | {rate} | {hat} | {shown} | {code_span(more)} |"
    if len(cases) > most:
        yield ""
        yield f"and {counted(len(cases) - most, 'more case')}"


def _marks(record: CaseRecord) -> list[str]:
    changed = other_criteria(record)
    marks = [f"≠ other criteria: {code_span(changed)}"] if changed else []
    marks += [f"**{FROZEN}** ({frozen_words(record.frozen)})"] if record.frozen is not None else []
    return [*marks, *map(code_span, (*drift_texts(record.thawed), *placed_texts(record)))]


def _triage(record: CaseRecord, context: RunContext) -> list[str]:
    return [f"{entry.triage}: {entry.note}" if entry.note else entry.triage for entry in context.triage_of(record)]


def _rows(store: Store, record: CaseRecord) -> Iterator[list[object]]:
    ref, usage = record.ref, record.usage
    error = f"{record.error.kind}: {record.error.message}" if record.error else ""
    names = [_cell(text) for text in (store.run.run_id, ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id)]
    before = [*names, ref.repeat, record.status, _cell(error)]
    counts = [usage.model_calls, usage.input_tokens, usage.output_tokens, usage.judge_calls]
    after = [record.duration_seconds, *counts, _cell(other_criteria(record)), _cell(record.planned.matched_by)]
    fault, handling = record.planned.fault, record.handling
    faulty = ["", "", ""] if fault is None else [_cell(fault.tool), fault.way, handling.outcome if handling else ""]
    frozen, thawed = record.frozen, record.thawed
    replay = [frozen.mode, frozen.tools, frozen.models, frozen.live, frozen.misses] if frozen else ["", *[None] * 4]
    drift: list[object] = [None] * 5
    if thawed is not None and not thawed.why:
        drift = [thawed.same, thawed.changed, thawed.gone, thawed.new, thawed.unknown]
    placed = [_cell(record.machine), record.attempt, _cell("; ".join(map(lost_words, record.lost)))]
    behind = [*faulty, *replay, *drift, *placed]
    for result in record.metrics.values():
        values = [_cell(result.name), result.score, result.threshold, result.status, _cell(result.reason)]
        yield [*before, *values, *after, *behind, judged_by(result.details)]
    if not record.metrics:
        yield [*before, "", None, None, "", "", *after, *behind, None]


def _cell(text: str) -> str:
    """Return the text, quoted if a spreadsheet would read it as a formula."""
    safe = one_line(text, limit=2000)
    return f"'{safe}" if safe.startswith(tuple("=+-@＝＋－＠")) else safe


MARKDOWN: Final = Exporter(
    "md", "failures and their reasons, for a pull request", ".md", lambda run: (build_markdown(run.store, run.context),)
)
CSV: Final = Exporter("csv", "one line per criterion of each case", ".csv", lambda run: (build_csv(run.store),))


_MAX_NAMES = 50
"""Maximum number of cases of one cause that are listed by name."""


def failures_as_markdown(failures: Sequence[tuple[Cause | None, CaseRecord, str]]) -> str:
    """Return failures as Markdown, grouped by cause. Each failure is a cause, a record and the user's note.

    The cause is None if the case passes now. Each group has the evidence of its first case. The text fits into an
    issue.
    """
    causes: dict[str, tuple[Cause | None, list[tuple[CaseRecord, str]]]] = {}
    for cause, record, note in failures:
        causes.setdefault("" if cause is None else cause.slug, (cause, []))[1].append((record, note))
    parts = [f"## {counted(len(failures), 'case')} in which the agent is wrong\n"]
    size = len(parts[0])
    for number, (cause, of_cause) in enumerate(causes.values()):
        part = "\n".join(_cause(cause, of_cause)) + "\n"
        if size + len(part) > _MAX_CHARACTERS and number:
            parts.append(f"and {counted(len(causes) - number, 'more cause')}\n")
            break
        parts.append(part)
        size += len(part)
    return "\n".join(parts)


def _cause(cause: Cause | None, cases: Sequence[tuple[CaseRecord, str]]) -> Iterator[str]:
    first, _ = cases[0]
    yield f"### {code_span('now passing' if cause is None else cause_text(cause))}: {counted(len(cases), 'case')}"
    yield ""
    for record, note in cases[:_MAX_NAMES]:
        file = f" in {code_span(record.ref.evalset_file)}"
        yield f"- {code_span(case_label(record))}{file}{f': {code_span(note)}' if note else ''}"
    if len(cases) > _MAX_NAMES:
        yield f"- and {len(cases) - _MAX_NAMES:,} more"
    yield ""
    yield from evidence_block(first, full=True)


MARK = "<!-- agent-workbench -->"
"""The first line of the comment, by which a workflow finds it again. It is not visible in the rendered comment."""
_URL = re.compile(r"https?://[\w.:/~%+@-]+")


def comparison_markdown(found: Comparison, gate: Gate, verdict: str | None, environ: Mapping[str, str]) -> bytes:
    """Return the comment in UTF-8. `verdict` is the decision of `--gate` as a sentence, or None without `--gate`.

    In a job of GitHub or GitLab, the variables in `environ` are used to link to the job, commits and evalsets.
    """
    links = _Links(found.after, environ)
    text, _ = fitting(lambda most: _lines(found, gate, verdict, links, most), 40)
    return text.encode("utf-8", "replace")


class _Links:
    """Links to the pages of this job and its project, or none outside GitHub and GitLab."""

    def __init__(self, run: Summary, environ: Mapping[str, str]) -> None:
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        if server and repository:
            self._project, self._files = f"{server}/{repository}", "blob"
            self.job = f"{server}/{repository}/actions/runs/{environ.get('GITHUB_RUN_ID', '')}"
        else:
            self._project, self._files = environ.get("CI_PROJECT_URL", ""), "-/blob"
            self.job = environ.get("CI_JOB_URL", "")
        self._commit = environ.get("GITHUB_SHA") or environ.get("CI_COMMIT_SHA") or ""
        checkout = environ.get("GITHUB_WORKSPACE") or environ.get("CI_PROJECT_DIR") or ""
        try:
            self._folder = PurePath(run.root).relative_to(checkout).as_posix() if checkout else None
        except ValueError:
            self._folder = None

    def case(self, ref: CaseRef) -> str:
        """Return the name of a case as Markdown, with a link to its evalset if possible."""
        name = code_span(replace(ref, repeat=1).label)
        if self._folder is None or not self._commit or not ref.evalset_file:
            return name
        path = quote((PurePath(self._folder) / ref.evalset_file).as_posix(), errors="replace")
        return _link(name, f"{self._project}/{self._files}/{self._commit}/{path}")

    def run(self, run: Summary) -> str:
        """Return the ID of a run as Markdown, and its commit if known, with a link if possible."""
        name, commit = code_span(run.run_id), run.git.get("commit")
        if not isinstance(commit, str) or not re.fullmatch("[0-9a-f]{7,64}", commit):
            return name
        words = code_span(commit_words(commit, run.git.get("dirty")))
        folder = self._files.replace("blob", "commit")
        return f"{name}, commit {_link(words, f'{self._project}/{folder}/{commit}')}"


def _link(name: str, url: str) -> str:
    return f"[{name}]({url})" if _URL.fullmatch(url) else name


def _lines(found: Comparison, gate: Gate, verdict: str | None, links: _Links, most: int) -> Iterator[str]:
    yield MARK
    yield f"### agent-workbench: {_sentence(found, gate, verdict)}"
    yield ""
    yield from _figures(found, gate, links)
    yield from _lost(found, gate.drops, links, most)
    yield from _new_errors(gate, links, most)
    if gate.flaky:
        yield ""
        named = [f"{links.case(ref)} ({code_span(words)})" for ref, words in gate.flaky.items()]
        yield f"Known as flaky: {', '.join(named[:most])}{_more(len(named) - most)}"
    yield from _differences(found, most)
    if links.job:
        yield ""
        yield _link("Log and reports of this job", links.job)


def _sentence(found: Comparison, gate: Gate, verdict: str | None) -> str:
    if verdict is not None:
        sign = "❌" if gate.failed else "✅" if gate.is_comparable else "⚪"
        return f"{sign} {verdict}"
    if not gate.rates.cases:
        return "⚪ no case was judged in both runs"
    return f"pass rate {change_text(gate.rates)}, {gate.rates.result} ({p_text(gate.rates.p)})"


def _figures(found: Comparison, gate: Gate, links: _Links) -> Iterator[str]:
    """Yield the table of both runs, with notes on the result and the cases that were not compared."""
    rates = gate.rates
    yield f"| | A: {links.run(found.before)} | B: {links.run(found.after)} | change |"
    yield "|---|---:|---:|---|"
    if rates.cases:
        yield (
            f"| pass rate of {counted(rates.cases, 'case')} | {rate_text(rates.before)} | {rate_text(rates.after)}"
            f" | {change_text(rates)}, {rates.result} ({p_text(rates.p)}) |"
        )
    then, now = found.before.counts(), found.after.counts()
    for status in COUNTED:
        if then[status] or now[status]:
            change = now[status] - then[status]
            yield f"| {status.replace('_', ' ')} | {then[status]:,} | {now[status]:,} | {change:+,} |"
    for note in notes(gate):
        yield ""
        yield note
    unlike = _cases(found.unlike)
    both = {*_cases(one for case in found.repeats for one in (case.before[0], case.after[0])), *unlike}
    apart = {
        "Not compared": gate.left_out,
        "Only in A": [ref for ref in _cases(found.only_before) if ref not in both],
        "Only in B": [ref for ref in _cases(found.only_after) if ref not in both],
        "Not frozen in the same way, so not compared": unlike,
    }
    for words, refs in apart.items():
        if named := list(map(links.case, refs)):
            yield ""
            yield f"{words}: {', '.join(named[:5])}{_more(len(named) - 5)}"


def _cases(executions: Iterable[Execution]) -> list[CaseRef]:
    """Return the first executions of the cases, each once."""
    return list(dict.fromkeys(replace(one.ref, repeat=1) for one in executions))


def _lost(found: Comparison, drops: Sequence[Drop], links: _Links, most: int) -> Iterator[str]:
    """Yield a table of the cases that pass less often, grouped by cause, the biggest group first."""
    if not drops:
        return
    failed = {case.ref: [one.cause for one in case.after if one.state == "failed"] for case in found.repeats}
    causes = {ref: next(filter(None, found_causes), UNKNOWN) for ref, found_causes in failed.items()}
    changed: dict[CaseRef, dict[str, None]] = {}
    for case in found.cases:
        words = (f"{cause.kind.replace('_', ' ')}: {cause.what}" for cause in case.causes)
        changed.setdefault(replace(case.ref, repeat=1), {}).update(dict.fromkeys(words))
    yield ""
    yield f"| {counted(len(drops), 'case')} that passed less often | why they fail now | what changed |"
    yield "|---|---|---|"
    for group in group_by_cause((drop, causes[drop.ref]) for drop in drops):
        named = [f"{links.case(drop.ref)} {_drop(drop)}" for drop in group.cases[:most]]
        reasons = dict.fromkeys(reason for drop in group.cases[:most] for reason in changed.get(drop.ref, ()))
        cells = "<br>".join(named) + _more(len(group.cases) - most), code_span(cause_text(group.cause))
        yield f"| {' | '.join(cells)} | {'<br>'.join(map(code_span, reasons))} |"


def _drop(drop: Drop) -> str:
    (passed, judged), (later, of_later) = drop.before, drop.after
    words = f"{passed}/{judged} → {later}/{of_later}"
    if drop.is_clear:
        return f"**{words}**, {chance_text(drop.chance)}"
    return f"{words}, {'one run each' if drop.is_single else chance_text(drop.chance)}"


def _new_errors(gate: Gate, links: _Links, most: int) -> Iterator[str]:
    if not gate.new_errors:
        return
    yield ""
    yield f"| {counted(len(gate.new_errors), 'case')} with a new error | why |"
    yield "|---|---|"
    for one in gate.new_errors[:most]:
        why = "" if one.error is None else code_span(f"{one.error.kind}: {one.error.message}")
        yield f"| {links.case(one.ref)} | {why} |"
    if (more := len(gate.new_errors) - most) > 0:
        yield ""
        yield f"and {counted(more, 'more case')} with new errors"


def _differences(found: Comparison, most: int) -> Iterator[str]:
    """Yield the differences between the runs, folded."""
    words = [*(f"{file.kind} {file.path}" for file in found.files), *found.differences]
    if not words:
        return
    yield ""
    yield f"<details><summary>{counted(len(words), 'difference')} between the runs</summary>"
    yield ""
    yield from (f"- {code_span(one)}" for one in words[:most])
    if len(words) > most:
        yield f"- and {len(words) - most:,} more"
    yield ""
    yield "</details>"


def _more(number: int) -> str:
    return f" and {number:,} more" if number > 0 else ""
