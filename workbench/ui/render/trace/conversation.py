"""The conversation beside the waterfall: the messages of the turn, with those lit that a row belongs to."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from workbench.store import Turn
from workbench.text import one_line
from workbench.trace.spans import Node, TurnTrace
from workbench.ui.cells import cell_len, cut, fit
from workbench.ui.render.json_text import compact
from workbench.ui.render.judged import mapping, said, words
from workbench.ui.render.lines import Line, Segment, fold
from workbench.ui.render.trace.reading import events_of

_SEEN = 9
"""Messages that are shown around the lit one."""
_LONGEST = 400


class Message(NamedTuple):
    """A message of the turn: `event` is its recorded event, -1 for the user's, and what it says on one line."""

    event: int
    author: str
    text: str


def messages(turn: Turn) -> list[Message]:
    """Who said and did what in the turn, in order."""
    found = [Message(-1, "user", one_line(said(turn.user), limit=_LONGEST))]
    final = said(mapping(turn.actual).get("final_response"))
    for number, event in enumerate(events_of(turn)):
        author = one_line(words(mapping(event).get("author")), limit=100)
        told = list(_parts(mapping(event)))
        if not told and final and not turn.acted:
            told, final = [final], ""  # The event of the answer is recorded without it.
        found += [Message(number, author, one_line(text, limit=_LONGEST)) for text in told]
    return found


def own_events(node: Node, trace: TurnTrace) -> frozenset[int]:
    """The events that a row belongs to: its own; what happened inside of a tool belongs to that tool's; an agent's are
    those of all in it; the turn's is the user's message."""
    if node.kind == "turn":
        return frozenset({-1})
    inside = frozenset(event for part in node.walk() for event in part.events)
    if inside:
        return inside
    above = next((part for part in reversed(node.path[:-1]) if part.events), None)
    return frozenset(above.events) if above is not None else frozenset({-1})


def conversation_lines(turn: Turn, lit: frozenset[int], width: int) -> Iterator[Line]:
    """The messages of the turn, a line each, those with `lit` events marked; of a long turn those around them."""
    listed = messages(turn)
    first = next((place for place, message in enumerate(listed) if message.event in lit), 0)
    # Of a low aside only the first lines are in sight: what is lit must be among them.
    start = first - 2 if first > 3 else 0
    if start > 0:
        yield fold(f"… {start:,} before", width)
    seen = listed[start : start + _SEEN]
    authors = min(max((cell_len(message.author) for message in seen), default=0), 14, width // 3)
    for message in seen:
        on = message.event in lit
        lead = f"{'▶' if on else ' '} {fit(message.author, authors)}  "
        room = max(width - authors - 4, 6)
        style = "user" if message.event < 0 else "strong" if on else "muted"
        text = cut(message.text, room) if message.text else "(nothing)"
        yield (Segment(lead, "name" if on else "muted"), Segment(text, style))
    more = len(listed) - start - _SEEN
    if more > 0:
        yield fold(f"… {more:,} more", width)


def _parts(event: dict[str, Any]) -> Iterator[str]:
    parts = mapping(event.get("content")).get("parts")
    for part in parts if isinstance(parts, list) else ():
        part = mapping(part)
        call, response = part.get("function_call"), part.get("function_response")
        if isinstance(call, dict):
            yield f"calls {words(call.get('name'))} {compact(call.get('args'))}"
        elif isinstance(response, dict):
            yield f"{words(response.get('name'))} gave {compact(response.get('response'))}"
        elif isinstance(part.get("text"), str):
            yield part["text"]
        else:
            yield compact(part)
