"""The spans of a turn as a tree, and the requests and answers that they name (wire form: `docs/run-storage.md`).

Without recorded spans (an old run, a report), the tree is made from the turn's events and has no times. Requests to
models and tools and their answers are pieces of JSON. Each piece is stored once per run, and read only when it is
needed. A span or a recorded call names its pieces by digest. If the run is stored, its event has the number of each
piece in the database.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from workbench.events.events import CallsRecorded, SpansRecorded
from workbench.store.database.database import database
from workbench.store.database.values import get_piece
from workbench.text.json_values import mapping, parts_of, string

Kind: TypeAlias = Literal["turn", "agent", "model", "tool"]
_KINDS = frozenset(get_args(Kind))
_MAX_SECONDS = 1e9
"""Larger values are not accepted as times."""
_MAX_DEPTH = 60
"""Deeper nodes are shown at this depth."""


@dataclass(slots=True, eq=False)
class Node:
    """A span.

    `start` and `end` are seconds since the conversation began; `end` is None if it never ended. `facts` are the other
    fields of the wire form.
    """

    number: int
    turn: int
    kind: Kind
    name: str
    start: float = 0.0
    end: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    parent: "Node | None" = None
    children: "list[Node]" = field(default_factory=list)
    depth: int = 0
    events: tuple[int, ...] = ()
    """Indexes of the turn's recorded events that it produced."""

    @property
    def seconds(self) -> float | None:
        """The duration in seconds, or None if unknown."""
        return None if self.end is None else max(self.end - self.start, 0.0)

    @property
    def error(self) -> str:
        """The error that ended it, or ""."""
        return string(self.facts.get("error"))

    @property
    def note(self) -> str:
        """The remark recorded with the span, or ""."""
        return string(self.facts.get("note"))

    @property
    def recalled(self) -> bool:
        """Whether this model call was answered before the run was interrupted. Its duration is unknown."""
        return self.facts.get("recalled") is True

    @property
    def frozen(self) -> bool:
        """Whether the call was answered from a recording. The duration of such a call says nothing."""
        return self.facts.get("frozen") is True

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Input and output tokens of this call alone, or None if not reported."""
        tokens = self.facts.get("tokens")
        if isinstance(tokens, list) and len(tokens) == 2 and all(type(count) is int for count in tokens):
            return tokens[0], tokens[1]
        return None

    def walk(self) -> "Iterator[Node]":
        """Yield the node and all its descendants, parents first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def path(self) -> "list[Node]":
        """The nodes from the turn to this one."""
        found: list[Node] = [self]
        while (parent := found[-1].parent) is not None:
            found.append(parent)
        return found[::-1]


@dataclass(slots=True)
class TurnTrace:
    """The trace of one turn.

    `root` has the kind "turn". `timed` tells whether times are known. `lost` is the number of spans beyond the
    recording limit. `trouble` says why recorded spans cannot be shown, or is "".
    """

    root: Node
    timed: bool = True
    lost: int = 0
    trouble: str = ""


def read_turn(turn: int, recorded: SpansRecorded | None, events: list[Any]) -> TurnTrace:
    """Return the tree of a turn, made from `events` (the recorded invocation events) if its spans cannot be read."""
    if recorded is None:
        return TurnTrace(_from_events(turn, events), timed=False)
    try:
        items = json.loads(recorded.spans)
        if not isinstance(items, list):
            raise ValueError("not a list")
    except (ValueError, RecursionError) as error:
        return TurnTrace(
            _from_events(turn, events), timed=False, trouble=f"the spans of this turn cannot be read: {error}"
        )
    return _tree(turn, items, len(events))


def _tree(turn: int, items: list[Any], events: int) -> TurnTrace:
    trace = TurnTrace(Node(0, turn, "turn", ""))
    nodes: dict[int, Node] = {}
    for item in items:
        if not isinstance(item, dict):
            continue
        if item.get("kind") == "lost":
            number = str(item.get("name"))[:20]  # Python refuses to read thousands of digits.
            trace.lost = int(number) if number.isdecimal() else 0
            continue
        node = _node(turn, item, events)
        if node is None or node.number in nodes:
            continue
        nodes[node.number] = node
        if node.kind == "turn":
            trace.root = node
            continue
        # Parents come before their children, so there can be no cycle.
        parent = nodes.get(_int(item.get("parent")), trace.root)
        node.parent, node.depth = parent, min(parent.depth + 1, _MAX_DEPTH)
        parent.children.append(node)
    if trace.root.number == 0 and trace.root.children:
        trace.root.start = min(child.start for child in trace.root.children)
    return trace


def _node(turn: int, item: dict[str, Any], events: int) -> Node | None:
    kind, began = item.get("kind"), _time(item.get("start"))
    if not isinstance(kind, str) or kind not in _KINDS or began is None:
        return None
    number, name, end = _int(item.get("id")), string(item.get("name")), _time(item.get("end"))
    node = Node(number, turn, cast(Kind, kind), name, began, end, item)
    given = item.get("events")
    if given and isinstance(given, list):
        node.events = tuple(n for n in given if type(n) is int and 0 <= n < events)
    return node


def _from_events(turn: int, events: list[Any]) -> Node:
    """Return the tree of a turn without spans. Consecutive events of one agent share a node.

    Each event that is not only tool responses becomes a model call, and each function call a tool call.
    """
    root = Node(0, turn, "turn", "")
    agent: Node | None = None
    calls: dict[str, Node] = {}
    count = 0
    for number, event in enumerate(events):
        if not isinstance(event, dict):
            continue
        author = string(event.get("author"))
        parts = parts_of(event.get("content"))
        for part in parts:
            response = part.get("function_response")
            if isinstance(response, dict) and (call := calls.get(string(response.get("id") or response.get("name")))):
                call.facts["answer"] = response.get("response")
                call.events = (*call.events, number)
        if parts and all("function_response" in part for part in parts):
            continue
        if agent is None or agent.name != author:
            count += 1
            agent = _add_child(root, Node(count, turn, "agent", author))
        count += 1
        model = _add_child(agent, Node(count, turn, "model", string(event.get("model_version")), events=(number,)))
        usage = event.get("usage_metadata")
        if isinstance(usage, dict):
            model.facts["tokens"] = [
                _int(usage.get("prompt_token_count")) + _int(usage.get("tool_use_prompt_token_count")),
                _int(usage.get("candidates_token_count")) + _int(usage.get("thoughts_token_count")),
            ]
        for part in parts:
            function_call = part.get("function_call")
            if isinstance(function_call, dict):
                count += 1
                name, call_id = string(function_call.get("name")), string(function_call.get("id"))
                facts = {"call": call_id, "asked": function_call.get("args")}
                call = _add_child(agent, Node(count, turn, "tool", name, facts=facts, events=(number,)))
                calls[call_id or name] = call
    return root


def _add_child(parent: Node, node: Node) -> Node:
    node.parent, node.depth = parent, parent.depth + 1
    parent.children.append(node)
    return node


def _time(value: Any) -> float | None:
    is_one = (type(value) is float or type(value) is int) and -_MAX_SECONDS < value < _MAX_SECONDS
    return float(value) if is_one else None


def _int(value: Any) -> int:
    return value if type(value) is int else 0


class PieceLostError(Exception):
    """A piece that cannot be shown. The message tells the user why."""


Recorded: TypeAlias = SpansRecorded | CallsRecorded
"""An event whose texts name pieces."""


def is_cut(text: str) -> bool:
    """Return whether the JSON text of a piece is only the beginning of a long one (`docs/run-storage.md`)."""
    return text.startswith('{"cut_at":')


class Pieces:
    """The pieces of one case.

    The first of `events` that has a piece counts. Pieces of spans may be cut, so give calls before spans to read whole
    pieces. `state` is the state folder with the runs, or None.
    """

    def __init__(self, events: Iterable[Recorded], state: Path | None) -> None:
        self._events, self.state = tuple(events), state
        self._numbers: dict[int, dict[str, Any]] = {}

    def read(self, digest: str) -> Any:
        """Return the piece as JSON data.

        Raises:
            PieceLostError: The piece was not stored, is missing or is damaged.
        """
        for index, event in enumerate(self._events):
            if digest in event.pieces:
                return _parsed(event.pieces[digest])
            number = self._kept(index).get(digest)
            if number is not None:
                return self._stored(event.kept_in, number)
        raise PieceLostError("not recorded: the conversation was too large, or the agent did not report it")

    def _kept(self, index: int) -> dict[str, Any]:
        if index not in self._numbers:
            try:
                read = json.loads(self._events[index].kept or "{}")
            except (ValueError, RecursionError):
                read = {}
            self._numbers[index] = read if isinstance(read, dict) else {}
        return self._numbers[index]

    def _stored(self, run_id: str, number: Any) -> Any:
        if self.state is None:
            raise PieceLostError(f"it is stored with run {run_id}, which is not available")
        known = number if isinstance(number, int) else -1
        try:
            text = database(self.state).read(lambda connection: get_piece(connection, run_id, known))
        except OSError as error:
            raise PieceLostError(f"the recording of run {run_id} cannot be read: {error.strerror or error}") from None
        if text is None:
            raise PieceLostError(f"the recording of run {run_id} is deleted or damaged")
        return _parsed(text)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieceLostError(f"it cannot be read: {error}") from None


_MAX_CHAIN = 20_000


def content_digests(node: Node, models: Mapping[int, Node]) -> list[str]:
    """Return the digests of all contents of a request, in order.

    `models` are the model calls of the conversation by number: a request names an earlier one with the same beginning.
    The result is empty if the request was not recorded.
    """
    chain: list[tuple[int | None, list[str]]] = []
    current: Node | None = node
    seen: set[int] = set()
    while current is not None and len(chain) < _MAX_CHAIN and current.number not in seen:
        seen.add(current.number)
        request = request_of(current)
        more = request.get("more")
        base, same = request.get("base"), request.get("same")
        shares = isinstance(base, int) and isinstance(same, int) and base in models
        chain.append((same if shares else None, [str(name) for name in more] if isinstance(more, list) else []))
        current = models[base] if shares and isinstance(base, int) else None
    found: list[str] = []
    for same, more in reversed(chain):
        del found[same if same is not None else 0 :]
        found += more
    return found


def request_of(node: Node) -> dict[str, Any]:
    """Return the fields of a node's request, or {}: digests of `system` instruction, `tools`, `config` and contents."""
    return mapping(node.facts.get("request"))


def tool_names(tools: Any) -> list[str]:
    """Return the names of the functions in a request's `tools`."""
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        declared = tool.get("function_declarations") if isinstance(tool, dict) else None
        for function in declared if isinstance(declared, list) else ():
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                found.append(function["name"])
    return found
