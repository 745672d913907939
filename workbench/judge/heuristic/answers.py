"""Rules for final_response_match: does an answer say what the reference says?

Equal texts and texts with the same tokens in the same order are valid. A figure that differs, yes against no, and a
missing answer are invalid. Everything else is unclear.
"""

from dataclasses import dataclass

from workbench.judge.heuristic.figures import Figure
from workbench.judge.heuristic.texts import (
    Known,
    Token,
    bare,
    figures,
    leading,
    sentences,
    shown,
    tokens,
    turns,
    without_courtesy,
)

_LONGEST = 50_000


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of the rules. `holds` is None if they cannot decide."""

    holds: bool | None
    why: str


def compare(user: str, response: str, reference: str) -> Finding:
    """Compare an answer to `user` with the reference. The answer need not repeat what the question already says."""
    if len(user) + len(response) + len(reference) > _LONGEST:
        return Finding(None, "the texts are too long for rules")
    answered, expected = bare(response), bare(reference)
    if not expected or not answered:
        same = not expected and not answered
        return Finding(same, "both are empty" if same else "one of the two is empty")
    if answered == expected:
        return Finding(True, "the same text, but for case, blanks and punctuation")
    first_words = (leading(response), leading(reference))
    if None not in first_words and first_words[0] != first_words[1]:
        return Finding(False, "one begins with yes and the other with no")
    question = Known(tokens(user))
    return _by_figures(question, figures(response), figures(reference)) or _by_words(question, response, reference)


def _by_figures(question: Known, had: list[Figure], wanted: list[Figure]) -> Finding | None:
    given, expected = Known(had), Known(wanted)
    for figure in wanted:
        if figure in given or figure in question:
            continue
        others = [other for other in had if other.comparable(figure) and other not in question]
        measured = figure.kind != "amount" or figure.unit
        alone = measured and sum(other.comparable(figure) for other in wanted) == 1 == len(others)
        if alone and others[0] not in expected:
            return Finding(False, f"the answer has {others[0].text!r}, the reference {figure.text!r}")
        return Finding(None, f"the answer lacks {figure.text!r}")
    more = next((figure for figure in had if figure not in expected and figure not in question), None)
    return Finding(None, f"the reference does not have {more.text!r}") if more else None


def _by_words(question: Known, response: str, reference: str) -> Finding:
    wanted = [token for token in tokens(reference) if token not in question]
    if not wanted:
        return Finding(None, "the reference says nothing that the question does not")
    known, matched, at = Known(wanted), list[str](), 0
    for sentence in sentences(response):
        own = tokens(without_courtesy(sentence))
        if any(token in known for token in own):
            matched.append(sentence)
            at = _after(wanted, at, own)
        elif turns(sentence) or any(token not in question for token in own):
            return Finding(None, f"it also says {sentence!r}")
    if at < len(wanted):
        first = shown(wanted[at])
        return Finding(None, f"{first!r} is not in the answer, or in another place")
    more = [token for sentence in matched for token in tokens(without_courtesy(sentence))]
    more = [token for token in more if token not in question and token not in known]
    if more:
        return Finding(None, f"the reference does not have {shown(more[0])!r}")
    if [turn for sentence in matched for turn in turns(sentence)] != turns(reference):
        return Finding(None, "only one of them has a word such as not, only or before")
    return Finding(True, "all figures and words of the reference, in its order")


def _after(wanted: list[Token], at: int, own: list[Token]) -> int:
    """Return the number of wanted tokens found in this order, if the first `at` of them were found before."""
    for token in own:
        if at < len(wanted) and token in Known([wanted[at]]):
            at += 1
    return at
