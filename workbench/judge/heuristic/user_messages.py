"""user_message by rules: could a user with this plan say this now?

A message is refused where it is empty, speaks as the agent, says again what was just said although the agent asked
back, or brings figures or matters that neither the plan nor the conversation knows. The stop signal is refused while
the agent waits for an answer, or while too little of the plan came up in the conversation.
"""

import re
from collections.abc import Mapping
from typing import Any

from workbench.judge.heuristic.answers import Comparison, capitals
from workbench.judge.heuristic.quantities import Known, quantities, without_quantities
from workbench.judge.heuristic.words import bare, content_words, plain

_DONE = 0.4
"""Share of the plan's words that must have come up before the conversation may end."""
_KNOWN = 0.25
"""Share of a message's words that the plan or the conversation must know, if there are enough of them to tell."""
_ENOUGH_TO_TELL = 3
_AS_AGENT = re.compile(
    r"\bhow (?:can|may) i (?:help|assist)\b|\bas an ai\b|\blanguage model\b|\bi am (?:an ai|a bot|a test)\b"
    r"|\bthe plan says\b"
    r"|\bwie kann ich (?:ihnen|dir) helfen\b|\ben qué puedo ayudar|\bご用件を"
)
_QUESTION = re.compile(r"[?？][\s\"'”’)]*$|お知らせください。?$|ますか。?$|ですか。?$")
_ANYTHING_ELSE = re.compile(
    r"\b(?:anything|something|what) else\b|\bsonst noch\b|\balgo más\b|\bautre chose\b|\bhelp you further\b|他に"
)


def consistent(data: Mapping[str, Any]) -> Comparison:
    """From the data of the question: whether the message fits."""
    message, stop = str(data.get("message") or "").strip(), str(data.get("stop_signal") or "").strip()
    history = [(str(entry.get("role")), str(entry.get("text") or "")) for entry in data.get("history") or ()]
    plan = f"{data.get('plan') or ''}\n{data.get('starting_prompt') or ''}"
    if stop and message == stop:
        return _stopping(str(data.get("plan") or ""), history)
    text = message.replace(stop, " ") if stop else message
    if not bare(text):
        return Comparison(False, "the message is empty")
    if _AS_AGENT.search(plain(text)):
        return Comparison(False, "the message speaks as the agent, or as a program")
    said = [bare(before) for role, before in history if role == "user"]
    if said and said[-1] == bare(text) and _waits(history):
        return Comparison(False, "the message says again what was said, and does not answer the agent")
    return _from_plan(text, plan, history)


def _stopping(plan: str, history: list[tuple[str, str]]) -> Comparison:
    if _waits(history):
        return Comparison(False, "the agent waits for an answer")
    wanted = set(content_words(without_quantities(plan)))
    came_up = {word for _, text in history for word in content_words(without_quantities(text))}
    known = Known([quantity for _, text in history for quantity in quantities(text)])
    missing = [quantity for quantity in quantities(plan) if quantity not in known]
    share = len(wanted & came_up) / len(wanted) if wanted else 1.0
    if missing:
        return Comparison(False, f"{missing[0].text!r} of the plan did not come up yet")
    return Comparison(share >= _DONE, f"{share:.0%} of the plan's words came up")


def _waits(history: list[tuple[str, str]]) -> bool:
    """Whether the agent's last words are a question that wants more than "anything else?"."""
    if not history or history[-1][0] == "user":
        return False
    last = plain(history[-1][1])
    return bool(_QUESTION.search(last)) and not _ANYTHING_ELSE.search(last[-120:])


def _from_plan(text: str, plan: str, history: list[tuple[str, str]]) -> Comparison:
    background = "\n".join((plan, *(said for _, said in history)))
    known = Known(quantities(background))
    strange = [quantity for quantity in quantities(text) if quantity not in known]
    if strange:
        return Comparison(False, f"neither the plan nor the conversation has {strange[0].text!r}")
    names = capitals(text, bare(background))
    if names:
        return Comparison(False, f"neither the plan nor the conversation has {names[0]!r}")
    words = set(content_words(without_quantities(text)))
    share = len(words & set(content_words(without_quantities(background)))) / len(words) if words else 1.0
    if len(words) >= _ENOUGH_TO_TELL and share < _KNOWN:
        return Comparison(False, f"only {share:.0%} of its words are in the plan or the conversation")
    return Comparison(True, "it brings nothing that the plan and the conversation do not know")
