"""What took how long in a conversation: spans of its turns, agents, model calls and tool calls, as a tree.

A span is told with its turn, `pieces` (what was asked and answered) each once a conversation, by their digest. Shapes
and limits are in `docs/trace.md`.
"""

from __future__ import annotations

import contextvars
import hashlib
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from .jsonable import dumps
from .usage import Usage

PIECE_LIMIT = 128 * 1024
"""Characters of JSON that one piece may have; a longer one is cut."""
PIECES_LIMIT = 8 * 1024 * 1024
"""Characters of JSON that the pieces of one conversation may have together."""
SPANS_LIMIT = 20_000
"""Spans that are told of one conversation."""
_TEXT_LIMIT = 2_000
_MADE_UP = re.compile(r'"adk-[0-9a-f]{8}-[0-9a-f-]{27}"')
"""Ids that ADK makes up for calls of tools whose model gave them none; some models are told of them."""
_UNTOLD = "its end was not told: shown up to the last thing that was seen in it"

_CURRENT: contextvars.ContextVar[Optional[Span]] = contextvars.ContextVar("agent_workbench_span", default=None)


class Span:
    """Something that takes time. `facts` are further fields of its wire form."""

    __slots__ = ("children", "end", "facts", "key", "kind", "name", "number", "parent", "reached", "start", "trace")

    def __init__(self, trace: Trace, number: int, parent: Optional[Span], kind: str, name: str) -> None:
        self.trace, self.number, self.parent, self.kind, self.name = trace, number, parent, kind, name
        self.start = trace.now()
        self.end: Optional[float] = None
        self.facts: Dict[str, Any] = {}
        self.children: List[Span] = []
        """Those that are still open."""
        self.reached: Optional[float] = None
        """When the newest of its children ended."""
        self.key: Any = None

    @property
    def is_open(self) -> bool:
        return self.end is None

    def wire(self) -> Dict[str, Any]:
        said: Dict[str, Any] = {"id": self.number, "kind": self.kind, "name": self.name[:_TEXT_LIMIT]}
        if self.parent is not None:
            said["parent"] = self.parent.number
        said["start"] = round(self.start, 6)
        if self.end is not None:
            said["end"] = round(self.end, 6)
        said.update(self.facts)
        return said


class Trace:
    """The spans of one conversation. Seconds count from its beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._numbers = 0
        self._lost = 0
        self._spans: List[Span] = []
        self._turn: Optional[Span] = None
        self._pieces: Dict[str, str] = {}
        """Those that were not told yet."""
        self._told: Dict[str, bool] = {}
        """Digest of every piece so far, and whether it is kept."""
        self._plain: Dict[str, str] = {}
        """Digest of a piece with ids that were made up → that of the same without them."""
        self._size = 0

    def now(self) -> float:
        return time.monotonic() - self._began

    # Spans

    def begin_turn(self) -> Span:
        """Everything until `end_turn` is inside of this one."""
        self._turn = self._new("turn", "", None)
        _CURRENT.set(self._turn)
        return self._turn

    def end_turn(self, error: str = "", note: str = "") -> None:
        if self._turn is not None:
            self.close(self._turn, error=error, note=note)
            self._turn = None

    @property
    def current(self) -> Optional[Span]:
        """What this task is in the middle of."""
        span = _CURRENT.get()
        return span if span is not None and span.trace is self and span.is_open else self._turn

    def open(self, kind: str, name: str, parent: Optional[Span] = None, *, inside: bool = True) -> Span:
        """Begins a span in `parent`, else in the current one; with `inside` what this task does next belongs to it."""
        span = self._new(kind, name, parent or self.current)
        if inside:
            _CURRENT.set(span)
        return span

    def close(self, span: Span, *, error: str = "", note: str = "") -> None:
        """Ends a span, and what is still open in it. One that has ended already ends later now."""
        for child in tuple(span.children):
            self._close_untold(child)
        self._close(span, self.now(), error, note)

    def _close_untold(self, span: Span) -> None:
        """ADK does not say that an agent has ended which handed over to another: it is taken to end with the last
        thing that was seen in it."""
        for child in tuple(span.children):
            self._close_untold(child)
        self._close(span, span.reached if span.reached is not None else self.now(), "", _UNTOLD)

    def _close(self, span: Span, end: float, error: str, note: str) -> None:
        span.end = end
        if error:
            span.facts["error"] = error[:_TEXT_LIMIT]
        if note:
            span.facts.setdefault("note", note)
        if span.parent is not None:
            span.parent.reached = max(end, span.parent.reached or 0.0)
            if span in span.parent.children:
                span.parent.children.remove(span)
        if _CURRENT.get() is span:
            _CURRENT.set(span.parent)

    def spend(self, span: Span, usage: Usage) -> None:
        """The tokens that a model call has taken so far."""
        if usage.input_tokens or usage.output_tokens:
            span.facts["tokens"] = [usage.input_tokens, usage.output_tokens]

    def _new(self, kind: str, name: str, parent: Optional[Span]) -> Span:
        self._numbers += 1
        span = Span(self, self._numbers, parent, kind, name)
        if self._numbers <= SPANS_LIMIT:
            self._spans.append(span)
        else:
            self._lost += 1
        if parent is not None:
            parent.children.append(span)
        return span

    # Pieces

    def piece(self, value: Any) -> str:
        """Keeps a value; what it is called."""
        text = dumps(value)
        digest = _digest(text)
        if digest not in self._told:
            if '"adk-' in text:
                self._plain[digest] = _digest(_MADE_UP.sub('""', text))
            if len(text) > PIECE_LIMIT:
                text = dumps({"cut_at": PIECE_LIMIT, "characters": len(text), "begins": text[:PIECE_LIMIT]})
            kept = self._size + len(text) <= PIECES_LIMIT
            self._told[digest] = kept
            if kept:
                self._size += len(text)
                self._pieces[digest] = text
        return digest

    def together(self, pieces: List[Optional[str]]) -> str:
        """One digest of several pieces; the same in every conversation that goes the same way."""
        return _digest(dumps([self._plain.get(piece or "", piece) for piece in pieces]))

    @property
    def is_full(self) -> bool:
        """No more pieces will be kept."""
        return self._size > PIECES_LIMIT * 0.95

    # Telling

    def take(self) -> Optional[Dict[str, Any]]:
        """What was not told yet: `spans` as JSON text, `pieces` (digest → JSON text). None if there is nothing."""
        if not self._spans:
            return None
        spans, pieces, lost = self._spans, self._pieces, self._lost
        self._spans, self._pieces, self._lost = [], {}, 0
        said: List[Dict[str, Any]] = [span.wire() for span in spans]
        if lost:
            said.append({"id": -1, "kind": "lost", "name": str(lost), "start": spans[-1].start})
        return {"spans": dumps(said), "pieces": pieces}


class Contents:
    """The growing list of contents that a model is asked with: a request names the earlier one that it goes on from,
    so that the same beginning is not told again and again."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._last: Dict[str, Tuple[int, List[str]]] = {}
        """Agent → the number of the span of its newest request, and what that was made of."""
        self._known: Dict[int, Tuple[Any, str]] = {}
        """The objects of the newest request: most are in the next one again."""

    def names(self, contents: List[Any], dump: Any) -> List[str]:
        """What each content is called as a piece."""
        known: Dict[int, Tuple[Any, str]] = {}
        names: List[str] = []
        for content in contents:
            seen = self._known.get(id(content))
            name = seen[1] if seen is not None and seen[0] is content else self._trace.piece(dump(content))
            known[id(content)] = (content, name)
            names.append(name)
        self._known = known
        return names

    def told(self, agent: str, number: int, names: List[str]) -> Dict[str, Any]:
        """`{"base", "same", "more"}`: the first `same` contents are those of the request of span `base`."""
        base, before = self._last.get(agent, (0, []))
        self._last[agent] = (number, names)
        same = 0
        while same < min(len(before), len(names)) and before[same] == names[same]:
            same += 1
        return {"base": base, "same": same, "more": names[same:]} if same else {"more": names}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("ascii"), digest_size=10).hexdigest()
