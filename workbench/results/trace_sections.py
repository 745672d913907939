"""The sections of an open row: its event, its request, its response, and the path through agents and tools.

The contents of a request are created when they become visible, because later requests repeat all earlier contents.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from workbench.results.cells import cut
from workbench.results.document import Document, Item, Rows
from workbench.results.judged import message_text
from workbench.results.lines import Line, View, cut_line, fold, hang, hang_text, safe, wrap, wrap_indented
from workbench.results.texts import beginning, pretty
from workbench.results.trace_reading import GLYPHS, Lost, PathLine, TraceRead, draw_path, part_words, visited_names
from workbench.store.spans import Node, content_digests, request_of, tool_names
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain

INNER = 6
_INDENT = 4
BRIEF = 120
"""Maximum number of lines of a value that are shown. Copying copies all of it."""
_COUNTED = 1_000
"""Maximum number of lines of a value that are laid out and counted."""


def add_contents(document: Document, read: TraceRead, key: str, digests: Sequence[str], view: View) -> None:
    """Add the contents with these digests in order. Unfolded contents are added in full."""
    keys = [f"{key}/{number}" for number in range(len(digests))]
    aside = document.items[-1].aside

    def line(number: int) -> Line:
        content = read.piece(digests[number])
        role = "?" if isinstance(content, Lost) else one_line(string(mapping(content).get("role")), limit=20) or "?"
        opened = view.is_open(keys[number])
        return part_line(f"{number + 1} {role}", content_words(content), view.width, indent=INNER, opened=opened)

    def item(number: int, start: int) -> Item:
        return Item(keys[number], start, start + 1, opens=True, aside=aside, heads=True)

    rows = Rows(keys, line, item)
    first = 0
    for number in [number for number, one in enumerate(keys) if view.is_open(one)]:
        document.add_rows(rows, range(first, number + 1))
        document.add(data_lines(_simple(read.piece(digests[number])), INNER + 2, view))
        first = number + 1
    document.add_rows(rows, range(first, len(digests)))


def part_line(name: str, summary: str, width: int, *, indent: int, opened: bool) -> Line:
    """Return the line of a foldable item below a row."""
    lead = f"{' ' * indent}{'▾' if opened else '▸'} "
    line = Text.assemble((lead, "fold"), (name, "label"), (f"  {summary}" if summary else "", "muted"))
    return cut_line(line, width)


def content_words(content: Any) -> str:
    """Return a content on one line, or why it cannot be shown."""
    if isinstance(content, Lost):
        return content.why
    return "; ".join(one_line(part_words(part)) for part in objects(mapping(content).get("parts"))) or brief(content)


def _simple(content: Any) -> Any:
    """Return the text of a content that consists of one text. Return other contents unchanged."""
    parts = objects(mapping(content).get("parts"))
    if len(parts) == 1 and parts[0].keys() == {"text"} and isinstance(parts[0]["text"], str):
        return parts[0]["text"]
    return content


def brief(value: Any) -> str:
    """Return a value as one safe line."""
    if isinstance(value, Lost):
        return one_line(value.why)
    return one_line(value if isinstance(value, str) else beginning(value, 1_600), limit=200)


def add_sections(document: Document, read: TraceRead, node: Node, key: str, view: View) -> None:
    """Add event, request, response and path of an open row. For an agent, add the first request and last response."""
    calls = [child for child in node.children if child.kind == "model"] if node.kind == "agent" else []
    first, last = (calls[0], calls[-1]) if calls else (node, node)
    _add_events(document, read, node, f"{key}/event", view)
    _add_request(document, read, first, f"{key}/request", view)
    _add_response(document, read, last, f"{key}/response", view)
    visited = visited_names(read.turns[node.turn].trace.root)
    summary = " → ".join(["user", *map(_one, visited[:12])])
    if _add(document, f"{key}/graph", "Graph", summary, view):
        document.add(hang(Text(), graph_lines(read, node, view.width - INNER), INNER))


def _add(document: Document, key: str, name: str, summary: str, view: View, *, indent: int = _INDENT) -> bool:
    """Add the line of a section, with the same details beside it as its row. Return whether it is unfolded."""
    opened = view.is_open(key)
    aside = document.items[-1].aside if document.items else None
    line = part_line(name, summary, view.width, indent=indent, opened=opened)
    document.add_item(key, [line], opens=True, aside=aside, heads=True)
    return opened


def _add_words(document: Document, name: str, summary: Text, view: View) -> None:
    """Add a section that cannot be unfolded."""
    gutter = _INDENT + 4 + len(name)
    lines = hang_text(Text.styled(f"{' ' * (_INDENT + 2)}{name}  ", "label"), summary, view.width, gutter)
    document.add(cut_line(line, view.width) for line in lines)


def _add_events(document: Document, read: TraceRead, node: Node, key: str, view: View) -> None:
    numbers = sorted({number for part in node.walk() for number in part.events})
    if not numbers:
        within = next((part for part in reversed(node.path[:-1]) if part.kind == "tool"), None)
        why = "none"
        if within is not None:
            why = f"none: it ran inside the tool {one_line(within.name, limit=100)}, which criteria do not see"
        _add_words(document, "Event", safe(why, "muted"), view)
        return
    events = read.turns[node.turn].turn.events
    found = [events[number] for number in numbers if number < len(events)]
    names = ", ".join(str(number + 1) for number in numbers[:8]) + (" …" if len(numbers) > 8 else "")
    if _add(document, key, "Event", f"{names} of {len(events)} in the turn", view):
        for event in found:
            document.add(data_lines(event, INNER, view))


def _add_request(document: Document, read: TraceRead, node: Node, key: str, view: View) -> None:
    if node.kind == "tool":
        args = node.facts["asked"] if "asked" in node.facts else read.piece(node.facts.get("args"))
        if _add(document, key, "Request", brief(args), view):
            document.add(data_lines(args, INNER, view))
    elif node.kind != "model":
        _add_words(document, "Request", safe("it called no model itself", "muted"), view)
    elif not request_of(node):
        timed = read.turns[node.turn].trace.timed
        why = "not stored" if timed else "unknown: this run was recorded without requests"
        _add_words(document, "Request", safe(why, "muted"), view)
    else:
        _add_model_request(document, read, node, key, view)


def _add_model_request(document: Document, read: TraceRead, node: Node, key: str, view: View) -> None:
    request = request_of(node)
    digests = content_digests(node, read.models)
    summary = [counted(len(digests), "content")]
    names = {"system": "instruction", "tools": "tools", "config": "options"}
    summary += [name for field, name in names.items() if field in request]
    if not _add(document, key, "Request", ", ".join(summary), view):
        return
    if "system" in request:
        system = read.piece(request["system"])
        text = system if isinstance(system, str) else message_text(system) or system
        if _add(document, f"{key}/system", "instruction", brief(text), view, indent=INNER):
            document.add(data_lines(text, INNER + 2, view))
    add_contents(document, read, key, digests, view)
    if "tools" in request:
        tools = read.piece(request["tools"])
        offered = tool_names(tools)
        if _add(document, f"{key}/tools", f"tools {len(offered)}", ", ".join(map(_one, offered)), view, indent=INNER):
            document.add(data_lines(tools, INNER + 2, view))
    if "config" in request:
        config = read.piece(request["config"])
        if _add(document, f"{key}/config", "options", brief(config), view, indent=INNER):
            document.add(data_lines(config, INNER + 2, view))


def _add_response(document: Document, read: TraceRead, node: Node, key: str, view: View) -> None:
    if node.error:
        _add_words(document, "Error", safe(node.error, "status-error"), view)
    if "answer" in node.facts or "response" in node.facts:
        answer = node.facts["answer"] if "answer" in node.facts else read.piece(node.facts["response"])
        content = mapping(answer).get("content")
        summary = content_words(content) if isinstance(content, dict) else brief(answer)
        if _add(document, key, "Response", summary, view):
            document.add(data_lines(answer, INNER, view))
    elif node.kind in ("agent", "turn"):
        _add_words(document, "Response", safe("it called no model itself", "muted"), view)
    elif not node.error:
        _add_words(document, "Response", safe(node.note or "none", "muted"), view)


def graph_lines(read: TraceRead, node: Node, width: int) -> Iterator[Line]:
    """Yield the path of the node's turn. The way to the node is marked."""
    selected = None if node.kind == "turn" else node
    for line in draw_path(read.path(node.turn), selected):
        yield cut_line(_stop_line(line, width), width)


def _stop_line(line: PathLine, width: int) -> Line:
    stop = line.stop
    glyph = "○" if stop.offered else GLYPHS[stop.kind]
    style = "muted" if stop.offered else "hint" if line.marked else "strong" if stop.kind == "agent" else ""
    name = cut(_one(stop.name) or "model", max(width - len(line.branches) - 20, 8))
    parts = Text.assemble((line.branches, "rule"), (f"{glyph} {name}", style))
    if stop.count > 1:
        parts.append(f" ×{stop.count}", "muted")
    if stop.steps:
        shown = ", ".join(map(str, stop.steps[:6])) + (" …" if len(stop.steps) > 6 else "")
        parts.append(f"  step {shown}", "muted")
    if stop.errors:
        parts.append(f"  ! {stop.errors} failed", "status-error")
    if stop.offered:
        parts.append("  not called", "muted")
    if line.marked:
        parts.append("  ◀", "hint")
    return parts


def _one(name: str) -> str:
    return one_line(name, limit=100)


def data_lines(value: Any, indent: int, view: View) -> Iterator[Line]:
    """Yield a value, indented by `indent` cells: text, JSON or the reason in `Lost`, cut unless the view is full."""
    width = max(view.width - indent, 10)
    if isinstance(value, Lost):
        lines = wrap(safe(value.why, "muted"), width)
    elif isinstance(value, str):
        lines = wrap(safe(value), width)
    elif (begins := _cut_off(value)) is not None:
        note = f"cut at {value['cut_at']:,} of {value['characters']:,} characters of JSON"
        lines = [Text.styled(note, "status-not-evaluated"), *wrap(Text(plain(begins, limit=200_000)), width)]
    else:
        lines = wrap_indented(pretty(value, most=None if view.full else _COUNTED), width)
    if len(lines) > BRIEF and not view.full:
        most = _COUNTED - BRIEF
        more = counted(min(len(lines) - BRIEF, most), "more line")
        over = "over " * (len(lines) > _COUNTED)
        lines = [*lines[:BRIEF], fold(f"… {over}{more}: Y copies all", width)]
    yield from hang(Text(), lines, indent)


def _cut_off(value: Any) -> str | None:
    """Return the stored beginning of a piece that was too long to store (`worker.spans`), or None for other values."""
    if isinstance(value, dict) and value.keys() == {"cut_at", "characters", "begins"}:
        numbers = type(value["cut_at"]) is int and type(value["characters"]) is int
        return value["begins"] if numbers and isinstance(value["begins"], str) else None
    return None
