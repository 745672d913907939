"""Passages of a text that need a label: the judge's sentences, and the parts of the text that they leave out.

A judge that splits a text may drop or reword parts of it. The text itself may even instruct it to. So each word of the
text, except markup, ends up in a passage: in a sentence that is in the text, or in a passage of the text's own words.
Matching only decides how a passage is marked, never whether it gets a label. It compares words (Unicode form NFKC,
lower case), so blanks, punctuation, Markdown and case do not matter.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from workbench.criteria.rouge_words import Word, rouge_words, words_with_offsets

Origin = Literal["judge", "reworded", "invented", "dropped", "added"]
"""Origin of a passage.

- `judge`: a sentence that is in the text
- `reworded`: the text's words for a sentence that the judge changed
- `invented`: a sentence that is not in the text
- `dropped`: a part of the text that is in no sentence
- `added`: a sentence that the judge labelled although the question did not contain it
"""
Place = Literal["fresh", "again", ""]
"""Place of a sentence in the text: not used by an earlier sentence, used before, or not found."""
_MARKUP = re.compile(
    r"^[ \t>]*(?:[-*+•]|\#+|[0-9]{1,2}[.)]|[A-Za-z][.)])(?=[ \t]+\S)"  # bullets, headings, numbering
    r"|\[[0-9]{1,2}\]"  # citations
    r"|^[ \t]*(?:```|~~~)[A-Za-z+#-]*[ \t]*$",  # fences
    re.MULTILINE,
)
_END = re.compile(r"""[.!?…]["'”’»)\]*_]*\s|[。！？]""")
_NO_END = re.compile(r"[A-Za-z]{1,2}|[0-9]+")
"""Words that a full stop may follow inside a sentence: `e.g.`, `Dr.`, `12. May`."""
_CLOSING = ".,;:!?…)]}”’»。、！？"
_UNIT = re.compile("[ \u00a0\u202f][€$£¥%°]+")
_MAX_KEY = 3
_MAX_PLACES = 64
"""Maximum places of a sentence, and passages with a common word, that are compared. This keeps the time linear."""


class Passage(NamedTuple):
    """A passage to label. `times` counts how often the judge returned it."""

    text: str
    origin: Origin
    times: int = 1


def passages(text: str, sentences: Sequence[str]) -> list[Passage]:
    """Return the judge's sentences in their order, then the passages of `text` that none of them covers.

    A sentence is returned at most as often as the text contains it, however often the judge repeats it.
    """
    coverage = _Coverage(words_with_offsets(_without_markup(text)))
    cut = [(sentence, _key(sentence)) for sentence in sentences]
    found = [coverage.cover(key) if key else _found_sign(text, sentence) for sentence, key in cut]
    known = {key for _, key in cut}
    runs = ((tuple(word.text for word in run), _shown(text, run)) for run in _runs(text, coverage))
    dropped = _Dropped([(key, shown) for key, shown in runs if key not in known])
    result: list[Passage] = []
    places: dict[tuple[str, ...], int] = {}
    for (sentence, key), place in zip(cut, found, strict=True):
        first = places.get(key)
        if first is not None and place != "fresh":
            result[first] = result[first]._replace(times=result[first].times + 1)
            continue
        own = None if place else dropped.take(key)
        if own is None:
            own = [Passage(sentence, "judge" if place else "invented")]
        if own:
            places.setdefault(key, len(result))
        result += own
    return [*result, *dropped.left()]


def _key(sentence: str) -> tuple[str, ...]:
    """Return the words by which a sentence is compared, or () for a sentence without words."""
    return tuple(rouge_words(_without_markup(sentence)))


def _found_sign(text: str, sentence: str) -> Place:
    return "again" if sentence.strip() in text else ""


def _without_markup(text: str) -> str:
    """Replace bullets, numbering, citations and fences by blanks, so that offsets stay the same."""
    return _MARKUP.sub(lambda match: " " * len(match[0]), text)


class _Coverage:
    """Record of which words of a text are in a sentence."""

    def __init__(self, placed: Sequence[Word]) -> None:
        self.placed = placed
        self.covered = bytearray(len(placed))
        self._words = tuple(word.text for word in placed)
        self._reached = 0
        self._places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for size in range(1, _MAX_KEY + 1):
            for start in range(len(self._words) - size + 1):
                self._places[self._words[start : start + size]].append(start)

    def cover(self, wanted: tuple[str, ...]) -> Place:
        """Mark the next uncovered place of a sentence, searching from the last match on, then from the start."""
        places = self._places.get(wanted[:_MAX_KEY], [])
        following = bisect_left(places, self._reached)
        near = (*places[following : following + _MAX_PLACES], *places[: min(following, _MAX_PLACES)])
        found = [start for start in near if self._words[start : start + len(wanted)] == wanted]
        start = next((start for start in found if not self.covered[start]), None)
        if start is None:
            return "again" if found else ""
        self._reached = start + len(wanted)
        self.covered[start : self._reached] = b"\1" * len(wanted)
        return "fresh"


class _Dropped:
    """Passages that no sentence contains word for word, as (words, text). Each can be taken once."""

    def __init__(self, dropped: Sequence[tuple[tuple[str, ...], str]]) -> None:
        self._counts = [Counter(words) for words, _ in dropped]
        self._texts = [text for _, text in dropped]
        self._taken = bytearray(len(dropped))
        self._holding: dict[str, list[int]] = defaultdict(list)
        for index, counts in enumerate(self._counts):
            for word in counts:
                self._holding[word].append(index)

    def take(self, wanted: tuple[str, ...]) -> list[Passage] | None:
        """Return the passages that a sentence rewords, without those already taken, or None if it rewords no passage.

        The sentence and the passage must share half of the words of one of them.
        """
        sentence = Counter(wanted)
        common: Counter[int] = Counter()
        for word, count in sentence.items():
            for index in self._holding.get(word, ())[:_MAX_PLACES]:
                common[index] += min(count, self._counts[index][word])
        close = [
            index
            for index, shared in common.items()
            if 2 * shared >= min(len(wanted), self._counts[index].total()) and shared > 0
        ]
        if not close:
            return None
        fresh = sorted(index for index in close if not self._taken[index])
        for index in fresh:
            self._taken[index] = 1
        return [Passage(self._texts[index], "reworded") for index in fresh]

    def left(self) -> Iterator[Passage]:
        """Yield the passages that no sentence rewords."""
        return (Passage(text, "dropped") for text, taken in zip(self._texts, self._taken, strict=True) if not taken)


def _runs(text: str, coverage: _Coverage) -> Iterator[list[Word]]:
    """Yield the words between sentences, split where a sentence seems to end."""
    run: list[Word] = []
    for word, covered in zip(coverage.placed, coverage.covered, strict=True):
        if run and (covered or _ends(text, run[-1], word)):
            yield run
            run = []
        if not covered:
            run.append(word)
    if run:
        yield run


def _ends(text: str, before: Word, after: Word) -> bool:
    """Return whether a sentence, a paragraph or a list item ends between two neighbouring words."""
    between = text[before.end : after.start]
    goes_on = text[after.start].islower()
    if "\n" in between:
        return not goes_on or between.count("\n") > 1 or _MARKUP.search(text[before.end : after.end]) is not None
    end = _END.search(between)
    if end is None:
        return False
    stop = between.strip() == "."
    return not (stop and (goes_on or _NO_END.fullmatch(before.text)))


def _shown(text: str, run: Sequence[Word]) -> str:
    """Return a run with the characters that belong to it: `-5 €!`, not `5`."""
    start, end = run[0].start, run[-1].end
    while start > 0 and not text[start - 1].isspace() and not text[start - 1].isalnum():
        start -= 1
    while end < len(text) and not text[end].isspace() and not text[end].isalnum():
        end += 1
    unit = _UNIT.match(text, end)
    end = unit.end() if unit else end
    return text[start:end].lstrip(_CLOSING)
