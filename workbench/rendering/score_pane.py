"""The pane "Scores": every criterion over the case and turn by turn with its reason, and the source of the criteria."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.counting import counted
from workbench.events import MetricResult
from workbench.execution import CaseRecord
from workbench.history.case_rows import PastRun
from workbench.json_values import mapping, objects, string
from workbench.metrics.registry import descriptions
from workbench.rendering.calls import match_type_words, value_lines
from workbench.rendering.document import Document, Subject
from workbench.rendering.faces import FACES, FROZEN, OTHER_CRITERIA, Status
from workbench.rendering.frozen import frozen_words
from workbench.rendering.json_text import pretty_lines
from workbench.rendering.judge_texts import (
    criterion_tags,
    leading_vote,
    mark,
    reply_cost,
    tally_words,
    vote_words,
    who,
)
from workbench.rendering.judged import judge_of, judge_questions, versions
from workbench.rendering.lines import BLANK, Line, Segment, flow, fold, hang, joined, safe, wrap
from workbench.rendering.reference import criteria_part
from workbench.rendering.rows import GUTTER, View, label, part, remark, under
from workbench.rendering.scores import verdict_head
from workbench.rendering.status import glyph, score_text
from workbench.rendering.triaged import triage_lines
from workbench.scores import amount, cut_score
from workbench.text import one_line

WORDS_SHOWN = 12
_INDENT = 3
_TURN = 12
# Details that the diff shows, or that this pane shows in other words.
_CALL_KEYS = {"rows", "match_type", "ignore_args", "args_match", "other_match_types"}
_WORD_KEYS = {"expected_marks", "actual_marks", "matched", "missing", "extra", "precision", "recall", "f"}
_JUDGED_KEYS = {
    "judge", "tally", "questions", "votes", "asked", "of", "split", "compared", "message",
    "rubrics", "unused", "texts", "share", "adk_score", "of_sentences",
    "explanation", "seconds", "attempts", "cached",
    "stop", "starting_prompt", "conversation_plan", "plan", "user_persona", "persona",
}  # fmt: skip
"""Details that the panes of judged criteria show."""
_CHECKS = {"not_contains": "does not contain"}
_RULE_KEYS = {"checks", "figures", "differences", "more_differences", "accepted"}
_SHOWN_ELSEWHERE = _CALL_KEYS | _WORD_KEYS | _JUDGED_KEYS | _RULE_KEYS | {"turns", "lowest_turn"}


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    document = Document()
    document.add(triage_lines(subject, view))
    document.add(score_lines(subject, view, explained=view.full))
    if subject.record is not None and subject.record.metrics and not view.full:
        document.gap()
        document.add([fold(" ▸ what the criteria mean, matching words, other details", view.width)])
    return document


def score_lines(subject: Subject, view: View, *, explained: bool) -> Iterator[Line]:
    """Yield every score. With `explained`, also what each criterion measures and how to read it."""
    record = subject.record
    if record is not None:
        for result in record.metrics.values():
            if result.status != "informational" or result.name in record.custom_metrics:
                yield from _criterion(result, record, view, explained)
                yield from past_run_lines(result.name, subject.earlier, view)
                yield BLANK
        if not record.metrics:
            yield from remark(_no_scores(record), view)
            yield BLANK
        yield from _frozen(record, view)
        yield from _figures(record, view)
    yield from _source(subject, view)


def _frozen(record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield how the case was replayed, and from which file."""
    frozen = record.frozen
    if frozen is not None:
        words = [Segment(f"{FROZEN.glyph} {FROZEN.word.upper()}", FROZEN.variable), Segment(f" {frozen_words(frozen)}")]
        yield from part("replayed", words, view)
        if frozen.file:
            yield from part("", [safe(frozen.file, "muted")], view)


def _no_scores(record: CaseRecord) -> str:
    if not record.finished:
        return "No scores yet."
    return "No scores: the case ended before it could be judged." if record.error else "No scores."


def _criterion(result: MetricResult, record: CaseRecord, view: View, explained: bool) -> Iterator[Line]:
    name = result.name
    turns = [(number, turn.metrics[name]) for number, turn in enumerate(record.turns, 1) if name in turn.metrics]
    several = len(turns) > 1
    turns_have_reasons = several and any(turn.reason and turn.reason in result.reason for _, turn in turns)
    told = turns_have_reasons or bool(result.details.get("differences"))
    yield from verdict_head(result, view, reason=not told, marks=criterion_tags(record, name))
    yield from hang([], _judged(result, record, view.width - _INDENT), _INDENT)
    yield from hang([], _about(result, View(view.width - _INDENT, view.full), explained), _INDENT)
    gutter = _TURN if several else _INDENT
    for number, turn in turns:
        lead = [Segment(f"   turn {number}", "label")] if several else []
        yield from hang(lead, _turn(turn, View(view.width - gutter, view.full), alone=not several), gutter)


def _judged(result: MetricResult, record: CaseRecord, width: int) -> Iterator[Line]:
    """Yield the judge and its cost."""
    judge = judge_of(result)
    if not judge:
        return
    asked = (item.question for item in judge_questions(record, result.name))
    yield from flow(who(judge, versions(asked)), width)
    if note := string(judge.get("note")):
        yield from wrap([safe(note, "muted")], width)
    yield from flow(tally_words(mapping(result.details.get("tally"))), width)


def _about(result: MetricResult, view: View, explained: bool) -> Iterator[Line]:
    """Yield the criterion's description, its match types, and its details over the whole case."""
    info = descriptions().get(result.name) if explained else None
    if info is not None:
        yield from wrap([Segment(f"{info.title}. {info.measures} {info.how_to_read}", "muted")], view.width)
    if match_type_words(result):
        yield from wrap(match_type_words(result), view.width)
    yield from _details(result, view)


def _turn(result: MetricResult, view: View, *, alone: bool) -> Iterator[Line]:
    if not alone:
        score = score_text(result) or FACES[result.status].word
        yield from wrap([glyph(result.status), Segment(f" {score}", FACES[result.status].variable)], view.width)
        if result.reason:
            yield from wrap([safe(result.reason)], view.width)
    yield from flow([*vote_words(result.details, leading_vote(result.details)), *_service(result)], view.width)
    if view.full or result.status != "passed":
        yield from _details(result, view)


def _service(result: MetricResult) -> Iterator[Line]:
    """Yield the explanation of Google's evaluation service, and its cost."""
    if explanation := string(result.details.get("explanation")):
        yield (Segment(one_line(explanation)),)
    if "attempts" in result.details:
        yield from ((Segment(text, "muted"),) for text in reply_cost([result.details]))


def _details(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the parts of a result's details that are shown nowhere else."""
    details = result.details
    shares = [(word, details.get(key)) for key, word in (("precision", "precision"), ("recall", "recall"), ("f", "F"))]
    figures = [
        (Segment(f"{word} ", "muted"), Segment(cut_score(value, 2, 2)))
        for word, value in shares
        if isinstance(value, int | float)
    ]
    if figures:
        yield from wrap(joined(figures), view.width)
    for key, style in (("missing", "diff-missing"), ("extra", "diff-extra"), ("matched", "diff-same")):
        words = details.get(key)
        if isinstance(words, list) and words and (view.full or key != "matched"):
            yield from wrap(_words(key, words, style, view), view.width)
    yield from _checks(details, view)
    yield from value_lines(details, View(view.width + GUTTER, view.full))
    # A service without an error has an empty entry for it.
    shown = {*_SHOWN_ELSEWHERE, "error"} if details.get("error") is None else _SHOWN_ELSEWHERE
    rest = {key: value for key, value in details.items() if key not in shown and value not in ([], {})}
    if rest:
        yield from _rest(rest, view)


def _checks(details: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Yield `✗ contains "refund"` for each condition on an answer, and `✓ tokens 480 of 500` for each limit."""
    for check in objects(details.get("checks")):
        kind, text = string(check.get("kind")), one_line(string(check.get("text")), limit=200)
        words = f"matches {text}" if kind == "regex" else f'{_CHECKS.get(kind, "contains")} "{text}"'
        yield from wrap([_sign(check.get("met")), Segment(f" {words}")], view.width)
    for name, figure in mapping(details.get("figures")).items():
        used, limit = mapping(figure).get("used"), mapping(figure).get("limit")
        met = used <= limit if isinstance(used, int | float) and isinstance(limit, int | float) else None
        amounts = Segment(f"{_simple(used)} of {_simple(limit)}")
        yield from wrap([_sign(met), Segment(f" {_name(name)} ", "muted"), amounts], view.width)


def _sign(met: object) -> Segment:
    return glyph("passed" if met is True else "failed" if met is False else "not_evaluated")


def _words(key: str, words: list[Any], style: str, view: View) -> Iterator[Segment]:
    kept = words if view.full else words[:WORDS_SHOWN]
    yield Segment(f"{key}: ", "muted")
    yield Segment("  ".join(one_line(str(word), limit=60) for word in kept), style)
    if len(kept) < len(words):
        yield Segment(f"  … {len(words) - len(kept):,} more", "fold")


def _rest(rest: dict[str, Any], view: View) -> Iterator[Line]:
    simple = {key: value for key, value in rest.items() if not isinstance(value, dict | list)}
    if simple:
        pairs = [(Segment(f"{_name(key)} ", "muted"), Segment(_simple(value))) for key, value in simple.items()]
        yield from wrap(joined(pairs), view.width)
    deep = {key: value for key, value in rest.items() if key not in simple}
    if deep and view.full:
        yield from pretty_lines(deep, view.width)
    elif deep:
        yield from wrap([Segment(f"… {', '.join(map(_name, deep))}", "fold")], view.width)


def _name(key: object) -> str:
    return one_line(str(key), limit=60).replace("_", " ")


def _simple(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return amount(value) if isinstance(value, int | float) else one_line(str(value))


def _figures(record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield informational values: the cost of the case, and ADK's averages over its turns."""
    if record.finished:
        yield from part("cost", [Segment(_cost(record))], view)
    own = record.custom_metrics
    results = [one for one in record.metrics.values() if one.status == "informational" and one.name not in own]
    lead = label("per turn")
    for result in results:
        if result.score is not None:
            yield from under(lead, wrap(_figure_words(result, view), view.room))
            lead = ()
    unknown = [one_line(result.name, limit=100) for result in results if result.score is None]
    if unknown:
        yield from under(lead, wrap([Segment(f"not reported: {', '.join(unknown)}", "muted")], view.room))


def _figure_words(result: MetricResult, view: View) -> Iterator[Segment]:
    yield Segment(f"{one_line(result.name, limit=100)} ")
    yield Segment(score_text(result), "strong")
    parts = {key: value for key, value in result.details.items() if isinstance(value, int | float)}
    if view.full or len(parts) < 5:
        for key, value in parts.items():
            yield Segment(f"  {_name(key)} {_simple(value)}", "muted")


def _cost(record: CaseRecord) -> str:
    usage = record.usage
    amounts = [f"{record.duration_seconds:.1f} s"]
    if usage.model_calls:
        amounts.append(counted(usage.model_calls, "model call"))
    if usage.input_tokens or usage.output_tokens:
        amounts.append(f"{counted(usage.input_tokens, 'token')} in, {usage.output_tokens:,} out")
    if usage.judge_calls:
        asked = counted(usage.judge_calls, "judge call")
        amounts.append(f"{asked}, {usage.judge_calls_cached:,} from the cache")
    return " · ".join(amounts)


def _source(subject: Subject, view: View) -> Iterator[Line]:
    changed = subject.record.planned.criteria_changed if subject.record is not None else ()
    if changed:
        yield from under(label("judged by"), [(mark(OTHER_CRITERIA), Segment(" than in the file", "muted"))])
        for sentence in changed:
            yield from under((), wrap([safe(sentence)], view.room))
    if subject.entry is not None:
        if subject.entry.owned.rule == "location":
            yield from part("agent", [safe(subject.entry.agent_reason)], view)
        yield from criteria_part(subject.entry, view)
    elif subject.record is not None:
        yield from part("criteria", [safe(subject.record.planned.criteria_source)], view)


_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 2
"""The minimum number of runs for this line. Fewer runs add nothing to the verdict."""


def past_run_lines(name: str, earlier: Sequence[PastRun], view: View) -> Iterator[Line]:
    """Yield one line, or two if space is short, or nothing while only one run has judged the case.

    The oldest run is on the left.
    """
    judged = [found for run in reversed(earlier) if (found := _of_run(name, run)) is not None]
    if len(judged) < _LEAST:
        return
    scores = [score for score, _ in judged if score is not None]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    bars = tuple(Segment(_bar(score, low, high), FACES[status].variable) for score, status in judged)
    marks = tuple(Segment(FACES[status].glyph, FACES[status].variable) for _, status in judged)
    decided = [status for _, status in judged if status not in ("informational", "not_applicable")]
    words = f"passed {decided.count('passed')} of {len(decided)}" if decided else "never decided"
    summary = (Segment(words, "muted"),)
    lead = [Segment("   runs", "label")]
    yield from hang(lead, flow([bars, marks, summary], max(view.width - GUTTER, 10), "  "), GUTTER)


def _of_run(name: str, run: PastRun) -> tuple[float | None, Status] | None:
    """Return a run's score and verdict."""
    metrics = [row["metrics"][name] for row in run.rows if name in row.get("metrics", {})]
    metrics = [metric for metric in metrics if metric[2] in FACES]
    if not metrics:
        return None
    scores = [metric[0] for metric in metrics if metric[0] is not None]
    # Repeats count with their mean score and their worst verdict.
    worst = min((metric[2] for metric in metrics), key=lambda status: FACES[status].rank)
    return (sum(scores) / len(scores) if scores else None), worst


def _bar(score: float | None, low: float, high: float) -> str:
    if score is None:
        return "·"
    return _BARS[round((score - low) / (high - low) * (len(_BARS) - 1))]
