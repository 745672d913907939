"""The two questions of hallucinations_v1 and their replies: the sentences of a text, and a label for each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.criteria.judged.evidence import as_json, blocks
from workbench.criteria.judged.passages import Origin
from workbench.criteria.judged.reply_text import (
    MAX_LENGTH,
    UnreadableError,
    as_text,
    first_present,
    first_word,
    json_objects,
    json_values,
    line_objects,
    normalised,
    values_outside_json,
)
from workbench.judges.base import Question, without_thoughts

SENTENCES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}

_SENTENCES_TASK = """\
Cut a text into its sentences, so that each can be checked by itself.

- Copy each sentence exactly as it stands, in the order of the text. Correct nothing, leave nothing out, add nothing.
- An item of a list, a row of a table, and a heading that says something are a sentence each. Leave out mere markup:
  bullets, numbering, rules, fences.
- Do not cut inside a sentence: abbreviations, decimal points, addresses and quotations stay whole.
- A greeting, a question and a courtesy are sentences too.

"""
_SENTENCES_REPLY = """
Reply with one JSON object and nothing else: {"sentences": ["first sentence", "second sentence"]}
"""


def sentences_question(text: str) -> Question:
    """Return the question which sentences a text has.

    Reply: `{"sentences": [str, …]}`, copied from the text, in its order.
    """
    return Question(
        "sentences", _SENTENCES_TASK + blocks([("text", text)]) + _SENTENCES_REPLY, SENTENCES_SCHEMA, {"text": text}
    )


POSITIVE = ("supported", "not_applicable")
LABELS = ("supported", "unsupported", "contradictory", "disputed", "not_applicable")

_CLAIM_KEYS = ("number", "rationale", "supporting_excerpt", "contradicting_excerpt", "label")
CLAIMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer", "description": "The number of the sentence."},
                    "rationale": {"type": "string", "description": "Why, in one sentence."},
                    "supporting_excerpt": {"type": "string", "description": "Copied from the context, or empty."},
                    "contradicting_excerpt": {"type": "string", "description": "Copied from the context, or empty."},
                    "label": {"type": "string", "enum": list(LABELS)},
                },
                "required": list(_CLAIM_KEYS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["claims"],
    "additionalProperties": False,
}

_CLAIMS_TASK = """\
You check whether an AI agent made things up. You get the context, which is all that the agent could know when it spoke,
and the numbered sentences of what it said. Give each sentence exactly one label:

- supported: the context says it, or it follows from the context by plain reading, counting or arithmetic.
- unsupported: it claims something that the context neither says nor denies.
- contradictory: the context says otherwise.
- disputed: one part of the context supports it and another part contradicts it.
- not_applicable: it claims nothing that could be true or false of the world: a greeting, thanks, a question, an offer,
  an announcement of what the agent is going to do, an apology, advice to ask somebody else.

Rules:
- Only the context counts. That you know something to be true is no support.
- A sentence with several claims is supported only if all of them are; if one is contradicted it is contradictory, else
  if one is unsupported it is unsupported.
- That the agent did something is supported by a tool call with a result that confirms it, not by a call that failed.
- What the user said supports that the user said it, wants it, or has it; not that it is so in the world.
- Instructions support what they state as fact about the agent and its domain.

"""
_CLAIMS_REPLY = """
Take the sentences one by one: first look for the passage, then decide. Copy the passage that supports a sentence, or
contradicts it, word for word from the context, as short as possible; leave it empty where there is none. Every number
appears exactly once. Reply with one JSON object and nothing else:
{"claims": [{"number": 1, "rationale": "why, in one sentence", "supporting_excerpt": "", "contradicting_excerpt": "",
"label": "one of the five labels"}]}
"""


def claims_question(text: str, sentences: Sequence[str], context: Sequence[dict[str, Any]]) -> Question:
    """Return the question whether the agent's knowledge supports each sentence of a text.

    Reply: `{"claims": [{"number": int, "rationale": str, "supporting_excerpt": str, "contradicting_excerpt": str,
    "label": "supported" | "unsupported" | "contradictory" | "disputed" | "not_applicable"}, …]}`, one claim for each
    sentence. `number` counts from 1. An excerpt is copied from the context, "" if there is none. `context` is a list of
    {"kind", "name", "text", "event", "call_id"}. `kind` is one of instructions, user, tools, grounding, said, call,
    result; `name` the agent or tool; `event` the index in the turn's `invocation_events`, or null; `text` is what the
    judge reads (JSON for tools, calls, results and grounding).
    """
    numbered = "\n".join(f"{number}. {as_json(sentence)}" for number, sentence in enumerate(sentences, 1))
    shown = blocks([*map(_piece, context), ("sentences to check", numbered)])
    data = {"text": text, "sentences": list(sentences), "context": list(context)}
    return Question("claims", _CLAIMS_TASK + shown + _CLAIMS_REPLY, CLAIMS_SCHEMA, data)


_TITLES = {
    "instructions": "context: instructions of the agent {name}",
    "user": "context: the user's message",
    "tools": "context: tools of the agent {name}",
    "grounding": "context: search results that {name} was grounded in",
    "said": "context: said by {name}",
    "call": "context: call of the tool {name}",
    "result": "context: result of the tool {name}",
}


def _piece(piece: dict[str, Any]) -> tuple[str, str]:
    """Return a piece as its own block: an agent's text must not look like the result of a tool."""
    return _TITLES[piece["kind"]].format(name=piece["name"] or "(without a name)"), piece["text"]


UNLABELLED = "unlabelled"
_TAGGED = re.compile(r"<sentence>(.*?)</sentence>", re.DOTALL | re.IGNORECASE)
_NUMBER = ("number", "sentence_number", "index", "id")
_SENTENCE = ("sentence", "text", "claim")
_LABEL = ("label", "verdict")
_REASONS = ("rationale", "reasoning", "explanation")
_SUPPORTING = ("supporting_excerpt", "supporting", "support")
_CONTRADICTING = ("contradicting_excerpt", "contradicting", "contradiction")
_LINE_KEYS = (*_NUMBER, *_SENTENCE, *_LABEL, *_REASONS, *_SUPPORTING, *_CONTRADICTING)
_NO_EXCERPT = ("", "none", "null", "n/a", "empty")


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence with its label: one of LABELS, or `unlabelled`."""

    sentence: str
    label: str = UNLABELLED
    rationale: str = ""
    supporting: str = ""
    contradicting: str = ""
    origin: Origin = "judge"
    times: int = 1

    @property
    def own(self) -> bool:
        """Whether the judge made the sentence up."""
        return self.origin in ("invented", "added")

    @property
    def counts(self) -> bool:
        """Whether it counts for the score. A passage that the judge dropped counts only if it claims something."""
        return self.origin != "dropped" or self.label != "not_applicable"

    @property
    def positive(self) -> bool:
        """Whether it counts as grounded."""
        return self.label in POSITIVE


def read_sentences(text: str) -> list[str]:
    """Return the sentences, or [] if the reply says that there are none.

    Raises:
        UnreadableError: The reply holds no list of sentences.
    """
    values = json_values(text)
    lists = [
        value.get("sentences") if isinstance(value, dict) else value
        for value in values
        if isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("sentences"), list))
    ]
    if lists:
        if len(lists) > 1:
            raise UnreadableError("the reply holds several lists of sentences")
        return [sentence for item in lists[0] or () if (sentence := as_text(_sentence(item)))]
    tagged = [sentence.strip() for sentence in _TAGGED.findall(without_thoughts(text[:MAX_LENGTH]))]
    if not tagged:
        raise UnreadableError("the reply holds no list of sentences")
    return [sentence for sentence in tagged if sentence]


def read_claims(text: str, sentences: Sequence[str]) -> list[Claim]:
    """Return one claim per sentence, in order, then the claims that the judge added.

    A sentence is `unlabelled` if the reply has no known label for it. If a sentence has several labels, a negative one
    counts.

    Raises:
        UnreadableError: The reply holds no claim at all, or labels beside those in its JSON.
    """
    entries = _labelled(json_objects(text, ("claims", "sentences", "results")))
    if entries and any(first_word(value) in LABELS for value in values_outside_json(text, _LABEL)):
        raise UnreadableError("the reply has labels inside and outside its JSON, and one may be a quotation")
    entries = entries or _labelled(line_objects(text, _LINE_KEYS))
    if not entries:
        raise UnreadableError("the reply has no labels")
    claims = [Claim(sentence) for sentence in sentences]
    places = {normalised(sentence): index for index, sentence in reversed(list(enumerate(sentences)))}
    added = []
    for entry in entries:
        label = _label(first_present(entry, _LABEL))
        place = _place(entry, places, len(sentences))
        if label == UNLABELLED:
            if place is not None and claims[place].label == UNLABELLED:
                claims[place] = _claim(sentences[place], label, entry)
            continue
        if place is None:
            sentence = as_text(first_present(entry, _SENTENCE)) or "(not a sentence of the text)"
            added.append(_claim(sentence, label, entry, "added"))
        elif claims[place].label == UNLABELLED or claims[place].positive:
            claims[place] = _claim(sentences[place], label, entry)
    return [*claims, *added]


def _labelled(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if first_present(entry, _LABEL) is not None]


def _sentence(item: Any) -> Any:
    return first_present(item, _SENTENCE) if isinstance(item, dict) else item


def _label(value: Any) -> str:
    word = re.sub(r"[\s-]+", "_", normalised(value)) if isinstance(value, str) else ""
    return word if word in LABELS else UNLABELLED


def _place(entry: dict[str, Any], places: Mapping[str, int], count: int) -> int | None:
    """Return the index of the sentence that an entry means: by its number, else by its words."""
    number = first_present(entry, _NUMBER)
    if isinstance(number, str):
        number = int(number.strip(" .#")) if re.fullmatch(r"\s*#?[0-9]{1,6}\.?\s*", number) else None
    if isinstance(number, int) and not isinstance(number, bool):
        return number - 1 if 1 <= number <= count else None
    words = normalised(as_text(first_present(entry, _SENTENCE)))
    return places.get(words) if words else None


def _claim(sentence: str, label: str, entry: dict[str, Any], origin: Origin = "judge") -> Claim:
    return Claim(
        sentence,
        label,
        as_text(first_present(entry, _REASONS)),
        _excerpt(first_present(entry, _SUPPORTING)),
        _excerpt(first_present(entry, _CONTRADICTING)),
        origin,
    )


def _excerpt(value: Any) -> str:
    text = as_text(value)
    return "" if text.lower() in _NO_EXCERPT else text
