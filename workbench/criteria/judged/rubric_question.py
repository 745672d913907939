"""Rubrics of a turn, the question about them, and one vote for each rubric that a reply answers.

The rules are ADK's. A criterion uses the rubrics of cases and turns that have its type. Those without a type are not
used. Rubrics of the config need no type. No id may be used twice.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from workbench.criteria.base import NotScorableError, ScoreRequest
from workbench.criteria.judged.evidence import as_json, blocks
from workbench.criteria.judged.voting import (
    UnreadableError,
    as_text,
    first_present,
    first_word,
    json_objects,
    line_objects,
    nameless_lines,
    normalised,
    object_schema,
    values_outside_json,
)
from workbench.criteria.registry import rubric_types
from workbench.files.schema import Rubric as RubricSchema
from workbench.files.schema import adapter
from workbench.judges.base import Question

_VERDICT_SCHEMA = object_schema(
    {
        "id": {"type": "string", "description": "The id of the rubric, copied."},
        "rationale": {"type": "string", "description": "Why, with the evidence, in a few sentences."},
        "verdict": {"type": "string", "enum": ["yes", "no", "unclear"]},
    }
)
SCHEMA = object_schema({"verdicts": {"type": "array", "items": _VERDICT_SCHEMA}})

_ANSWER = """\
You check the final answer that an AI agent gave to a user. You get the rubrics, each a property that the answer should
have, and what happened in this turn. Decide for each rubric whether the answer has the property.

- Evidence is what tools returned and what grounding (search results attached to the answer) says. That the answer
  claims something, or that it sounds right, is no evidence that it is right; neither is what you know yourself.
- Instructions and tool declarations tell what the agent should do and could do. They do not show what it did.
- Where a rubric asks for something correct, check it against the evidence: without evidence for it, the verdict is no.
"""
_TOOLS = """\
You check how an AI agent used its tools in one turn. You get the rubrics, each a property that the tool calls should
have, the declarations of the tools, the user's message, and the calls in their order with what came back. Decide for
each rubric whether the calls have the property.

- Evidence is the list of calls and results. A call that is not in the list was not made; one without a result did not
  return. What a tool could do does not show that it was used.
- Look at names, arguments, order and number of calls, and at how later calls use earlier results.
"""
_CONVERSATION = """\
You check how an AI agent worked through a whole conversation. You get the rubrics, each a property that its conduct
should have, its instructions and tools, and the conversation from the first message to the last answer, with tool calls
and results in their order. Decide for each rubric whether the conversation has the property.

- Evidence is what happened: the messages, the calls, the results. That the agent says it did something is no evidence
  without the call and its result.
- Judge the conversation as a whole: a slip that was put right later counts only if the rubric asks for more.
"""
_COMMON = """\
- Judge each rubric for itself, word by word, and by nothing that it does not say.

The verdicts:
- yes: the property is there, or the rubric does not apply here, such as one with a condition that does not occur.
- no: the property is missing, or is there in part only.
- unclear: what you see does not let you decide. Do not use it for what is merely difficult.

"""
_REPLY = """
For each rubric, first name the evidence, then decide. Give every id exactly once. Reply with one JSON object and
nothing else:
{"verdicts": [{"id": "the rubric's id", "rationale": "why, with the evidence", "verdict": "yes", "no" or "unclear"}]}
"""


def rubrics_question(data: Mapping[str, Any]) -> Question:
    """Return the question that asks whether an answer, a turn's tool calls, or a conversation has each property.

    Reply: `{"verdicts": [{"id": str, "rationale": str, "verdict": "yes" | "no" | "unclear"}, …]}`, one for each rubric.
    Data: `{"rubrics": [{"id", "text"}], "user": str, "answer": str | null, "instructions": str, "tools": {agent:
    [declaration, …]}, "steps": [{"call": {"name", "args"}, "response": any | null}], "grounding": [metadata, …],
    "conversation": [{"user": str, "events": [{"author", "text"} | {"author", "call": {"name", "args"}} | {"author",
    "result": {"name", "response"}}], "answer": {"author", "text"}}] | null}`. `conversation` is set if the whole
    conversation is judged, `answer` if a turn's answer is. If both are null, the question is about the tool calls in
    `steps`.
    """
    pieces: tuple[str, ...]
    if data["conversation"] is not None:
        task, pieces = _CONVERSATION, ("instructions", "tools", "conversation")
    elif data["answer"] is not None:
        task, pieces = _ANSWER, ("instructions", "tools", "user's message", "tool calls", "grounding", "final answer")
    else:
        task, pieces = _TOOLS, ("tools", "user's message", "tool calls")
    texts = _texts(data)
    shown = blocks([("rubrics", as_json(data["rubrics"])), *((name, texts[name]) for name in pieces)])
    return Question("rubrics", task + _COMMON + shown + _REPLY, SCHEMA, data)


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        "instructions": data["instructions"],
        "tools": as_json(data["tools"]) if data["tools"] else "",
        "user's message": data["user"],
        "tool calls": as_json(data["steps"]) if data["steps"] else "",
        "grounding": as_json(data["grounding"]) if data["grounding"] else "",
        "final answer": data["answer"] or "",
        "conversation": as_json(data["conversation"]) if data["conversation"] else "",
    }


Origin: TypeAlias = Literal["config", "case", "turn"]


@dataclass(frozen=True, slots=True)
class Rubric:
    """One property that the judge checks."""

    id: str
    text: str
    origin: Origin


def rubrics_by_turn(request: ScoreRequest, kind: str) -> list[tuple[Rubric, ...]]:
    """Return the rubrics that each turn is judged by: those of the config, and those of type `kind`.

    Raises:
        NotScorableError: A turn has an id twice, or the config's rubrics are invalid.
    """
    criterion = request.criterion
    try:
        read = adapter(list[RubricSchema]).validate_python(criterion.options.get("rubrics") or [])
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise NotScorableError(f"{criterion.name}: rubrics.{place}: {fault['msg']}") from error
    configured = [_rubric(rubric, "config") for rubric in read]
    found = []
    for index, turn in enumerate(request.actual):
        own = [("turn", rubric) for rubric in turn.get("rubrics") or ()]
        own += [("case", rubric) for rubric in request.rubrics]
        if request.expected is not None:
            own += [("turn", rubric) for rubric in request.expected[index].get("rubrics") or ()]
        where = f"turn {index + 1}"
        # ADK refuses an id used twice in a turn, whatever the types.
        _refuse_twice((rubric["rubric_id"] for _, rubric in own), where)
        typed = [_rubric(rubric, origin) for origin, rubric in own if rubric.get("type") == kind]
        rubrics = (*configured, *typed)
        _refuse_twice((rubric.id for rubric in rubrics), where)
        found.append(rubrics)
    return found


def untyped_ids(request: ScoreRequest) -> list[str]:
    """Return the ids of case and turn rubrics that no criterion uses, because they have no type of a criterion."""
    types = rubric_types().values()
    turns = (*request.actual, *(request.expected or ()))
    every = (*request.rubrics, *(rubric for turn in turns for rubric in turn.get("rubrics") or ()))
    return list(dict.fromkeys(rubric["rubric_id"] for rubric in every if rubric.get("type") not in types))


def _rubric(rubric: dict[str, Any], origin: Any) -> Rubric:
    content = rubric.get("rubric_content") or {}
    text = content.get("text_property") or rubric.get("description") or rubric["rubric_id"]
    return Rubric(rubric["rubric_id"], text, origin)


def _refuse_twice(ids: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise NotScorableError(f"{where} has two rubrics with the id {each}")
        seen.add(each)


RubricVerdict: TypeAlias = Literal["yes", "no", "unclear"]
_ID = ("id", "rubric_id", "rubricId")
_TEXT = ("property", "text", "rubric")
_REASONS = ("rationale", "reasoning", "explanation", "reason")
_VERDICT = ("verdict", "answer")
_WORDS: dict[str, RubricVerdict] = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}


@dataclass(frozen=True, slots=True)
class RubricVote:
    """Vote of one sample on one rubric."""

    verdict: RubricVerdict
    rationale: str = ""


def read_votes(text: str, rubrics: Sequence[Rubric]) -> dict[str, RubricVote]:
    """Map rubric ids to votes, in the order of the rubrics, for the rubrics that the reply answers.

    A rubric is found by its id or by its text. If one reply answers a rubric several times, the majority of these
    answers is the reply's one vote (a tie is no). Entries without a verdict are left out.

    Raises:
        UnreadableError: The reply holds no entry at all, verdicts beside those in its JSON or in lines without a
            rubric, or is too long.
    """
    objects = json_objects(text, ("verdicts", "rubrics", "results"))
    entries = _spread(objects, rubrics)
    names = [re.escape(rubric.id) for rubric in rubrics if entries != objects]
    if not any(first_present(entry, _VERDICT) is not None for entry in entries):
        # JSON without a verdict may be a quotation in a reply that is written as lines.
        lines = line_objects(text, (*_ID, *_TEXT, *_REASONS, *_VERDICT))
        if nameless_lines(lines, (*_ID, *_TEXT), _VERDICT):
            raise UnreadableError("the reply has a verdict without a rubric, so others may be of another rubric")
        entries = lines or entries
    elif any(first_word(value) in _WORDS for value in values_outside_json(text, (*_VERDICT, *names))):
        raise UnreadableError("the reply has verdicts inside and outside its JSON, and one may be a quotation")
    if not entries:
        raise UnreadableError("the reply has no verdicts")
    given: dict[str, list[RubricVote]] = {}
    for entry in entries:
        rubric, verdict = _which(entry, rubrics), first_present(entry, _VERDICT)
        if rubric is not None and verdict is not None:
            vote = RubricVote(_WORDS.get(first_word(verdict), "unclear"), as_text(first_present(entry, _REASONS)))
            given.setdefault(rubric.id, []).append(vote)
    return {rubric.id: _one(given[rubric.id]) for rubric in rubrics if rubric.id in given}


def _spread(entries: list[dict[str, Any]], rubrics: Sequence[Rubric]) -> list[dict[str, Any]]:
    """Return the entries, with `{"r1": "yes", "r2": {"verdict": "no"}}` split into one entry per rubric."""
    ids = {rubric.id for rubric in rubrics}
    spread = []
    for entry in entries:
        if first_present(entry, _VERDICT) is not None or not ids & entry.keys():
            spread.append(entry)
            continue
        for key in ids & entry.keys():
            value = entry[key]
            spread.append({**value, "id": key} if isinstance(value, dict) else {"id": key, "verdict": value})
    return spread


def _which(entry: dict[str, Any], rubrics: Sequence[Rubric]) -> Rubric | None:
    named, text = as_text(first_present(entry, _ID)), normalised(as_text(first_present(entry, _TEXT)))
    exact = next((rubric for rubric in rubrics if rubric.id == named), None)
    near = next((rubric for rubric in rubrics if named and normalised(rubric.id) == normalised(named)), None)
    by_text = [rubric for rubric in rubrics if text and normalised(rubric.text) == text]
    return exact or near or (by_text[0] if len(by_text) == 1 else None)


def _one(votes: list[RubricVote]) -> RubricVote:
    yes = [vote for vote in votes if vote.verdict == "yes"]
    no = [vote for vote in votes if vote.verdict == "no"]
    if not yes and not no:
        return votes[0]
    return yes[0] if len(yes) > len(no) else no[0] if no else yes[0]
