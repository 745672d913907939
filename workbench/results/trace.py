"""The pane "Trace": for each turn, a tree of steps with a waterfall of times.

Rows are created when they become visible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from workbench.files.prices import Prices, money
from workbench.results.calls import call_text
from workbench.results.document import Document, Item, Rows, Subject, Target
from workbench.results.error import error_lines
from workbench.results.frozen import frozen_lines
from workbench.results.judged import message_text
from workbench.results.lines import (
    Line,
    View,
    cut_line,
    fold,
    hang,
    hang_text,
    heading,
    labelled,
    remark,
    rule,
    safe,
    wrap,
)
from workbench.results.machines import lost_words, placed_words
from workbench.results.sections import add_plugin_sections
from workbench.results.texts import compact
from workbench.results.trace_reading import (
    Columns,
    Scale,
    TraceRead,
    TurnRead,
    cached_trace,
    conversation_lines,
    duration,
    name_of,
    own_events,
    row_line,
    visited_names,
)
from workbench.results.trace_sections import add_sections, graph_lines
from workbench.store.execution import CaseRecord, Turn
from workbench.store.spans import Node, TurnTrace
from workbench.text.counting import counted
from workbench.text.json_values import parts_of
from workbench.text.safe_text import one_line, plain

_BRIEF_OUTPUT = 200
_MOST_ROWS = 2_000
"""Maximum number of rows of a case in an export. The screen shows all rows."""
_WORDS = {"agent": "agent", "model": "model call", "tool": "tool call", "turn": "turn"}
AGENT = "agent/"
"""Prefix of the place of an agent's row. Its turn and its name follow."""


def output_lines(stream: str, text: str, view: View) -> Iterator[Line]:
    """Yield the agent's output on a stream, below a heading. Unless the view is full, only its last lines are shown."""
    yield heading(f"the agent's {stream}", view.width)
    lines = text.rstrip("\n").split("\n")
    if not view.full and len(lines) > _BRIEF_OUTPUT:
        # The newest lines are the ones that explain a failure.
        yield fold(f" … {counted(len(lines) - _BRIEF_OUTPUT, 'more line')} above", view.width)
        lines = lines[-_BRIEF_OUTPUT:]
    yield from hang_text(Text(), Text(plain("\n".join(lines), limit=400_000)), view.width - 1, 1)


def add_turn(document: Document, index: int, turn: Turn, view: View) -> None:
    """Add the steps of turn `index` (from 0). Other panes can refer to each step."""
    if turn.note:
        document.add(_entry("note", safe(turn.note, "status-error"), view))
    for step in steps(turn):
        names = [f"{name[0]}/{index}{name[1]}" for name in step.names]
        document.add_place(names, step_lines(step, view))


def step_lines(step: "Step", view: View) -> Iterator[Line]:
    """Yield a step with its kind and author. A long step is cut unless the view is full."""
    head = Text.styled(f"{step.author}  ", "name") if step.author else Text()
    return _entry(step.kind, head + step.body, view)


def _entry(kind: str, body: Text, view: View) -> Iterator[Line]:
    lines = wrap(body, max(view.width - 11, 10))
    if not view.full and len(lines) > 12:
        lines = [*lines[:10], fold(f"… {counted(len(lines) - 10, 'more line')}", view.width - 11)]
    yield from hang(Text.styled(f" {kind}", "label"), lines, 10)


class Step(NamedTuple):
    """A step of a turn. A name such as ("call", "/7") becomes the place `call/TURN/7`, to which other panes refer."""

    kind: str
    author: str
    body: Text
    names: tuple[tuple[str, str], ...] = ()


def steps(turn: Turn) -> Iterator[Step]:
    """Yield all readable steps of the turn in order."""
    yield Step("user", "", safe(message_text(turn.user)), (("user", ""),))
    last = ""
    for number, event in enumerate(turn.events):
        if isinstance(event, dict):
            for step in _event_steps(event):
                last = step.body.plain
                yield step._replace(names=(("event", f"/{number}"), *step.names))
    if turn.actual is not None:
        answer = plain(message_text(turn.actual.get("final_response")))
        if not answer or answer != last:
            yield Step("answer", "", Text(answer or "nothing"), (("answer", ""),))


def _event_steps(event: dict[str, Any]) -> Iterator[Step]:
    author = one_line(str(event.get("author") or ""))
    for part in parts_of(event.get("content")):
        call, response = part.get("function_call"), part.get("function_response")
        if isinstance(call, dict):
            body = safe(call_text(call.get("name"), call.get("args")))
            yield Step("call", author, body, (("call", f"/{call.get('id')}"),))
        elif isinstance(response, dict):
            body = safe(f"{response.get('name')} → {compact(response.get('response'))}")
            yield Step("result", author, body, (("result", f"/{response.get('id')}"),))
        elif isinstance(part.get("text"), str):
            yield Step("thought" if part.get("thought") else "says", author, safe(part["text"]))
        else:
            yield Step("part", author, safe(compact(part)))


def add_rows(document: Document, read: TraceRead, turn: TurnRead, columns: Columns, view: View) -> None:
    """Add the rows of a turn, with the sections of unfolded rows."""
    root = turn.trace.root
    # A turn without an end lasts until its last known time.
    seconds = root.seconds or max((node.end or node.start for node in root.walk()), default=root.start) - root.start
    scale, currency = Scale(root.start, seconds), read.prices.currency if read.prices else ""

    def line(number: int) -> Line:
        node, opened = turn.nodes[number], view.is_open(turn.keys[number])
        total = turn.totals[node.number]
        return row_line(node, turn.branches[number], total, columns, scale, currency, opened=opened)

    def item(number: int, start: int) -> Item:
        node, aside = turn.nodes[number], partial(_aside, read, turn.nodes[number])
        return Item(turn.keys[number], start, start + 1, opens=True, targets=_targets(node), aside=aside, heads=True)

    rows = Rows(turn.keys, line, item, lambda number: _places(turn.nodes[number]))
    first = 0
    for number in [number for number, key in enumerate(turn.keys) if view.is_open(key)]:
        document.add_rows(rows, range(first, number + 1))
        add_sections(document, read, turn.nodes[number], turn.keys[number], view)
        first = number + 1
    document.add_rows(rows, range(first, len(turn.keys)))


def _places(node: Node) -> list[str]:
    call = node.facts.get("call")
    found = [f"call/{node.turn}/{call}", f"result/{node.turn}/{call}"] if isinstance(call, str) and call else []
    found += [f"event/{node.turn}/{event}" for event in node.events]
    return found


def _targets(node: Node) -> tuple[Target, ...]:
    """Return the places of a row, or of the nearest row with events, in other panes."""
    places = _places(node)
    if not node.events:
        above = next((part for part in reversed(node.path[1:-1]) if part.events), None)
        near = above or next((part for part in node.walk() if part.events), None)
        places += _places(near) if near is not None else ()
    agent = [f"{AGENT}{node.turn}/{node.name}"] if node.kind == "agent" else []
    names = (*agent, *places, f"user/{node.turn}")
    return (Target("Evidence", names), Target("Conversation", names))


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane: the turns, the agent's output, and the error that ended the case."""
    record = subject.record
    document = Document()
    if record is None or (not record.turns and not record.finished):
        document.add(remark("The case has not run yet.", view))
        return document
    document.add(_where(record, view))
    if not record.turns:
        document.add(remark("No turn took place.", view))
    else:
        add_trace(document, record.turns, subject.state, subject.prices, view, going=not record.finished, steps=True)
    printed = [stream for stream in ("stdout", "stderr") if record.output.get(stream)]
    for stream in printed:
        document.gap()
        document.add(output_lines(stream, record.output[stream], view))
    if record.finished and not printed:
        document.gap()
        document.add(remark("The agent printed nothing to stdout or stderr.", view))
    if record.error is not None:
        document.gap()
        document.add(error_lines(record.error, view, traceback=True))
    add_plugin_sections(document, "Trace", subject, view)
    return document


def _where(record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield the machine of the case, its lost attempts, and its recording if it was replayed."""
    words = [placed_words(record)] if record.machine else []
    if record.attempt > 1 and not record.lost:
        words.append(f"attempt {record.attempt}: the agent's process was lost in attempt {record.attempt - 1}")
    for word in (*words, *map(lost_words, record.lost)):
        yield from remark(f"{word[0].upper()}{word[1:]}.", view)
    if record.frozen is not None:
        yield from frozen_lines(record.frozen, view)


def add_trace(
    document: Document,
    turns: Sequence[Turn],
    state: Path | None,
    prices: Prices | None,
    view: View,
    *,
    going: bool = False,
    steps: bool = False,
) -> None:
    """Add the turns of a conversation.

    `state` is the state folder with the runs. `going` says whether the last turn may still run and lack times.
    With `steps`, each turn ends with the full text of its steps, folded.
    """
    read = cached_trace(turns, state, prices)
    timed = any(turn.trace.timed for turn in read.turns)
    columns = Columns.fitting(view.width, timed=timed, priced=bool(prices))
    for number, turn in enumerate(read.turns):
        document.begin_turn()
        document.add_place([f"user/{number}"], [_heading(read, number, view.width)])
        last = going and number == len(turns) - 1 and turn.turn.spans is None
        document.add(_remarks(turn.trace, view.width, going=last))
        add_rows(document, read, turn, columns, view)
        if steps:
            _add_steps(document, number, turn.turn, view)
    first_error = next(filter(None, (turn.first_error for turn in read.turns)), "")
    document.opening_item = document.item_named(first_error) or 0


def _add_steps(document: Document, number: int, turn: Turn, view: View) -> None:
    """Add the steps of a turn as a foldable item. If the turn ended early, a note comes first."""
    if turn.note:
        document.add(_note(plain(turn.note), view.width, "status-error"))
    key = f"steps/{number}"
    opened = view.is_open(key)
    found = list(steps(turn))
    style = "label" if opened else "fold"
    words = f" {'▾' if opened else '▸'} full text of {counted(len(found), 'step')}"
    head = cut_line(Text.styled(words, style), view.width)
    full = replace(view, full=True)
    document.add_item(key, [head, *(line for step in found if opened for line in step_lines(step, full))], opens=True)


def _heading(read: TraceRead, number: int, width: int) -> Line:
    turn = read.turns[number]
    trace, total = turn.trace, turn.totals[turn.trace.root.number]
    end: list[str] = []
    if total.calls:
        end.append(counted(total.calls, "model call"))
    if read.prices and total.calls and total.cost is not None:
        end.append(money(total.cost, read.prices.currency))
    if trace.timed and trace.root.seconds is not None:
        end.append(duration(trace.root.seconds))
    asked = one_line(message_text(turn.turn.user), limit=200)
    title = Text.assemble((f"turn {number + 1}  ", "heading"), (asked, "user"))
    ending = " · ".join(end) if width >= 50 else end[-1] if end else ""
    return rule(title, Text.styled(ending, "muted") if ending else Text(), width)


def _remarks(trace: TurnTrace, width: int, *, going: bool) -> Iterator[Line]:
    if going:
        yield from _note("still running; times appear when it ends", width)
    elif not trace.timed:
        yield from _note(plain(trace.trouble) or "recorded without times; rebuilt from the events", width)
    if trace.root.error and not any(child.error == trace.root.error for child in trace.root.children):
        yield from _note(plain(trace.root.error), width, "status-error")
    if trace.root.note:
        yield from _note(f"incomplete trace: {plain(trace.root.note)}", width)
    if trace.lost:
        yield from _note(f"not recorded: {counted(trace.lost, 'more step')}", width)
    if not trace.root.children and not going:
        yield from _note("no steps were recorded", width)


def _aside(read: TraceRead, node: Node, width: int) -> Iterator[Line]:
    """Yield the details of a row (message, cost and path) as lines of at most `width` cells."""
    lines = chain(
        [Text.assemble((f"{_WORDS[node.kind]} ", "label"), (name_of(node), "strong"))],
        conversation_lines(read.turns[node.turn].messages, own_events(node), width),
        [rule(Text(), Text(), width)],
        *(labelled(name, body, width) for name, body in _facts(read, node)),
        [rule(Text.styled("path", "label"), Text(), width)],
        graph_lines(read, node, width),
    )
    return (cut_line(line, width) for line in lines)


def _facts(read: TraceRead, node: Node) -> Iterator[tuple[str, Text]]:
    trace, total = read.turns[node.turn].trace, read.turns[node.turn].totals[node.number]
    if node.error:
        yield "error", safe(node.error, "status-error")
    if node.note:
        yield "note", safe(node.note, "muted")
    if trace.timed:
        began = f"{duration(max(node.start - trace.root.start, 0.0))} into the turn"
        seconds = node.seconds
        yield "time", Text(f"{'never ended' if seconds is None else duration(seconds)}, {began}")
    if total.calls:
        usage = f"{total.read:,} in, {total.written:,} out" if total.read or total.written else "not reported"
        yield "tokens", Text(usage if node.kind == "model" else f"{usage}, in {counted(total.calls, 'model call')}")
    if total.calls and read.prices:
        cost = "unknown: no price or no token counts" if total.cost is None else money(total.cost, read.prices.currency)
        yield "cost", Text.styled(cost, "" if total.cost is not None else "muted")
    if node.events:
        yield "event", Text.styled("highlighted above", "evidence-for")
    within = next((part for part in reversed(node.path[:-1]) if part.kind == "tool"), None)
    if within is not None:
        name = one_line(within.name, limit=100)
        yield "inside", Text(f"the tool {name}; trajectory criteria ignore it")


def _note(words: str, width: int, style: str = "muted") -> Iterator[Line]:
    return hang_text(Text(), Text.styled(words, style), width - 1, 1)


def trace_lines(record: CaseRecord, width: int) -> Iterator[Line]:
    """Yield the waterfall and the path of each turn. Yield nothing without a recorded trace."""
    if not any(turn.spans is not None for turn in record.turns):
        return
    document = Document()
    add_trace(document, record.turns, None, None, View(width))
    yield from document.lines[:_MOST_ROWS]
    if len(document.lines) > _MOST_ROWS:
        yield Text.styled(f" … {counted(len(document.lines) - _MOST_ROWS, 'more row')}: the screen shows them", "fold")
    read = cached_trace(record.turns, None, None)
    for number, turn in enumerate(read.turns):
        if visited_names(turn.trace.root):
            yield Text()
            yield Text.styled(f" path of turn {number + 1}", "label")
            for line in graph_lines(read, turn.trace.root, width - 1):
                yield cut_line(Text.assemble(" ", line), width)
