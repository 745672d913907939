"""Time and tokens of the parts of a conversation: a tree of spans of turns, agents, model calls and tool calls.

A span is reported with its turn. `pieces` (requests and responses) are reported once in a conversation, by their
digest. `docs/run-storage.md` has the shapes and limits.
"""

from __future__ import annotations

import contextvars
import operator
import re
import time
from typing import Any, NamedTuple

from .jsonable import digest, dumps

PIECE_LIMIT = 128 * 1024
"""Maximum size of one piece, in characters of JSON; a longer one is cut."""
PIECES_LIMIT = 8 * 1024 * 1024
"""Maximum size of a conversation's pieces together, in characters of JSON."""
SPANS_LIMIT = 20_000
"""Maximum number of spans reported for a conversation."""
_TEXT_LIMIT = 2_000
_GENERATED_ID = re.compile(r'"adk-[0-9a-f]{8}-[0-9a-f-]{27}"')
"""IDs that ADK generates for tool calls whose model gave none. Some models receive them."""

_CURRENT: contextvars.ContextVar[Span | None] = contextvars.ContextVar("agent_workbench_span", default=None)
_FAMILY = re.compile(r"(gemini|gemma|claude|gpt|o\d)-")
_VERSION = re.compile(r"[-@](\d{3,}|preview|exp)[\w.-]*")


class Span:
    """One timed activity. `facts` are further fields of its wire form."""

    __slots__ = ("children", "end", "facts", "key", "kind", "name", "number", "parent", "reached", "start", "trace")

    def __init__(self, trace: Trace, number: int, parent: Span | None, kind: str, name: str) -> None:
        self.trace, self.number, self.parent, self.kind, self.name = trace, number, parent, kind, name
        self.start = trace.now()
        self.end: float | None = None
        self.facts: dict[str, Any] = {}
        self.children: list[Span] = []
        """The child spans that are still open."""
        self.reached: float | None = None
        """The latest end of a child."""
        self.key: Any = None

    @property
    def is_open(self) -> bool:
        """Whether the activity has not ended yet."""
        return self.end is None

    def wire(self) -> dict[str, Any]:
        """Return the wire form of the span."""
        data: dict[str, Any] = {"id": self.number, "kind": self.kind, "name": self.name[:_TEXT_LIMIT]}
        if self.parent is not None:
            data["parent"] = self.parent.number
        data["start"] = round(self.start, 6)
        if self.end is not None:
            data["end"] = round(self.end, 6)
        data.update(self.facts)
        return data


class Trace:
    """The spans of one conversation. Seconds count from its beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._numbers = 0
        self._lost = 0
        self._spans: list[Span] = []
        self._turn: Span | None = None
        self._pieces: dict[str, str] = {}
        """The unreported pieces."""
        self._seen: dict[str, bool] = {}
        """Digest of every piece so far → whether it is stored."""
        self._plain: dict[str, str] = {}
        """Digest of a piece with generated IDs → digest of the same piece without them."""
        self.keeps_plain = False
        """Whether texts without generated IDs are kept for `take_plain`."""
        self._plain_texts: list[str] = []
        self._size = 0

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._began

    def begin_turn(self) -> Span:
        """Open and return the span of a turn. Everything until `end_turn` is part of it."""
        self._turn = self._new("turn", "", None)
        _CURRENT.set(self._turn)
        return self._turn

    def end_turn(self, error: str = "", note: str = "") -> None:
        """Close the turn."""
        if self._turn is not None:
            self.close(self._turn, error=error, note=note)
            self._turn = None

    @property
    def current(self) -> Span | None:
        """The open span of this conversation that the current task is in, else the turn, or None outside of turns."""
        span = _CURRENT.get()
        return span if span is not None and span.trace is self and span.is_open else self._turn

    def open(self, kind: str, name: str, parent: Span | None = None, *, inside: bool = True) -> Span:
        """Open and return a span in `parent` or the current one. With `inside`, this task's next spans are in it."""
        span = self._new(kind, name, parent or self.current)
        if inside:
            _CURRENT.set(span)
        return span

    def close(self, span: Span, *, error: str = "", note: str = "") -> None:
        """Close a span and the spans still open in it. Closing it again moves its end."""
        for child in tuple(span.children):
            self._close_unreported(child)
        self._close(span, self.now(), error, note)

    def _close_unreported(self, span: Span) -> None:
        """Close a span at its last known activity. ADK does not report the end of an agent that transferred."""
        for child in tuple(span.children):
            self._close_unreported(child)
        end = span.reached if span.reached is not None else self.now()
        self._close(span, end, "", "its end was not reported; shown up to its last known activity")

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
        """Set the tokens that a model call has used so far."""
        if usage.input_tokens or usage.output_tokens:
            span.facts["tokens"] = [usage.input_tokens, usage.output_tokens]

    def _new(self, kind: str, name: str, parent: Span | None) -> Span:
        self._numbers += 1
        span = Span(self, self._numbers, parent, kind, name)
        if self._numbers <= SPANS_LIMIT:
            self._spans.append(span)
        else:
            self._lost += 1
        if parent is not None:
            parent.children.append(span)
        return span

    def piece(self, value: Any) -> str:
        """Store a value and return its digest. A long value is cut. Nothing is stored beyond `PIECES_LIMIT`."""
        text = dumps(value)
        name = digest(text)
        if name not in self._seen:
            if '"adk-' in text:
                plain = plain_text(text)
                self._plain[name] = digest(plain)
                if self.keeps_plain:
                    self._plain_texts.append(plain)
            if len(text) > PIECE_LIMIT:
                text = dumps({"cut_at": PIECE_LIMIT, "characters": len(text), "begins": text[:PIECE_LIMIT]})
            kept = self._size + len(text) <= PIECES_LIMIT
            self._seen[name] = kept
            if kept:
                self._size += len(text)
                self._pieces[name] = text
        return name

    def plain(self, piece: str) -> str:
        """Return the digest that the piece with this digest has without generated IDs. Other texts stay unchanged."""
        return self._plain.get(piece, piece)

    def take_plain(self) -> list[str]:
        """Return and forget the new pieces that had generated IDs, as JSON texts without these IDs."""
        texts, self._plain_texts = self._plain_texts, []
        return texts

    @property
    def is_full(self) -> bool:
        """Whether the pieces have nearly reached `PIECES_LIMIT`. Requests are then no longer stored."""
        return self._size > PIECES_LIMIT * 0.95

    def take(self) -> dict[str, Any] | None:
        """Return the new `spans` as JSON text and the new `pieces` (digest → JSON text), or None without new spans."""
        if not self._spans:
            return None
        spans, pieces, lost = self._spans, self._pieces, self._lost
        self._spans, self._pieces, self._lost = [], {}, 0
        data: list[dict[str, Any]] = [span.wire() for span in spans]
        if lost:
            data.append({"id": -1, "kind": "lost", "name": str(lost), "start": spans[-1].start})
        return {"spans": dumps(data), "pieces": pieces}


class Contents:
    """The growing list of contents in an agent's model requests.

    A request refers to the earlier request that it extends. The shared beginning is reported only once.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._last: dict[str, tuple[int, list[str]]] = {}
        """Agent → the span number of its newest request, and the digests of its contents."""
        self._known: dict[int, tuple[Any, str]] = {}
        """The objects of the newest request, most of which are in the next one too."""

    def digests(self, contents: list[Any], dump: Any) -> list[str]:
        """Store the contents of a request as pieces, and return the digest of each."""
        known: dict[int, tuple[Any, str]] = {}
        names: list[str] = []
        for content in contents:
            seen = self._known.get(id(content))
            name = seen[1] if seen is not None and seen[0] is content else self._trace.piece(dump(content))
            known[id(content)] = (content, name)
            names.append(name)
        self._known = known
        return names

    def delta(self, agent: str, number: int, names: list[str]) -> dict[str, Any]:
        """Return the contents of a request, given as digests, as their difference from the agent's last request.

        In `{"base", "same", "more"}`, the first `same` contents equal those of the request in span `base`, and `more`
        are the others. If the first content differs, the result is `{"more"}`. The agent's next request is compared
        with this one, in span `number`.
        """
        base, before = self._last.get(agent, (0, []))
        self._last[agent] = (number, names)
        same = 0
        while same < min(len(before), len(names)) and before[same] == names[same]:
            same += 1
        return {"base": base, "same": same, "more": names[same:]} if same else {"more": names}


def plain_text(text: str) -> str:
    """Return a JSON text without the IDs that ADK generates, which differ in each conversation."""
    return _GENERATED_ID.sub('""', text) if '"adk-' in text else text


def plain_digest(text: str) -> str:
    """Return the digest of a JSON text without the IDs that ADK generates."""
    return digest(plain_text(text))


class Usage(NamedTuple):
    """Numbers of model calls and tokens. They are 0 if nothing was reported."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(*map(operator.add, self, other))


def usage_of(metadata: Any) -> Usage:
    """Return the tokens of a model's `usage_metadata` (an object or None).

    They are counted as in ADK's evaluation: tool-use prompts are input, thoughts are output.
    """
    if metadata is None:
        return Usage()
    return Usage(
        0,
        _count(metadata, "prompt_token_count") + _count(metadata, "tool_use_prompt_token_count"),
        _count(metadata, "candidates_token_count") + _count(metadata, "thoughts_token_count"),
    )


def _count(metadata: Any, name: str) -> int:
    return getattr(metadata, name, None) or 0


def model_name(model: str) -> str:
    """Return a model's name in lower case, without its provider or project."""
    return model.rpartition("/")[2].lower()


def is_other_model(asked: str, answered: str) -> bool:
    """Return whether a reply came from another model than the one asked for.

    Versions of a model (`-001`, `@20250929`, `-preview-09-2025`) are the same model. Aliases (`-latest`) and names of
    deployments say nothing about the model behind them.
    """
    first, second = model_name(asked), model_name(answered)
    if first == second or first.endswith("latest") or not (_FAMILY.match(first) and _FAMILY.match(second)):
        return False
    short, long = sorted((first, second), key=len)
    return not (long.startswith(short) and _VERSION.fullmatch(long[len(short) :]))
