"""Rules for user_message: could a user with this plan say this now?

A message is invalid if it is empty, speaks as the agent, repeats itself although the agent asked something, or has a
new figure. It is valid if all its words are known from the plan and the conversation. The stop signal is invalid while
the agent waits for an answer or a figure of the plan did not come up. It is valid if the plan says when to stop ("When
…, you are done.") and the agent's last message says that. Everything else is unclear.
"""

import re
from collections.abc import Mapping
from typing import Any

from workbench.judge.heuristic.answers import Finding
from workbench.judge.heuristic.texts import Known, Token, asks, bare, figures, plain, shown, tokens, turns

_AS_AGENT = re.compile(
    r"\bhow (?:can|may) i (?:help|assist)\b|\bas an ai\b|\blanguage model\b|\bi am (?:an ai|a bot|a test)\b"
)
_ANYTHING_ELSE = re.compile(r"\b(?:anything|something) else\b|他に")
_HARMLESS = frozenset(("but", "could", "would", "to"))
_DONE = re.compile(r"\b(?:when|once|as soon as) ([^.!?]{1,300}), (?:you are done|you are finished|stop|end)\b")


def consistent(data: Mapping[str, Any]) -> Finding:
    """Return whether a message fits. `data` is the data of the question."""
    message, stop = str(data.get("message") or "").strip(), str(data.get("stop_signal") or "").strip()
    history = [(str(entry.get("role")), str(entry.get("text") or "")) for entry in data.get("history") or ()]
    waits = bool(history) and history[-1][0] != "user" and asks(history[-1][1])
    waits = waits and not _ANYTHING_ELSE.search(plain(history[-1][1]))
    plan = str(data.get("plan") or "")
    if stop and message == stop:
        return Finding(False, "the agent waits for an answer") if waits else _stopping(plan, history)
    text = message.replace(stop, " ") if stop else message
    if not bare(text):
        return Finding(False, "the message is empty")
    if _AS_AGENT.search(plain(text)):
        return Finding(False, "the message speaks as the agent, or as a program")
    if waits and bare(text) in [bare(message) for role, message in history[-2:] if role == "user"]:
        return Finding(False, "the message repeats itself and does not answer the agent")
    known = (plan, str(data.get("starting_prompt") or ""), *(message for _, message in history))
    return _from_plan(text, "\n".join(known))


def _stopping(plan: str, history: list[tuple[str, str]]) -> Finding:
    mentioned = Known(figures("\n".join(message for _, message in history)))
    missing = next((figure for figure in figures(plan) if figure not in mentioned), None)
    if missing:
        return Finding(False, f"{missing.text!r} of the plan did not come up yet")
    done = _DONE.search(plain(plan))
    last = Known(tokens(history[-1][1]) if history else ())
    if done and all(token in last for token in tokens(done[1])):
        return Finding(True, "the agent said what the plan waits for")
    return Finding(None, "rules cannot tell whether the plan is done")


def _from_plan(text: str, background: str) -> Finding:
    known = Known(figures(background))
    strange = next((figure for figure in figures(text) if figure not in known), None)
    if strange:
        return Finding(
            False if strange.kind != "amount" or strange.unit else None,
            f"neither the plan nor the conversation has {strange.text!r}",
        )
    words = Known(tokens(background))
    new: list[Token] = [token for token in tokens(text) if token not in words]
    new += sorted(set(turns(text)) - set(turns(background)) - _HARMLESS)
    if new:
        return Finding(None, f"neither the plan nor the conversation has {shown(new[0])!r}")
    return Finding(True, "the plan and the conversation have all its words and figures")
