"""Rules for rubrics: properties that can be looked up.

A rubric is decided only if one rule understands all of it. One word more makes it unclear.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.judge.heuristic.answers import Finding
from workbench.judge.heuristic.figures import NUMBERS, with_unit_of_key
from workbench.judge.heuristic.texts import Known, figures, leaves, plain, sentences, tokens, turns

_LONGEST = 600
_ANSWER = r"(?:it|(?:the |its |each )?(?:final )?(?:answer|response|reply|agent))"
_MAY = r"(?P<no> (?:must|should|does|do|may|can|is)(?: not|n't)| never)?(?: must| should| always)?"
_LIMITS: dict[str, Callable[[int, int], bool]] = {
    **dict.fromkeys(("at most", "no more than", "up to"), lambda counted, wanted: counted <= wanted),
    **dict.fromkeys(("fewer than", "less than"), lambda counted, wanted: counted < wanted),
    "at least": lambda counted, wanted: counted >= wanted,
    "more than": lambda counted, wanted: counted > wanted,
    **dict.fromkeys(("exactly", "only", ""), lambda counted, wanted: counted == wanted),
}
_LIMIT = rf"(?P<limit>{'|'.join(filter(None, _LIMITS))})?"
_NUMBER = rf"(?P<number>\d{{1,6}}|once|twice|{'|'.join(NUMBERS)})"
_SORRY = re.compile(r"\bsorry\b|\bapolog|\bregret|entschuldig|tut (?:mir|uns) leid|lo siento|désolé|申し訳|すみません")
_DENIED = re.compile(r"(?:\b(?:not|no|never|without)|n't)(?: \w+){0,2} $")
"""A negation before an apology: "not very sorry"."""
_PERHAPS_DATE = re.compile(
    r"\b(?:(?:next|last|this|coming|day|week|month|weekend)\b|christmas|easter|new year|"
    r"(?:january|february|march|april|june|july|august|september|october|november|december)\b)"
)
_DATE = re.compile(r"\b(?:today|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b")


@dataclass(frozen=True)
class Call:
    """A tool call, with the values of its arguments and of its result by key."""

    name: str
    args: list[tuple[str, str]]
    result: list[tuple[str, str]]


@dataclass(frozen=True)
class Situation:
    """The facts of a turn or conversation.

    `answer` is None if only tool calls are judged. For a conversation it joins all answers.
    """

    user: str
    answer: str | None
    calls: list[Call]
    tools: frozenset[str]

    @property
    def results(self) -> str:
        """All results as one text, one value with its key per line."""
        return "\n".join(_line(*pair) for call in self.calls for pair in call.result)


def situation(data: Mapping[str, Any]) -> Situation:
    """Read the data of a question about rubrics."""
    declared = {
        str(tool["name"])
        for tools in (data.get("tools") or {}).values()
        for tool in (tools if isinstance(tools, list) else [])
        if isinstance(tool, dict) and tool.get("name")
    }
    turns = data.get("conversation")
    if turns is None:
        steps = data.get("steps") or ()
        calls = [_call(step["call"], step.get("response")) for step in steps]
        answer = None if data.get("answer") is None else str(data["answer"])
        return Situation(str(data.get("user") or ""), answer, calls, frozenset(declared | {c.name for c in calls}))
    calls = [call for turn in turns for call in _calls(turn.get("events") or ())]
    user = "\n".join(str(turn.get("user") or "") for turn in turns)
    answer = "\n".join(str((turn.get("answer") or {}).get("text") or "") for turn in turns)
    return Situation(user, answer, calls, frozenset(declared | {call.name for call in calls}))


def decide(rubric: str, happened: Situation) -> Finding:
    """Return whether the situation has a property."""
    text = plain(rubric).rstrip(" .。")
    if len(text) > _LONGEST:
        return Finding(None, "the rubric is too long for rules")
    for pattern, rule, of_answer in _RULES:
        match = pattern.fullmatch(text)
        if match and (happened.answer is not None or not of_answer):
            return rule(match, happened)
    return Finding(None, "no rule can look this up")


def _quoted(match: re.Match[str], happened: Situation) -> Finding:
    """Search the answer for text in quotation marks."""
    wanted, text = re.findall(r'"([^"]+)"', match["quoted"]), plain(happened.answer or "")
    there = [each for each in wanted if re.search(_whole(each), text)]
    part = next((each for each in wanted if each in text and each not in there), None)
    if part:
        return Finding(None, f"{part!r} is only part of a word in the answer")
    holds = bool(there) if " or " in match["quoted"] or match["no"] else len(there) == len(wanted)
    shown = there[0] if there and (holds or match["no"]) else next(each for each in wanted if each not in there)
    return _unless(match, holds, f"the answer {'holds' if shown in there else 'does not hold'} {shown!r}")


def _conditional(match: re.Match[str], happened: Situation) -> Finding:
    """Decide a rubric that applies only if a tool result contains a text in quotation marks."""
    if match["quoted"] not in plain(happened.results):
        return Finding(True, f"it does not apply: {match['quoted']!r} is not there")
    return decide(match["core"], happened)


def _whole(text: str) -> str:
    """Return a pattern for a text that is not part of a longer Latin word."""
    return rf"(?<![a-z]){re.escape(text)}(?![a-z])" if text.isascii() else re.escape(text)


def _length(match: re.Match[str], happened: Situation) -> Finding:
    answer, what = happened.answer or "", match["what"]
    counted = len(sentences(answer) if what == "sentence" else answer.split())
    holds = _LIMITS[match["limit"] or ""](counted, _number(match["number"]))
    return Finding(holds, f"{counted} {what}{'' if counted == 1 else 's'}")


def _apology(match: re.Match[str], happened: Situation) -> Finding:
    answer = plain(happened.answer or "")
    found = _SORRY.search(answer)
    if found and _DENIED.search(answer[: found.start()]):
        return Finding(None, f"there is a negation before {found.group()!r}")
    return _unless(match, bool(found), f"{found.group()!r} is an apology" if found else "no apology found")


def _date(match: re.Match[str], happened: Situation) -> Finding:
    answer = happened.answer or ""
    dates = [figure.text for figure in figures(answer) if figure.kind == "date" or figure.unit == "time"]
    dates += _DATE.findall(plain(answer))
    if not dates and (perhaps := _PERHAPS_DATE.search(plain(answer))):
        return Finding(None, f"{perhaps.group()!r} may name a date")
    holds = bool(dates) != bool(match["none"])
    return _unless(match, holds, f"{dates[0]!r} is a date" if dates else "no date found")


def _from_tools(match: re.Match[str], happened: Situation) -> Finding:
    """Search the results for each figure of the answer.

    Identifiers may also be in the arguments: they name the subject of the answer.
    """
    stated = figures(happened.answer or "")
    results = Known(figure for call in happened.calls for pair in call.result for figure in figures(_line(*pair)))
    args = Known(figure for call in happened.calls for pair in call.args for figure in figures(_line(*pair)))
    for figure in stated:
        named = figure.kind == "id" or not figure.unit
        if figure not in results and not (named and figure in args):
            return Finding(False, f"{figure.text!r} is in no tool result")
    return Finding(True, f"all {len(stated)} figures are in tool results" if stated else "the answer has no figure")


def _states(match: re.Match[str], happened: Situation) -> Finding:
    """Search the answer for the value that tools returned under a key of this name."""
    values = {value for call in happened.calls for key, value in call.result if plain(key) == match["key"]}
    if len(values) != 1:
        return Finding(None, f"{len(values)} values of tool results are called {match['key']!r}")
    wanted, there = tokens(value := values.pop()), Known(tokens(happened.answer or ""))
    holds = bool(wanted) and all(token in there for token in wanted)
    value_of = Known(wanted)
    nearby = [one for one in sentences(happened.answer or "") if any(token in value_of for token in tokens(one))]
    if holds and any(map(turns, nearby)):
        return Finding(None, f"a word such as not or only is next to {value!r}")
    return _unless(match, holds, f"{value!r} is {'' if holds else 'not '}in the answer")


def _order(match: re.Match[str], happened: Situation) -> Finding:
    """Decide which of two tools was called first."""
    names = [plain(call.name) for call in happened.calls]
    one, others = _tools(match["tool"], happened), _tools(match["others"], happened)
    if len(one) != 1 or "or" in match["tool"].split() or not others:
        return Finding(None, "the rubric names an unknown tool")
    first = names.index(one[0]) if one[0] in names else None
    second = next((at for at, name in enumerate(names) if name in others), None)
    if match["when"] == "after":
        first, second = second, first
    if second is None:
        return Finding(None, "the tool that should come later was not called")
    winner = happened.calls[second].name if first is None or second < first else happened.calls[first].name
    return Finding(first is not None and first < second, f"{winner} comes first")


def _count(match: re.Match[str], happened: Situation) -> Finding:
    tools = _tools(match["tool"], happened)
    if len(tools) != 1:
        return Finding(None, "the rubric names an unknown tool")
    made = sum(plain(call.name) == tools[0] for call in happened.calls)
    holds = _LIMITS[match["limit"] or ""](made, _number(match["number"])) if match["number"] else bool(made)
    return _unless(match, holds, f"{made} call{'' if made == 1 else 's'}")


def _arguments(match: re.Match[str], happened: Situation) -> Finding:
    """Search the user's messages for the identifiers in the arguments."""
    tools = _tools(match["tool"], happened)
    calls = [call for call in happened.calls if [plain(call.name)] == tools]
    if not calls:
        return Finding(False if tools else None, "it was not called" if tools else "no such tool is known here")
    named = Known(figures(happened.user))
    given = [figure for call in calls for _, value in call.args for figure in figures(value) if figure.kind == "id"]
    strange = next((figure.text for figure in given if figure not in named), None)
    if strange or not given:
        return Finding(False if strange else None, f"the user did not name {strange!r}" if strange else "no id found")
    return Finding(True, f"the user named {given[0].text!r}")


def _unless(match: re.Match[str], holds: bool, why: str) -> Finding:
    return Finding(holds != bool(match["no"]), why)


def _number(word: str) -> int:
    return {"once": 1, "twice": 2}.get(word) or NUMBERS.get(word) or int(word)


def _tools(phrase: str, happened: Situation) -> list[str]:
    """Return the declared or called tools that a list of names means."""
    known = {plain(name) for name in happened.tools}
    return [name for each in re.split(r",? or |, ", phrase) if (name := each.strip()) in known]


def _line(key: str, value: str) -> str:
    number = re.fullmatch(r"-?\d+(?:\.\d+)?", value)
    return with_unit_of_key(plain(key), value) if number else value


def _call(call: Mapping[str, Any], response: Any) -> Call:
    return Call(str(call.get("name")), _values(call.get("args")), _values(response))


def _calls(events: Any) -> Iterator[Call]:
    """Yield the calls of a conversation, each with the next result of its tool."""
    results = [event["result"] for event in events if "result" in event]
    for event in events:
        if "call" in event:
            name = event["call"].get("name")
            at = next((at for at, result in enumerate(results) if result.get("name") == name), None)
            yield _call(event["call"], None if at is None else results.pop(at).get("response"))


def _values(value: Any) -> list[tuple[str, str]]:
    return [(key, item if isinstance(item, str) else json.dumps(item)) for key, item in leaves(value)]


_Rule = Callable[[re.Match[str], Situation], Finding]
_SAYS = r"(?:mentions?|contains?|includes?|says?|uses?|states?|names?|gives?)"
_CALLED = r"(?P<tool>[\w ]{1,80}?) (?:is|was|must be|should be)"
_QUOTES = r'"[^"]{1,200}"(?:(?:, (?:or |and )?| or | and )"[^"]{1,200}"){0,20}'
_ON_CALLS: dict[str, _Rule] = {
    r'(?:if|when) a tool result (?:says|mentions|has) "(?P<quoted>[^"]{1,200})", (?P<core>.+)': _conditional,
    rf"{_CALLED} called (?P<when>before|after) (?P<others>[\w, ]{{1,400}})": _order,
    rf"{_CALLED} called with the (?:id|number) that the user (?:named|gave)": _arguments,
    rf"{_CALLED} ?(?P<no>not|never)? called(?: ?{_LIMIT} {_NUMBER}(?: times?)?)?": _count,
}
_ON_ANSWER: dict[str, _Rule] = {
    rf"{_ANSWER}{_MAY} {_SAYS} (?:the (?:word|phrase|text) |an? )?(?P<quoted>{_QUOTES})": _quoted,
    rf"{_ANSWER}(?: is| has| must be| should be) ?{_LIMIT} ?{_NUMBER} (?P<what>sentence|word)s?(?: long)?": _length,
    rf"{_ANSWER}{_MAY} (?:apologi[sz]es?|says? sorry|contains? an apology)": _apology,
    rf"{_ANSWER}{_MAY} {_SAYS} (?:an?y?|(?P<none>no)) dates?": _date,
    r"(?:every|each) (?:figure|number|amount) (?:in|of) the answer (?:comes from|is in) a tool result": _from_tools,
    rf"{_ANSWER}{_MAY} {_SAYS} the (?P<key>[\w ]{{1,40}}?)(?: of the \w{{1,40}})?": _states,
}
_RULES = [
    (re.compile(pattern), rule, rules is _ON_ANSWER)
    for rules in (_ON_CALLS, _ON_ANSWER)
    for pattern, rule in rules.items()
]
