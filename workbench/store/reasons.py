"""Reasons of verdicts: who judged a criterion, and the cause of a failing case.

A cause keeps the words of an error's message and replaces its values by their kinds, such as `no order <id>`. So cases
with the same fault have the same cause.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line

JudgedBy: TypeAlias = Literal["rules", "model", "function"]
"""The kind of a judge."""
_WORDS: dict[str, JudgedBy] = {by: by for by in get_args(JudgedBy)}


def judge_in(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge (`JudgeIdentity` as JSON) in the details of a result, or that of the first question, or {}."""
    if judge := mapping(details.get("judge")):
        return judge
    # This runs for each verdict of each case, and most have neither.
    holders = (details, mapping(details.get("stop"))) if "questions" in details or "stop" in details else ()
    for holder in holders:
        for question in objects(holder.get("questions")):
            if judge := mapping(question.get("judge")):
                return judge
    return {}


def judge_name(details: Mapping[str, Any]) -> str:
    """Return the judge's model with its address, or "" if no judge was asked."""
    judge = judge_in(details)
    return " ".join(string(judge.get(key)) for key in ("model", "base_url") if judge.get(key))


def judged_by(details: Mapping[str, Any]) -> JudgedBy | None:
    """Return the kind of judge, or None if no judge was asked."""
    judge = judge_in(details)
    if not judge.get("kind"):
        return None
    return _WORDS.get(str(judge.get("by")), "model")


def is_without_model(by: JudgedBy | None) -> bool:
    """Return whether code judged, and no language model: a function, or the rules of an extension."""
    return by in ("function", "rules")


_NO_VOTES = frozenset({"unread", "missing", "unclear"})


def is_split_in(details: Mapping[str, Any]) -> bool:
    """Return whether votes in a result's details disagree: on the turn, on a rubric, or on the conversation's end."""
    return details.get("split") is True or any(
        map(votes_differ, [*objects(details.get("rubrics")), mapping(details.get("stop"))])
    )


def votes_differ(item: Mapping[str, Any]) -> bool:
    """Return whether several verdicts have votes in `item["votes"]`. Unreadable and undecided replies do not count."""
    votes = mapping(item.get("votes"))
    return sum(isinstance(many, int) and many > 0 for name, many in votes.items() if name not in _NO_VOTES) > 1


KINDS = ("address", "value", "path", "time", "number", "id")
"""The kinds of values, as they are named in a cause."""
Layer: TypeAlias = Literal["error", "calls", "answer", "judged", "other"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
"""The layers in order. A case counts under a cause of the first layer that has one."""
TEXT_LIMIT = 200
_SEPARATORS = re.compile(rf"(?:<(?:{'|'.join(KINDS)})>|\W)+")
"""Separators in the text of a cause, including kinds of values: the order `7` in one case may be `A-7` in another."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a failing case.

    `text` is one line that is safe for a terminal. `slug` identifies the cause and is what the filter takes
    (`cause:SLUG`). `by_function` is true if a function judged, not a language model.
    """

    layer: Layer
    text: str
    slug: str
    by_function: bool = False

    def as_json(self) -> list[Any]:
        """Return the form in which summaries of runs store it."""
        return [self.layer, self.text, self.by_function]


@lru_cache(4096)
def make_cause(layer: Layer, text: str, *, by_function: bool = False) -> Cause:
    """Return the cause with this text, which may come from an agent or a service. It is cut to 200 characters.

    Equal causes share one object. The slug of `refund: amount is text, expected number` is
    `refund-amount-is-text-expected-number`.
    """
    safe = one_line(text, limit=TEXT_LIMIT)
    slug = _SEPARATORS.sub("-", safe.lower()).strip("-") or "unnamed"
    return Cause(layer, safe, slug + ("-by-function" if by_function else ""), by_function)


def cause_from_json(data: Any) -> Cause:
    """Return the cause that `as_json` converted to `data`. Raise ValueError if the data has another form."""
    match data:
        case [str(layer), str(text), bool(by_function)] if layer in LAYERS:
            return make_cause(LAYERS[LAYERS.index(layer)], text, by_function=by_function)
    raise ValueError(f"not a cause: {data!r}")


UNKNOWN = make_cause("other", "cause not recorded")
"""The cause of a failing case without a failed criterion, as in damaged runs."""
ONE_OF_A_KIND = make_cause("other", "one of a kind")
"""The cause of the group that holds all cases whose cause no other case has."""
_LONGEST = 2_000
_SAYS_NOTHING = re.compile(r"^(?:RuntimeError|Exception): (?=\S)|\bturn \d+: ")
_REPLY = re.compile(r"[\s:.-]{0,4}\{.{0,100}?(['\"])message\1: ?(['\"])(.{1,400}?)\2[,}].*", re.DOTALL)
"""The reply of a service, as JSON or as a Python dict, whose message says what is wrong."""
_VALIDATION = re.compile(r"\d+ (validation error)s?( for .*)\n(.*)\n\s*(.*?)(?: \[type=.*)?$", re.MULTILINE)
"""A message of pydantic, which names the field and the fault on lines of their own."""
_NAMES_CODE = re.compile(r"\b(?:Attribute|Import|Key|ModuleNotFound|Name|Type|UnboundLocal)Error\b")
"""Errors whose quoted words are names in code."""
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""A name in code, wherever it is quoted."""
_HEX = re.compile(r"[\da-fA-F-]+")
_PART = re.compile(r"[A-Za-z\d]+")
_WORD = re.compile(r"[a-z]{3,}|[A-Z][a-z]{2,}")
_NUMBERED = re.compile(r"([a-z]{3,})\d+")
"""Parts of an id that say something: `flash` in `gemini-2.5-flash`, and in code `line` in `line2`."""
_JOINED_IDS = re.compile(r"<id>(?:[-_.]+<id>)+")
_ID = r"[A-Za-z\d_-]"
_VALUE = re.compile(
    "|".join(
        f"(?P<{kind}>{pattern})"
        for kind, pattern in {
            "kept": r"\b(?i:HTTP|errno|signal|exit(?: code)?|(?:error |status )code|status)[ :=]{1,2}\d{1,4}\b"
            r"|\b[45]\d\d [A-Z][A-Z_]+\b"
            r"|['\"]?\b[45]\d\d(?: [A-Z][a-z]+)+['\"]?|\b[A-Za-z]\w*_v\d+\b|\b[A-Z][A-Z\d_]*_[A-Z]{3,}\b",
            "some": r"\b[1-9]\d{0,9} of \d{1,10}(?= [a-z])",
            "address": r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s,;)'\"]+|\b[\w.+-]{1,64}@[\w-]+\.[\w.-]+"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b",
            "value": r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`]*`|“[^”]*”|‘[^’]*’|«[^»]*»|「[^」]*」",
            "path": r"(?:(?<![\w/])(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/][\w.@+-]+){2,}[\\/]?|(?<![\w/])/[\w.@+-]+/?(?!\w)"
            r"|(?<![\w/.])(?:[\w@+-]{1,64}/){1,20}[\w@+-]{1,64}\.[a-z]\w{0,9}\b)(?::\d+){0,2}",
            "time": rf"(?<!{_ID})\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?)?(?!{_ID})"
            rf"|(?<!{_ID})\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?!{_ID})",
            "number": rf"(?<!{_ID})[-+]?\d(?:[\d.,:_]*\d)?(?:[mµn]?s|min|h|[kKMG]i?B|%)?(?!{_ID})",
            "id": rf"(?<!{_ID}){_ID}{{0,200}}\d{_ID}*(?:\.{_ID}{{0,200}}\d{_ID}*)*",
        }.items()
    )
)
_REPEATED = re.compile(r"(<(?:number|id|time)>)(?:(?:[\s,;]|and )*\1)+")
_CALL = re.compile(r"[^\n]{0,200}? called ([^\s(]{1,200})\([^\n]*?, which has no recording; ")
_DIFFERENCE = re.compile(r"nearest recording: [^\n]*?\) in turn \d+; ([^\n]{1,300}?) was ")
_MODEL = re.compile(r"([^\n]{1,200}?) made a model request that is not recorded: ")
_REQUEST = re.compile(r"its request \d+ has (another instruction|other tools|another config|the model)")
_INDEX = re.compile(r"\[\d+\]")
_TOO_MANY = ("a call with these arguments is recorded only ", "only ")


def error_text(message: str) -> str:
    """Return a message on one line, with each number, id, path, time, address and quoted value replaced by its kind.

    Words stay, so that different faults have different texts. Quoted names in code stay, too. A call without a
    recording has a text of its own, because most of its message is the call.
    """
    if missed := miss_text(message[:_LONGEST]):
        return missed
    text = _SAYS_NOTHING.sub("", message[:_LONGEST].strip())
    text = _VALIDATION.sub(r"\1\2: \3: \4", _REPLY.sub(r": \3", text, count=1), count=1)
    text = next(iter(text.splitlines()), "")
    return _REPEATED.sub(r"\1", _folded(text, in_code=_NAMES_CODE.search(text) is not None))


def _folded(text: str, *, in_code: bool) -> str:
    def named(match: re.Match[str]) -> str:
        kind, value = match.lastgroup, match[0]
        if kind == "id":
            return _named_id(value, in_code=in_code)
        if kind == "value":
            inner = _folded(value[1:-1], in_code=True)
            if inner[1:-1] in KINDS:
                return inner
            if in_code or _NAME.fullmatch(value[1:-1]):
                return f"{value[0]}{inner}{value[-1]}"
        return {"kept": value, "some": "some"}.get(str(kind), f"<{kind}>")

    return _VALUE.sub(named, text)


def _named_id(value: str, *, in_code: bool) -> str:
    """Return the kind of an id with the words in it, such as `gemini-<id>-flash`."""
    if _HEX.fullmatch(value):
        return "<id>"

    def named(match: re.Match[str]) -> str:
        part = match[0]
        if in_code and (numbered := _NUMBERED.fullmatch(part)):
            return f"{numbered[1]}<number>"
        return part if _WORD.fullmatch(part) else "<id>"

    return _JOINED_IDS.sub("<id>", _PART.sub(named, value))


def miss_text(message: str) -> str:
    """Return the cause of a call or model request that is not recorded, or "" for another message.

    An example is `find_order: order differs from the recording`.
    """
    if found := _CALL.match(message):
        why = message[found.end() :]
        if difference := _DIFFERENCE.match(why):
            return f"{found[1]}: {_INDEX.sub('[]', difference[1])} differs from the recording"
        return f"{found[1]}: {_other(why, 'call')}"
    if found := _MODEL.match(message):
        why = message[found.end() :]
        request = _REQUEST.match(why)
        return f"model of {found[1]}: {f'{request[1]} than recorded' if request else _other(why, 'request')}"
    return ""


def _other(why: str, what: str) -> str:
    if why.startswith("its outcome was not recorded"):
        return "its outcome was not recorded"
    return f"more {what}s than recorded" if why.startswith(_TOO_MANY) else f"{what} is not in the recording"
