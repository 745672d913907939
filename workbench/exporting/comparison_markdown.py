"""Two compared runs as a Markdown comment: the verdict, the figures, the losses with their causes, and links."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from urllib.parse import quote

from workbench.events.events import CaseRef
from workbench.exporting.tables import code_span, fitting
from workbench.results.causes import cause_text, group_by_cause
from workbench.results.faces import COUNTED
from workbench.results.gate import Drop, Gate, chance_text, change_text, notes, p_text, rate_text
from workbench.results.plain_lines import commit_words
from workbench.results.run_comparison import Comparison
from workbench.store.execution import Execution
from workbench.store.history.summary import Summary
from workbench.store.reasons import UNKNOWN
from workbench.text.counting import counted

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
