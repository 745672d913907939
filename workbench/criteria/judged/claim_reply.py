"""Readers of replies to the two questions of hallucinations_v1: the sentences of a text, and a label for each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from workbench.criteria.prompts.claims import LABELS, POSITIVE
from workbench.judges.base import without_thoughts

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
