"""hallucinations_v1: does the agent's knowledge support what it said?

As in ADK, each text needs two questions. The first splits it into sentences. The second labels each sentence against
the context (instructions, the user's message, tools, calls, results, grounding). The judged texts of a turn are the
final answer and, with `evaluate_intermediate_nl_responses`, each text of its events. A text scores the share of its
sentences that are supported or not applicable, a turn the mean of its texts, the case the mean of its turns (exact,
rounded once at the end). `num_samples` has no effect. A text that could not be split, or a sentence without a label,
makes the criterion an error. If the judge finds no sentence in a text, the text is left out, but at least one text of
the turn must have some.

A judge may drop parts of a text, and the text may tell it to. So a passage that is in none of the judge's sentences is
labelled too (`passages`). It counts unless it claims nothing. `adk_score` is the score without those passages.

Details of a turn: `texts` [{"author", "step", "final", "text", "score", "adk_score", "unread", "sentences": [{"text",
"label", "rationale", "supporting", "contradicting", "source", "added", "origin", "counts"}]}], `share`, `adk_score`,
`asked`, `of`, `split`, `questions`. `step` is the index of the event, or null for the final answer; `origin` is a
`claim_questions.Origin`; `added` is true for a sentence that the judge made up. Details of the case: `judge`, `share`,
`adk_score`, `of_sentences`.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.criteria.base import Bench, Scored, ScoreRequest, require_same_length, unscored_result
from workbench.criteria.description import read_options
from workbench.criteria.judged.claim_questions import (
    UNLABELLED,
    Claim,
    claims_question,
    passages,
    read_claims,
    read_sentences,
    sentences_question,
)
from workbench.criteria.judged.descriptions import HallucinationOptions
from workbench.criteria.judged.evidence import agents, answer_text, data_text, speaker, user_text
from workbench.criteria.judged.voting import (
    MAX_TEXT,
    ask_once,
    case_result,
    exact_mean,
    first_failure,
    judged_result,
)
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation, content_text, recorded_events
from workbench.judges.base import Judge
from workbench.text.counting import counted, cut_score
from workbench.text.json_values import parts_of

Piece = dict[str, Any]
"""A piece of what an agent could know when it wrote a text (see `claim_questions.claims_question`)."""
_SEARCHED = ("result", "grounding", "said", "user", "call", "instructions", "tools")
"""Kinds of pieces in the order in which they are searched for an excerpt."""
_WORD = re.compile(r"[^\W_]+")
_ESCAPE = re.compile(r"\\[nrt]")
_GAP = re.compile(r"\.\.\.|…")


def context_of(turn: Invocation, before: int | None = None) -> list[Piece]:
    """Return what the agent could know when it wrote a text of the turn, as pieces of context.

    `before` is the index of the event with the text. Only earlier events count, and the grounding of this one. None
    means the final answer, which comes after all events.
    """
    recorded = recorded_events(turn) or []
    happened = recorded if before is None else recorded[:before]
    grounded = recorded if before is None else recorded[: before + 1]
    pieces = [
        _piece("instructions", name, agent["instructions"])
        for name, agent in agents(turn).items()
        if agent.get("instructions")
    ]
    pieces.append(_piece("user", "", user_text(turn)))
    pieces += [
        _piece("tools", name, data_text(agent["tool_declarations"]))
        for name, agent in agents(turn).items()
        if agent.get("tool_declarations")
    ]
    pieces += [
        _piece("grounding", event.get("author") or "", data_text(event["grounding_metadata"]), index)
        for index, event in enumerate(grounded)
        if event.get("grounding_metadata")
    ]
    pieces += [piece for index, event in enumerate(happened) for piece in _happened(event, index)]
    return [*pieces, *_written(turn)]


class Sources:
    """Pieces that are searched for an excerpt. Only words are compared, because judges change the rest."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        ordered = sorted(pieces, key=lambda piece: _SEARCHED.index(piece["kind"]))
        self._pieces = [(piece, f" {_words(piece['text'])} ") for piece in ordered]

    def find(self, excerpt: str) -> dict[str, Any] | None:
        """Return the piece that contains the excerpt, without its text, or None if there is none."""
        wanted = max((_words(part) for part in _GAP.split(excerpt)), key=len)
        if not wanted:
            return None
        found = self._holding(f" {wanted} ") or (self._holding(wanted) if len(wanted) >= 4 else None)
        return None if found is None else {key: found[key] for key in ("kind", "name", "event", "call_id")}

    def _holding(self, words: str) -> Piece | None:
        return next((piece for piece, text in self._pieces if words in text), None)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(_ESCAPE.sub(" ", text).lower()))


def _piece(kind: str, name: str, text: str, event: int | None = None, call_id: str | None = None) -> Piece:
    return {"kind": kind, "name": name, "text": text, "event": event, "call_id": call_id}


def _happened(event: dict[str, Any], index: int) -> Iterator[Piece]:
    for part in parts_of(event.get("content")):
        if part.get("text"):
            yield _piece("said", event.get("author") or "", part["text"], index)
        for key, kind, content in (("function_call", "call", "args"), ("function_response", "result", "response")):
            if part.get(key) is not None:
                inner = part[key]
                yield _piece(kind, inner.get("name") or "", data_text(inner.get(content)), index, inner.get("id"))


def _written(turn: Invocation) -> Iterator[Piece]:
    """Yield the pieces of a hand-written turn."""
    data = turn.get("intermediate_data") or {}
    for call in data.get("tool_uses") or ():
        yield _piece("call", call.get("name") or "", data_text(call.get("args")), None, call.get("id"))
    for response in data.get("tool_responses") or ():
        text = data_text(response.get("response"))
        yield _piece("result", response.get("name") or "", text, None, response.get("id"))
    for author, parts in data.get("intermediate_responses") or ():
        yield _piece("said", author, content_text({"parts": parts}))


_NO_SENTENCE = "the judge found no sentence in it"


class _Text(NamedTuple):
    author: str
    step: int | None
    text: str


@dataclass(frozen=True)
class _Judged:
    """A text with its claims. `unread` says why a part of it has no label, or is ""."""

    text: _Text
    context: Sequence[Piece]
    claims: Sequence[Claim]
    unread: str
    questions: list[dict[str, Any]]

    @property
    def score(self) -> float | None:
        return _share([claim for claim in self.claims if claim.label != UNLABELLED])

    @property
    def adk_score(self) -> float | None:
        """Score of the same labels in ADK's evaluator, which never sees a passage that the judge dropped."""
        known = [claim for claim in self.claims if claim.label != UNLABELLED and claim.origin != "dropped"]
        times = sum(claim.times for claim in known)
        return sum(claim.times * claim.positive for claim in known) / times if times else None


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge every sentence of each turn. The score is the mean of the turns.

    Raises:
        NotScorableError: The reference has a different length, or an option is refused.
        NotAvailableError: The judge cannot be used here.
    """
    criterion = request.criterion
    require_same_length(request)
    options = read_options(HallucinationOptions, criterion)
    intermediate = options.evaluate_intermediate_nl_responses
    texts = [_texts(turn, intermediate=intermediate) for turn in request.actual]
    silent = unscored_result(criterion, "not_applicable", "the agent said nothing")
    if not any(texts):
        return case_result(criterion, [silent] * len(texts), None, "", {})
    judge = bench.judge(options.judge_model_options.as_judge_options())
    judged = await asyncio.gather(
        *(
            asyncio.gather(*(_judge_text(judge, turn, text) for text in own))
            for turn, own in zip(request.actual, texts, strict=True)
        )
    )
    turns = [_turn(criterion, own) if own else silent for own in judged]
    claims = [claim for own in judged for text in own for claim in text.claims]
    adk_score = exact_mean([exact_mean([text.adk_score for text in own]) for own in judged])
    details = {
        "judge": judge.identity.as_json(),
        "share": _share(claims),
        "adk_score": adk_score,
        "of_sentences": sum(claim.counts for claim in claims),
    }
    overall = exact_mean([turn.score for turn in turns])
    reason = _remark(claims, adk_score) + first_failure(turns, "all sentences are supported, or need no support")
    return case_result(criterion, turns, overall, reason, details)


def _texts(turn: Invocation, *, intermediate: bool) -> list[_Text]:
    found = []
    for step, event in enumerate(recorded_events(turn) or () if intermediate else ()):
        parts = parts_of(event.get("content"))
        found += [_Text(event.get("author") or "", step, part["text"]) for part in parts if part.get("text")]
    final = answer_text(turn)
    return [*found, _Text(speaker(turn), None, final)] if final else found


async def _judge_text(judge: Judge, turn: Invocation, text: _Text) -> _Judged:
    context = context_of(turn, text.step)
    cut = await ask_once(judge, sentences_question(text.text), read_sentences)
    questions = [cut.record(judge, lambda sentences: sentences)]
    if not cut.answers:
        return _Judged(text, context, [], cut.unread, questions)
    if len(text.text) > 50_000:  # Long texts take seconds per megabyte.
        found = await asyncio.to_thread(passages, text.text, cut.answers[0])
    else:
        found = passages(text.text, cut.answers[0])
    if not found:
        return _Judged(text, context, [], "", questions)
    sentences = [passage.text for passage in found]
    question = claims_question(text.text, sentences, context)
    labelled = await ask_once(judge, question, lambda reply: read_claims(reply, sentences))
    questions.append(labelled.record(judge, lambda claims: [claim.label for claim in claims]))
    claims = labelled.answers[0] if labelled.answers else list(map(Claim, sentences))
    pairs = zip(claims, found, strict=False)
    marked = [replace(claim, origin=passage.origin, times=passage.times) for claim, passage in pairs]
    claims = [*marked, *claims[len(found) :]]  # Claims that the judge added come last.
    unlabelled = sum(claim.label == UNLABELLED for claim in claims)
    if unlabelled and labelled.answers:
        judge.forget(question)
    problem = f"{unlabelled} of {len(found)} sentences have no label" if unlabelled else ""
    unread = labelled.unread or ": ".join(filter(None, (problem, problem and labelled.cut)))
    return _Judged(text, context, claims, unread, questions)


def _turn(criterion: Criterion, judged: Sequence[_Judged]) -> MetricResult:
    overall = exact_mean([text.score for text in judged])
    claims = [claim for text in judged for claim in text.claims]
    details = {
        "texts": [_text_details(text) for text in judged],
        "share": _share(claims),
        "adk_score": exact_mean([text.adk_score for text in judged]),
        "asked": 1,
        "of": 1,
        "split": False,
        "questions": [question for text in judged for question in text.questions],
    }
    counted = any(claim.counts for claim in claims)
    unread = next((text.unread for text in judged if text.unread), "" if counted else _NO_SENTENCE)
    reason = unread or _reason(claims)
    return judged_result(criterion, overall, reason, details, unjudged=bool(unread))


def _reason(claims: Sequence[Claim]) -> str:
    """Return how many sentences are grounded, and the first sentence that is not."""
    scored = [claim for claim in claims if claim.counts]
    wrong = [claim for claim in scored if not claim.positive]
    verb = "is" if len(scored) == 1 else "are"
    summary = f"{len(scored) - len(wrong)} of {counted(len(scored), 'sentence')} {verb} grounded"
    if not wrong:
        return summary
    dropped = ", left out by the judge" if wrong[0].origin == "dropped" else ""
    rationale = f" ({wrong[0].rationale})" if wrong[0].rationale else ""
    return f"{summary}; {wrong[0].label}{dropped}: {wrong[0].sentence}{rationale}"


def _remark(claims: Sequence[Claim], adk_score: float | None) -> str:
    """Return what the judge left out, repeated or added, ending with "; ", or "" if it kept to the text.

    After the first two comes ADK's score, and after the added sentences the score without them.
    """
    dropped = sum(claim.origin == "dropped" and claim.counts for claim in claims)
    repeated = sum(claim.times > 1 for claim in claims)
    own = sum(claim.own for claim in claims)
    actions = [f"left out {counted(dropped, 'passage')}"] if dropped else []
    actions += [f"repeated {counted(repeated, 'sentence')}"] if repeated else []
    figure = "no score" if adk_score is None else cut_score(adk_score, least=2)
    remarks = [f"the judge {', '.join(actions)} (ADK's score: {figure})"] if actions else []
    if own:
        without = _share([claim for claim in claims if not claim.own])
        rest = "no score" if without is None else cut_score(without, least=2)
        remarks += [f"the judge added {counted(own, 'sentence')} (score without: {rest})"]
    return "".join(f"{each}; " for each in remarks)


def _text_details(judged: _Judged) -> dict[str, Any]:
    sources = Sources(judged.context)
    return {
        "author": judged.text.author,
        "step": judged.text.step,
        "final": judged.text.step is None,
        "text": judged.text.text,
        "score": judged.score,
        "adk_score": judged.adk_score,
        "unread": judged.unread or ("" if judged.claims else _NO_SENTENCE),
        "sentences": [_sentence_details(claim, sources) for claim in judged.claims],
    }


def _sentence_details(claim: Claim, sources: Sources) -> dict[str, Any]:
    excerpts = (claim.contradicting, claim.supporting)
    if claim.positive:
        excerpts = (claim.supporting, claim.contradicting)
    found = (sources.find(excerpt) for excerpt in excerpts if excerpt)
    return {
        "text": claim.sentence,
        "label": claim.label,
        "rationale": claim.rationale[:MAX_TEXT],
        "supporting": claim.supporting[:MAX_TEXT],
        "contradicting": claim.contradicting[:MAX_TEXT],
        "source": next((source for source in found if source), None),
        "added": claim.own,
        "origin": claim.origin,
        "counts": claim.counts,
    }


def _share(claims: Sequence[Claim]) -> float | None:
    counted = [claim for claim in claims if claim.counts]
    return sum(claim.positive for claim in counted) / len(counted) if counted else None
