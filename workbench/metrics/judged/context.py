"""Context of a text: the pieces that an agent could know when it wrote the text, and the source of an excerpt.

A piece is `{"kind", "name", "text", "event", "call_id"}`; see `prompts.claims`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.json_values import parts_of
from workbench.metrics.judged.turn_evidence import agents, data_text
from workbench.metrics.judged.turn_texts import user_text
from workbench.model.invocation import Invocation, content_text, recorded_events

Piece = dict[str, Any]
_SEARCHED = ("result", "grounding", "said", "user", "call", "instructions", "tools")
"""Kinds in the order in which an excerpt is searched: results first, instructions and tools last."""
_WORD = re.compile(r"[^\W_]+")
_ESCAPE = re.compile(r"\\[nrt]")
_GAP = re.compile(r"\.\.\.|…")
_SHORTEST = 4


def context_of(turn: Invocation, before: int | None = None) -> list[Piece]:
    """Return the pieces for a text of the turn.

    `before` is the index of the event with the text. Only earlier events count, and the grounding of this one. None
    stands for the final answer, which comes after all events.
    """
    recorded = recorded_events(turn) or []
    happened = recorded if before is None else recorded[:before]
    grounded = recorded if before is None else recorded[: before + 1]
    pieces = [
        _piece("instructions", name, agent["instructions"])
        for name, agent in agents(turn).items()
        if agent.get("instructions")
    ]
    pieces.append(_piece("user", "", user_text(turn)))
    pieces += [
        _piece("tools", name, data_text(agent["tool_declarations"]))
        for name, agent in agents(turn).items()
        if agent.get("tool_declarations")
    ]
    pieces += [
        _piece("grounding", event.get("author") or "", data_text(event["grounding_metadata"]), index)
        for index, event in enumerate(grounded)
        if event.get("grounding_metadata")
    ]
    pieces += [piece for index, event in enumerate(happened) for piece in _happened(event, index)]
    return [*pieces, *_written(turn)]


class Sources:
    """Finder of the piece that an excerpt comes from.

    Only words are compared: judges change quotes, blanks and line breaks, and leave out the middle.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        ordered = sorted(pieces, key=lambda piece: _SEARCHED.index(piece["kind"]))
        self._pieces = [(piece, f" {_words(piece['text'])} ") for piece in ordered]

    def find(self, excerpt: str) -> dict[str, Any] | None:
        """Return the piece that contains the excerpt, without its text, or None if there is none."""
        wanted = max((_words(part) for part in _GAP.split(excerpt)), key=len)
        if not wanted:
            return None
        found = self._holding(f" {wanted} ") or (self._holding(wanted) if len(wanted) >= _SHORTEST else None)
        return None if found is None else {key: found[key] for key in ("kind", "name", "event", "call_id")}

    def _holding(self, words: str) -> Piece | None:
        return next((piece for piece, text in self._pieces if words in text), None)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(_ESCAPE.sub(" ", text).lower()))


def _piece(kind: str, name: str, text: str, event: int | None = None, call_id: str | None = None) -> Piece:
    return {"kind": kind, "name": name, "text": text, "event": event, "call_id": call_id}


def _happened(event: dict[str, Any], index: int) -> Iterator[Piece]:
    for part in parts_of(event.get("content")):
        if part.get("text"):
            yield _piece("said", event.get("author") or "", part["text"], index)
        for key, kind, content in (("function_call", "call", "args"), ("function_response", "result", "response")):
            if part.get(key) is not None:
                inner = part[key]
                yield _piece(kind, inner.get("name") or "", data_text(inner.get(content)), index, inner.get("id"))


def _written(turn: Invocation) -> Iterator[Piece]:
    """Yield the pieces of a hand-written turn."""
    data = turn.get("intermediate_data") or {}
    for call in data.get("tool_uses") or ():
        yield _piece("call", call.get("name") or "", data_text(call.get("args")), None, call.get("id"))
    for response in data.get("tool_responses") or ():
        text = data_text(response.get("response"))
        yield _piece("result", response.get("name") or "", text, None, response.get("id"))
    for author, parts in data.get("intermediate_responses") or ():
        yield _piece("said", author, content_text({"parts": parts}))
