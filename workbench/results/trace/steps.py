"""The steps of a turn in order, word for word, and the agent's printed text."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.text import Text

from workbench.results.calls import call_text
from workbench.results.document import Document
from workbench.results.json_text import compact
from workbench.results.judged import message_text
from workbench.results.lines import Line, fold, hang, hang_text, heading, safe, wrap
from workbench.results.rows import View
from workbench.results.trace.conversation import events_of
from workbench.store.execution import Turn
from workbench.text.counting import counted
from workbench.text.json_values import parts_of
from workbench.text.safe_text import one_line, plain

BRIEF_OUTPUT = 200


def output_lines(stream: str, text: str, view: View) -> Iterator[Line]:
    """Yield the agent's output on a stream, under a heading."""
    yield heading(f"the agent's {stream}", view.width)
    lines = text.rstrip("\n").split("\n")
    if not view.full and len(lines) > BRIEF_OUTPUT:
        # The newest lines are the ones that explain a failure.
        yield fold(f" … {counted(len(lines) - BRIEF_OUTPUT, 'more line')} above", view.width)
        lines = lines[-BRIEF_OUTPUT:]
    yield from hang_text(Text(), Text(plain("\n".join(lines), limit=400_000)), view.width - 1, 1)


def add_turn(document: Document, index: int, turn: Turn, view: View) -> None:
    """Add the steps of a turn (`index` counts from 0). Other panes can point at each step."""
    if turn.note:
        document.add(_entry("note", safe(turn.note, "status-error"), view))
    for step in steps(turn):
        names = [f"{name[0]}/{index}{name[1]}" for name in step.names]
        document.add_place(names, step_lines(step, view))


def step_lines(step: "Step", view: View) -> Iterator[Line]:
    """Yield a step with its kind and author. A long one is cut unless the view is full."""
    head = Text.styled(f"{step.author}  ", "name") if step.author else Text()
    return _entry(step.kind, head + step.body, view)


def _entry(kind: str, body: Text, view: View) -> Iterator[Line]:
    lines = wrap(body, max(view.width - 11, 10))
    if not view.full and len(lines) > 12:
        lines = [*lines[:10], fold(f"… {counted(len(lines) - 10, 'more line')}", view.width - 11)]
    yield from hang(Text.styled(f" {kind}", "label"), lines, 10)


class Step(NamedTuple):
    """A step of a turn. Other panes point at it by `names`: (kind, rest after the turn)."""

    kind: str
    author: str
    body: Text
    names: tuple[tuple[str, str], ...] = ()


def steps(turn: Turn) -> Iterator[Step]:
    """Yield all steps of the turn in order, as far as they can be read."""
    yield Step("user", "", safe(message_text(turn.user)), (("user", ""),))
    last = ""
    for number, event in enumerate(events_of(turn)):
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
