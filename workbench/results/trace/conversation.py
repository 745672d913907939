"""The conversation beside the waterfall: the messages of the turn, with those of the selected row highlighted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.text import Text

from workbench.files.invocation import recorded_events
from workbench.results.calls import call_text
from workbench.results.cells import cell_len, cut, fit
from workbench.results.json_text import beginning
from workbench.results.judged import message_text
from workbench.results.lines import Line, fold
from workbench.store.execution import Turn
from workbench.store.spans import Node
from workbench.text.json_values import mapping, parts_of, string
from workbench.text.safe_text import one_line

_SEEN = 9
"""The number of messages shown around the first highlighted one."""
_LONGEST = 400
_READ = 4 * _LONGEST
"""The number of characters read for a line of `_LONGEST` characters."""


@dataclass(eq=False)
class Message:
    """A message of the turn.

    `event` is the index of its recorded event, -1 for the user's. `by` is its author, and `content` its text or part of
    the event. The text is made on first use, because most messages are never visible.
    """

    event: int
    by: object
    content: object

    @cached_property
    def author(self) -> str:
        """The author's name."""
        return one_line(string(self.by), limit=100)

    @cached_property
    def text(self) -> str:
        """The message on one line."""
        text = self.content if isinstance(self.content, str) else part_words(mapping(self.content))
        return one_line(text, limit=_LONGEST)


def events_of(turn: Turn) -> list[Any]:
    """Return the turn's recorded events."""
    if turn.acted:
        return list(turn.acted)
    return recorded_events(turn.actual) or []


def messages(turn: Turn) -> list[Message]:
    """Return the messages of the turn, in order."""
    found = [Message(-1, "user", message_text(turn.user))]
    final = message_text(mapping(turn.actual).get("final_response"))
    for number, event in enumerate(events_of(turn)):
        event = mapping(event)
        contents: list[Any] = parts_of(event.get("content"))
        if not contents and final and not turn.acted:
            contents, final = [final], ""  # The event of the answer is recorded without it.
        author = event.get("author")
        found += [Message(number, author, part) for part in contents]
    return found


def own_events(node: Node) -> frozenset[int]:
    """Return the events of a row.

    A step inside a tool has the events of that tool. An agent has those of all its steps, and the turn has the user's
    message.
    """
    if node.kind == "turn":
        return frozenset({-1})
    inside = frozenset(event for part in node.walk() for event in part.events)
    if inside:
        return inside
    above = next((part for part in reversed(node.path[:-1]) if part.events), None)
    return frozenset(above.events) if above is not None else frozenset({-1})


def conversation_lines(listed: Sequence[Message], lit: frozenset[int], width: int) -> Iterator[Line]:
    """Yield one line per message. Messages with `lit` events are marked. A long turn is cut around them."""
    first = next((place for place, message in enumerate(listed) if message.event in lit), 0)
    # A low aside shows only the first lines, which must include the highlighted messages.
    start = first - 2 if first > 3 else 0
    if start > 0:
        yield fold(f"… {start:,} earlier", width)
    seen = [(message.event, message.author, message.text) for message in listed[start : start + _SEEN]]
    authors = min(max((cell_len(author) for _, author, _ in seen), default=0), 14, width // 3)
    for event, author, text in seen:
        on = event in lit
        lead = f"{'▶' if on else ' '} {fit(author, authors)}  "
        room = max(width - authors - 4, 6)
        style = "user" if event < 0 else "strong" if on else "muted"
        yield Text.assemble((lead, "name" if on else "muted"), (cut(text, room) if text else "(empty)", style))
    more = len(listed) - start - _SEEN
    if more > 0:
        yield fold(f"… {more:,} more", width)


def part_words(part: dict[str, Any]) -> str:
    """Return the text or action of a message's part, not yet safe."""
    call, response = part.get("function_call"), part.get("function_response")
    if isinstance(call, dict):
        return call_text(string(call.get("name")), call.get("args"), _READ)
    if isinstance(response, dict):
        return f"{string(response.get('name'))} → {beginning(response.get('response'), _READ)}"
    text = part.get("text")
    return text if isinstance(text, str) else beginning(part, _READ)
