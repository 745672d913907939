"""Rules for rubrics about tool calls: which, in which order, how often, with which arguments."""

import re

from workbench.judge.heuristic.quantities import Known, quantities
from workbench.judge.heuristic.rubric_text import Finding, Rule
from workbench.judge.heuristic.situation import Call, Situation
from workbench.judge.heuristic.words import content_words, plain

_BEFORE = re.compile(r"(.+?)\b(?:before|prior to|bevor|antes de|avant)\b(.+)")
_AFTER = re.compile(r"(.+?)\b(?:only after|after)\b(.+)")
_CALLS = re.compile(
    r"\b(?:calls?|called|calling|invok\w+|uses?|used|using|runs?|makes? a call|ruft|aufgerufen|tools?|llama)\b"
    r"|\bappelle\b|呼び出|使"
)
_COUNT = re.compile(
    r"\b(?P<limit>exactly|only|just|at most|no more than|not more than|at least|more than|fewer than)?\s?"
    r"(?P<number>once|twice|one|a single|two|three|four|five|\d+)\b(?:\s(?:times?|tool calls?|calls?))?"
)
_ANY_TOOL = re.compile(r"\btool calls?\b|\bcalls? (?:to )?tools?\b|\bany tools?\b|\bno tools?\b|\ba tool\b|\btools\b")
_WITH = re.compile(r"\b(?:with|using|for|mit|con|avec)\b(.+)")
_USERS = re.compile(
    r"\b(?:user|customer|guest|caller)\b.*\b(?:named?|gave|given|mention\w*|said|asked|provided|states?)\b"
)
_LOOKUP = frozenset(content_words("find look search check get fetch retrieve query lookup read list verify track"))
_NUMBERS = {"once": 1, "one": 1, "a single": 1, "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5}


def order(rubric: str, happened: Situation) -> Finding | None:
    """One call before another one."""
    match, swapped = _BEFORE.search(rubric), False
    if match is None:
        match, swapped = _AFTER.search(rubric), True
    if match is None or not happened.calls:
        return None
    earlier, later = (match[2], match[1]) if swapped else (match[1], match[2])
    first, second = _where(earlier, happened), _where(later, happened)
    if not second:
        return (
            Finding(None, f"no call fits {later.strip()!r}")
            if not first
            else Finding(True, "only the first was called")
        )
    name = happened.calls[second[0]].name
    first = [at for at in first if at not in second] or first
    if first and first[0] < second[0]:
        return Finding(True, f"{happened.calls[first[0]].name} comes before {name}")
    if first or second[0] == 0:
        return Finding(False, f"{name} comes first")
    return Finding(None, f"no call fits {earlier.strip()!r}")


def arguments(rubric: str, happened: Situation) -> Finding | None:
    """A call of a named tool whose arguments hold what the rubric says."""
    match = _WITH.search(rubric)
    tools = _named(rubric, happened)
    if match is None or not tools:
        return None
    calls = [call for call in happened.calls if call.name in tools]
    wanted = quantities(match[1])
    if wanted:
        for call in calls:
            given = Known(quantities(_values(call)))
            if all(quantity in given for quantity in wanted):
                return Finding(True, f"{call.name} was called with {wanted[0].text!r}")
        return Finding(False, f"no call of {tools[0]} has {wanted[0].text!r}")
    if _USERS.search(match[1]):
        said = Known(quantities(happened.user))
        for call in calls:
            strange = [
                quantity for quantity in quantities(_values(call)) if quantity.kind == "id" and quantity not in said
            ]
            if strange:
                return Finding(False, f"{call.name} was called with {strange[0].text!r}, which the user did not name")
        return Finding(True, "the arguments are the user's") if calls else Finding(False, f"{tools[0]} was not called")
    return None


def count(rubric: str, happened: Situation) -> Finding | None:
    """How often a tool, or any, was called."""
    match = _COUNT.search(rubric)
    if match is None or not (match["limit"] or match["number"] in ("once", "twice")):
        return None
    tools = _named(rubric, happened)
    if not tools and not _ANY_TOOL.search(rubric):
        return None
    made = len([call for call in happened.calls if not tools or call.name in tools])
    wanted = _NUMBERS.get(match["number"]) or int(match["number"])
    limit = match["limit"] or "exactly"
    holds = {
        "at most": made <= wanted,
        "no more than": made <= wanted,
        "not more than": made <= wanted,
        "fewer than": made < wanted,
        "at least": made >= wanted,
        "more than": made > wanted,
    }.get(limit, made == wanted)
    return Finding(holds, f"{tools[0] if tools else 'tools'}: {made} call{'' if made == 1 else 's'}")


def called(rubric: str, happened: Situation) -> Finding | None:
    """Whether a tool was called at all."""
    tools = _named(rubric, happened)
    exact = [name for name in tools if plain(name) in rubric]
    if not (_CALLS.search(rubric) or exact or happened.answer is None):
        return None
    if tools:
        made = next((call.name for call in happened.calls if call.name in (exact or tools)), None)
        return Finding(made is not None, f"{made} was called" if made else f"{tools[0]} was not called")
    if _ANY_TOOL.search(rubric) and not content_words(_ANY_TOOL.sub(" ", _CALLS.sub(" ", rubric))):
        return Finding(bool(happened.calls), f"{len(happened.calls)} calls were made")
    return None


def _where(phrase: str, happened: Situation) -> list[int]:
    tools = _named(phrase, happened)
    return [at for at, call in enumerate(happened.calls) if call.name in tools]


def _named(phrase: str, happened: Situation) -> list[str]:
    """The tools that a phrase means: those whose name stands in it, else those that share most words with it."""
    exact = [name for name in sorted(happened.tools) if f" {plain(name)} " in f" {phrase} "]
    if exact:
        return exact
    words = _kinds(phrase)
    scored = [
        (len(words & _kinds(plain(name))) / (len(_kinds(plain(name))) or 1), name) for name in sorted(happened.tools)
    ]
    best = max((score for score, _ in scored), default=0.0)
    return [name for score, name in scored if score == best and best >= 0.5]


def _kinds(text: str) -> set[str]:
    """The words of a text, all ways to look something up as one."""
    return {"(look up)" if word in _LOOKUP else word for word in content_words(text)}


def _values(call: Call) -> str:
    return call.args_text


RULES: tuple[Rule, ...] = (order, arguments, count, called)
