"""A difference that can be accepted, in the form of the evidence."""

from collections.abc import Iterator
from typing import Any

from workbench.criteria.json_difference import ABSENT, describe
from workbench.criteria.value_rules import compare, described
from workbench.editing.accept_turn import Hunk
from workbench.results.calls import difference_lines
from workbench.results.evidence.calls import call_row
from workbench.results.evidence.turn import answer_sides, said_lines
from workbench.results.frame import labelled, numbered, room, side, side_room
from workbench.results.json_text import step
from workbench.results.lines import Line, safe, wrap
from workbench.results.rows import View
from workbench.text.safe_text import one_line


def hunk_lines(hunk: Hunk, view: View) -> Iterator[Line]:
    """Yield both sides of a difference. It shows only the part of a call that differs."""
    match hunk.kind:
        case "answer":
            return answer_sides(_text(hunk.old), _text(hunk.new), view)
        case "text" | "text added" | "text removed":
            return said_lines(hunk.tool, _text(hunk.new), _text(hunk.old), view)
        case "order":
            names = [(mark, ", ".join(map(str, value))) for mark, value in (("missing", hunk.old), ("extra", hunk.new))]
            lines = [line for mark, text in names for line in side(mark, wrap(safe(text), side_room(view)), view)]
            return labelled("calls", "moved", lines, view)
        case "state":
            found = _differences(hunk.old, hunk.new, "".join(map(step, hunk.steps)).lstrip("."))
            return labelled("state", "differs", difference_lines(found, room(view), view, named=True), view)
    return _call_lines(hunk, view)


def _call_lines(hunk: Hunk, view: View) -> Iterator[Line]:
    marks = {"call added": "extra", "call removed": "missing", "result": "same"}
    args = {hunk.argument: hunk.new} if hunk.argument else hunk.old if hunk.new is ABSENT else hunk.new
    call = {"name": hunk.tool, "args": args if isinstance(args, dict) else None}
    row: dict[str, Any] = {"mark": marks.get(hunk.kind, "differs"), "actual": call}
    number = hunk.actual if hunk.actual is not None else hunk.expected or 0
    if hunk.kind == "result":
        call["args"] = {}
        return call_row(numbered("call", number + 1), row, view, hunk.old, hunk.new)
    if hunk.kind in ("argument", "arguments"):
        path = f"args{step(hunk.argument)}" if hunk.argument else "args"
        row["differences"] = _differences(hunk.old, hunk.new, path)
    return call_row(numbered("call", number + 1), row, view)


def _differences(old: Any, new: Any, path: str) -> list[dict[str, Any]]:
    if old is ABSENT or new is ABSENT:
        return [describe(path, old, new)]
    return [described(each) for each in compare(old, new, {}, path)]


def _text(value: Any) -> str | None:
    return None if value is ABSENT else value if isinstance(value, str) else one_line(str(value))
