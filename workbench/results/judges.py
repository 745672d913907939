"""The pane "Judges": the criteria, the worst first, then the simulated user, the cost and the criteria's source."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rich.text import Text

from workbench.criteria.registry import descriptions
from workbench.events.events import MetricResult
from workbench.results import claims
from workbench.results.calls import match_type_words, value_lines
from workbench.results.definition import criteria_part
from workbench.results.document import Document, Subject, Target
from workbench.results.faces import FACES, OTHER_CRITERIA, SPLIT, VERDICTS, by_weight, glyph, score_line, score_text
from workbench.results.judged import (
    count,
    criterion_tags,
    is_shown_in,
    judge_lines,
    leading_vote,
    mark,
    message_text,
    number,
    question_key,
    questions,
    replies,
    reply_cost,
    results,
    tally_words,
    verdict_mark,
    vote_words,
)
from workbench.results.lines import (
    GUTTER,
    Line,
    View,
    flow,
    hang,
    hang_text,
    heading,
    joined,
    label,
    part,
    remark,
    safe,
    shortened,
    under,
    wrap,
)
from workbench.results.questions import add_questions, add_simulated_user, message_words
from workbench.results.sections import add_plugin_sections
from workbench.results.texts import pretty_lines, text_lines
from workbench.results.triage import overridden
from workbench.store.execution import CaseRecord, Turn
from workbench.store.reasons import votes_differ
from workbench.text.counting import amount, counted, cut_score
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain

_GUTTER = 11
_ORIGINS = {
    "config": "from the criteria",
    "case": "from the case",
    "turn": "from the turn",
    "service": "from the service",
}


def rubric_counts(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the number of met rubrics if there are several, and the rubrics that no criterion used."""
    scores = [number(item.get("score")) for item in objects(result.details.get("rubrics"))]
    read = [score for score in scores if score is not None]
    if len(scores) > 1:
        met = sum(score == 1.0 for score in read)
        rest = f", {len(scores) - len(read)} unreadable" if len(read) < len(scores) else ""
        yield from part("rubrics", Text.assemble((f"{met} of {len(scores)}", "strong"), (f" met{rest}", "muted")), view)
    names = result.details.get("unused")
    unused = [one_line(name, limit=100) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if unused:
        why = "no criterion uses them, because they have no known type"
        yield from part("not used", Text.assemble((f"{', '.join(unused)}: ", "status-not-evaluated"), why), view)


def add_rubrics(document: Document, subject: Subject, index: int, result: MetricResult, view: View) -> list[str]:
    """Add the rubrics of turn `index` as items. Return the keys of the rubrics that are not met."""
    problems: list[str] = []
    for place, rubric in enumerate(objects(result.details.get("rubrics"))):
        key = f"rubric/{result.name}/{index}/{place}"
        name = string(rubric.get("rubric_id"))
        # The number and the answer (`{"verdict", "rationale"}`) of each sample.
        given = [
            (count(reply.get("sample")), mapping(mapping(reply.get("verdict")).get(name)))
            for reply in replies(questions(result.details))
        ]
        opened = view.is_open(key)
        mine = overridden(subject, result.name, index + 1, "rubric", name)
        lines = [*_rubric(rubric, opened, view, mine), *(line for one in given if opened for line in _vote(*one, view))]
        question = Target("Judges", (question_key(result.name, index, 0),))
        document.add_item(key, lines, opens=bool(given), targets=(question,))
        if string(rubric.get("verdict")) != "yes":
            problems.append(key)
    return problems


def _rubric(rubric: dict[str, Any], opened: bool, view: View, mine: Line) -> Iterator[Line]:
    """Yield the verdict and the text of a rubric, then its votes and origin, then the reason."""
    verdict = string(rubric.get("verdict"))
    room = max(view.width - _GUTTER, 10)
    text = plain(string(rubric.get("text")).strip()) or "(no text)"
    name = one_line(string(rubric.get("rubric_id")), limit=100)
    lead = Text.assemble(" ", verdict_mark(verdict))
    strong = "" if verdict == "yes" else "strong"
    yield from hang_text(lead, Text.assemble((text, strong), mine), view.width, _GUTTER)
    votes = vote_words(rubric, verdict)
    origin = _ORIGINS.get(string(rubric.get("origin")), "")
    named: list[Line] = [Text.styled(name, "label")] if name != one_line(text, limit=100) else []
    parts = [*named, *votes, Text.styled(origin, "muted")]
    yield from hang(Text(), flow(parts, room), _GUTTER)
    reason = string(rubric.get("rationale")).strip()
    lines = wrap(Text.styled(plain(reason) or "no reason given", "muted"), room)
    yield from hang(Text(), lines if opened else shortened(lines, 4, room), _GUTTER)


def _vote(sample: int, vote: dict[str, Any], view: View) -> Iterator[Line]:
    word = string(vote.get("verdict")) or "missing"
    why = plain(string(vote.get("rationale")).strip())
    text = Text.assemble((f"vote {sample}  ", "label"), verdict_mark(word), f"  {why}")
    return hang_text(Text(), text, view.width, _GUTTER)


_SHOWN_ELSEWHERE = {
    "rows", "match_type", "ignore_args", "args_match", "other_match_types",
    "expected_marks", "actual_marks", "matched", "missing", "extra", "precision", "recall", "f",
    "checks", "figures", "differences", "more_differences", "accepted",
    "judge", "tally", "questions", "votes", "asked", "of", "split", "compared", "message",
    "rubrics", "unused", "texts", "share", "adk_score", "of_sentences",
    "explanation", "error", "seconds", "attempts", "cached", "turns", "lowest_turn",
    "stop", "starting_prompt", "conversation_plan", "plan", "user_persona", "persona",
}  # fmt: skip
"""Keys of details that the evidence shows, or that this pane shows in other words."""


def build(subject: Subject, view: View, *, prompts: bool = True) -> Document:
    """Return the whole pane. Without `prompts`, a full view leaves out the exact questions."""
    question_view = view if prompts else replace(view, full=False)
    document = Document()
    record = subject.record
    problems: list[str] = []
    if record is not None:
        own = record.custom_metrics
        for result in by_weight(list(record.metrics.values())):
            if result.status != "informational" or result.name in own:
                document.gap()
                problems += _add_criterion(document, subject, record, result, view, question_view)
        if not record.metrics:
            document.add(remark(_no_scores(record), view))
    add_simulated_user(document, subject, view, question_view)
    below = [*(_figures(record, view) if record is not None else ()), *_source(subject, view)]
    if below:
        document.gap()
        document.add(below)
    add_plugin_sections(document, "Judges", subject, view)
    document.opening_item = (document.item_named(problems[0]) if problems else None) or 0
    return document


def _no_scores(record: CaseRecord) -> str:
    if record.state == "queued":
        return "The case has not run yet."
    if not record.finished:
        return "No scores yet."
    return "No scores: the case ended before it could be judged." if record.error else "No scores."


def _add_criterion(
    document: Document, subject: Subject, record: CaseRecord, result: MetricResult, view: View, question_view: View
) -> list[str]:
    """Add a criterion with all details. Unless it passed or did not apply, return the keys of items with problems."""
    name = result.name
    found = list(results(record, name))
    several = len(found) > 1
    turns_have_reasons = several and any(turn.reason and turn.reason in result.reason for _, _, turn in found)
    # Rubrics and sentences below show the reasons, which the reason of the case only counts.
    listed = result.status in ("passed", "failed") and any(turn.details.get("rubrics") for _, _, turn in found)
    told = turns_have_reasons or listed or bool(result.details.get("differences"))
    key = f"criterion/{name}"
    opened = view.is_open(key)
    document.add_item(key, _head(record, result, view, opened=opened), opens=True)
    document.add(judge_lines(record, result, view))
    if result.reason and not told:
        style = "" if result.status in ("passed", "failed") else FACES[result.status].variable
        document.add(part("why", safe(result.reason, style), view))
    document.add(hang(label("cost"), flow(tally_words(mapping(result.details.get("tally"))), view.room), GUTTER))
    document.add(claims.score_lines(record, result, view))
    document.add(rubric_counts(result, view))
    inner = View(view.room, full=opened)
    document.add(under(Text(), _about(result, inner, explained=opened and question_view.full == view.full)))
    problems: list[str] = []
    for index, turn, judged in found:
        if several:
            document.add([heading(f"turn {index + 1}", view.width, _turn_ending(judged))])
        document.add(_turn_lines(turn, judged, record, view, inner, alone=not several))
        problems += claims.add_texts(document, subject, index, judged, view)
        problems += add_rubrics(document, subject, index, judged, view)
        brief = not (judged.details.get("texts") or judged.details.get("rubrics"))
        problems += add_questions(document, subject, judged, index, question_view, brief=brief)
    if found and questions(result.details):
        document.add([heading("whole case", view.width)])
    if stop := mapping(result.details.get("stop")):
        verdict = string(stop.get("verdict"))
        votes = flow([verdict_mark(verdict), *vote_words(stop, verdict)], view.room)
        document.add(under(label("end judged"), votes))
    problems += add_questions(document, subject, result, None, question_view, brief=True)
    return problems if result.status not in ("passed", "not_applicable") else []


def _head(record: CaseRecord, result: MetricResult, view: View, *, opened: bool) -> Iterator[Line]:
    """Yield a criterion with its score and tags: `✗ response_match_score  0.61 < 0.80  ◐ split`."""
    name = Text.assemble(glyph(result.status), (f" {one_line(result.name, limit=200)}", "strong"))
    parts = [name, score_line(result), *criterion_tags(record, result.name), Text("" if opened else "▸", "fold")]
    for index, line in enumerate(flow(parts, max(view.width - 3, 10), "  ")):
        yield Text.assemble("   " if index else " ", line)


def _turn_ending(result: MetricResult) -> Line:
    """Return the score of a turn with its majority vote: `✗ 0.00  ✗ invalid  ◐ split`."""
    score = Text.assemble(glyph(result.status), f" {score_text(result)}" if score_text(result) else "")
    leading = leading_vote(result.details)
    vote = verdict_mark(leading) if leading in VERDICTS else Text()
    split = mark(SPLIT) if votes_differ(result.details) else Text()
    return joined(filter(None, (score, vote, split)), "  ", "")


def _turn_lines(
    turn: Turn, result: MetricResult, record: CaseRecord, view: View, inner: View, *, alone: bool
) -> Iterator[Line]:
    """Yield the result of a criterion in one turn. `inner` is the view of its details, beside the gutter."""
    if is_shown_in(result.name, "simulator"):
        yield from under(label("user"), text_lines(message_text(turn.user), view.room, view, "user"))
        yield from under(label("verdict"), flow(message_words(result, record), view.room))
    else:
        yield from under(label("votes"), flow(vote_words(result.details, leading_vote(result.details)), view.room))
    if result.reason and not alone:
        yield from part("why", safe(result.reason), view)
    yield from _service(result, view)
    if inner.full or result.status != "passed":
        yield from under(Text(), _details(result, inner))


def _service(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the explanation or the error of Google's evaluation service, and its cost."""
    if explanation := string(result.details.get("explanation")):
        yield from part("service", safe(explanation), view)
    if fault := mapping(result.details.get("error")):
        message = f"{string(fault.get('kind'))} {string(fault.get('code'))}: {string(fault.get('message'))}"
        yield from part("error", safe(message, "status-error"), view)
    if "attempts" in result.details:
        costs = [Text.styled(text, "muted") for text in reply_cost([result.details])]
        yield from under(label("cost"), flow(costs, view.room))


def _about(result: MetricResult, view: View, *, explained: bool) -> Iterator[Line]:
    """Yield match types and details for the whole case. If `explained`, a description of the criterion comes first."""
    info = descriptions().get(result.name) if explained else None
    if info is not None:
        yield from wrap(Text.styled(f"{info.title}. {info.measures} {info.how_to_read}", "muted"), view.width)
    if match_type_words(result):
        yield from wrap(match_type_words(result), view.width)
    yield from _details(result, view)


def _details(result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the details of a result that no other part shows."""
    details = result.details
    figures = [
        Text.assemble((f"{word} ", "muted"), cut_score(value, 2, 2))
        for key, word in (("precision", "precision"), ("recall", "recall"), ("f", "F"))
        if isinstance(value := details.get(key), int | float)
    ]
    if figures:
        yield from flow(figures, view.width)
    for key, style in (("missing", "diff-missing"), ("extra", "diff-extra"), ("matched", "diff-same")):
        words = details.get(key)
        untold = not result.reason or "…" in result.reason  # The reason names the words if they are few.
        if isinstance(words, list) and words and (view.full or (key != "matched" and untold)):
            kept = words if view.full else words[:12]
            shown = "  ".join(one_line(str(word), limit=60) for word in kept)
            more = f"  … {len(words) - len(kept):,} more" if len(kept) < len(words) else ""
            yield from wrap(Text.assemble((f"{key}: ", "muted"), (shown, style), (more, "fold")), view.width)
    yield from _checks(details, view)
    yield from value_lines(details, view.width, view)
    rest = {key: value for key, value in details.items() if key not in _SHOWN_ELSEWHERE and value not in ([], {})}
    if rest:
        yield from _rest(rest, view)


def _checks(details: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Yield the conditions on an answer (`✗ contains "refund"`) and the limits (`✓ tokens 480 of 500`)."""
    for check in objects(details.get("checks")):
        kind, text = string(check.get("kind")), one_line(string(check.get("text")), limit=200)
        words = f'{"does not contain" if kind == "not_contains" else "contains"} "{text}"'
        words = f"matches {text}" if kind == "regex" else words
        yield from wrap(Text.assemble(_sign(check.get("met")), f" {words}"), view.width)
    for name, figure in mapping(details.get("figures")).items():
        used, limit = mapping(figure).get("used"), mapping(figure).get("limit")
        met = used <= limit if isinstance(used, int | float) and isinstance(limit, int | float) else None
        amounts = Text(f"{_simple(used)} of {_simple(limit)}")
        yield from wrap(Text.assemble(_sign(met), (f" {_name(name)} ", "muted"), amounts), view.width)


def _sign(met: object) -> Text:
    return glyph("passed" if met is True else "failed" if met is False else "not_evaluated")


def _rest(rest: dict[str, Any], view: View) -> Iterator[Line]:
    simple = {key: value for key, value in rest.items() if not isinstance(value, dict | list)}
    if simple:
        pairs = [Text.assemble((f"{_name(key)} ", "muted"), _simple(value)) for key, value in simple.items()]
        yield from wrap(joined(pairs), view.width)
    deep = {key: value for key, value in rest.items() if key not in simple}
    if deep and view.full:
        yield from pretty_lines(deep, view.width)
    elif deep:
        yield from wrap(Text.styled(f"… {', '.join(map(_name, deep))}", "fold"), view.width)


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
        yield from part("cost", Text(_cost(record)), view)
    own = record.custom_metrics
    results = [one for one in record.metrics.values() if one.status == "informational" and one.name not in own]
    words = [_figure_words(result, view) for result in results if result.score is not None]
    unknown = [one_line(result.name, limit=100) for result in results if result.score is None]
    words += [Text.styled(f"not reported: {', '.join(unknown)}", "muted")] if unknown else []
    yield from under(label("per turn"), (line for one in words for line in wrap(one, view.room)))


def _figure_words(result: MetricResult, view: View) -> Line:
    line = Text.assemble(f"{one_line(result.name, limit=100)} ", (score_text(result), "strong"))
    parts = {key: value for key, value in result.details.items() if isinstance(value, int | float)}
    if view.full or len(parts) < 5:
        for key, value in parts.items():
            line.append(f"  {_name(key)} {_simple(value)}", "muted")
    return line


def _cost(record: CaseRecord) -> str:
    usage = record.usage
    amounts = [f"{record.duration_seconds:.1f} s"]
    if usage.model_calls:
        amounts.append(counted(usage.model_calls, "model call"))
    if usage.input_tokens or usage.output_tokens:
        amounts.append(f"{counted(usage.input_tokens, 'token')} in, {usage.output_tokens:,} out")
    if usage.judge_calls or usage.judge_calls_cached:
        asked = counted(usage.judge_calls, "judge call")
        amounts.append(f"{asked}, {usage.judge_calls_cached:,} from the cache")
    return " · ".join(amounts)


def _source(subject: Subject, view: View) -> Iterator[Line]:
    changed = subject.record.planned.criteria_changed if subject.record is not None else ()
    if changed:
        yield from under(label("judged by"), [Text.assemble(mark(OTHER_CRITERIA), (" than in the file", "muted"))])
        for sentence in changed:
            yield from under(Text(), wrap(safe(sentence), view.room))
    if subject.entry is not None:
        if subject.entry.owned.rule == "location":
            yield from part("agent", safe(subject.entry.agent_reason), view)
        yield from criteria_part(subject.entry, view)
    elif subject.record is not None:
        yield from part("criteria", safe(subject.record.planned.criteria_source), view)
