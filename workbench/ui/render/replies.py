"""A question to a judge, and what came back, as lines: for the panes of the judge and of the simulated user."""

import json
from collections.abc import Iterator
from typing import Any

from workbench.text import one_line, plain
from workbench.ui.render.json_text import pretty_lines
from workbench.ui.render.judge_words import reply_cost, verdict_mark
from workbench.ui.render.judged import count, mapping, objects, words
from workbench.ui.render.lines import MIN_WIDTH, Line, Segment, cut_line, flow, fold, hang, wrap
from workbench.ui.render.rows import View

BRIEF_REPLY = 3
"""Lines of a reply that are shown unless all of it is asked for."""
_INDENT = 3
_BODY = 5


def question_lines(question: dict[str, Any], opened: bool, view: View) -> Iterator[Line]:
    """What was asked: how long it is, or all of it; then each reply."""
    prompt = words(question.get("prompt"))
    sign = "▾" if opened else "▸"
    size = f"{len(prompt):,} characters" if prompt else "empty"
    style = "label" if opened else "fold"
    line = (Segment(" " * _INDENT), Segment(f"{sign} question", style), Segment(f"  {size}", "muted"))
    yield cut_line(line, max(view.width, MIN_WIDTH))
    if opened:
        yield from hang([], wrap([Segment(plain(prompt))], max(view.width - _BODY, 10)), _BODY)
    for reply in objects(question.get("replies")):
        yield from _reply(reply, opened, view)


def _reply(reply: dict[str, Any], opened: bool, view: View) -> Iterator[Line]:
    room = max(view.width - _BODY, 10)
    yield from hang([], flow(_reply_head(reply), max(view.width - _INDENT, 10)), _INDENT)
    fault = mapping(reply.get("fault"))
    if fault:
        yield from hang([Segment("   ! ", "status-error")], wrap(_fault(fault), room), _BODY)
    if unread := words(reply.get("unread")):
        told = [Segment("not read: ", "status-error"), Segment(plain(unread))]
        yield from hang([Segment("   ! ", "status-error")], wrap(told, room), _BODY)
    text = reply.get("text")
    if isinstance(text, str):
        yield from hang([], _raw(text, opened, room), _BODY)
    elif not fault:
        yield from hang([], [(Segment("nothing came back", "muted"),)], _BODY)


def _reply_head(reply: dict[str, Any]) -> Iterator[Line]:
    yield Segment(f"reply {count(reply.get('sample')) or '?'}  ", "label"), _verdict(reply)
    version = one_line(words(reply.get("model_version")), limit=200)
    for told in [version, *reply_cost([reply])]:
        yield (Segment(told, "muted"),)


def _verdict(reply: dict[str, Any]) -> Segment:
    """What was read from it: a word of ours, or how many things."""
    verdict = reply.get("verdict")
    if verdict is None or isinstance(verdict, str):
        return verdict_mark(verdict if verdict else "unread" if reply.get("unread") or reply.get("fault") else None)
    if isinstance(verdict, bool):
        return Segment("yes" if verdict else "no")
    if isinstance(verdict, dict | list):
        return Segment(f"{len(verdict):,} {'answer' if len(verdict) == 1 else 'answers'}")
    return Segment(one_line(str(verdict), limit=60))


def _fault(fault: dict[str, Any]) -> Iterator[Segment]:
    code = one_line(words(fault.get("code")), limit=100)
    yield Segment(f"{one_line(words(fault.get('kind')), limit=40)}{f' {code}' if code else ''}: ", "status-error")
    yield Segment(plain(words(fault.get("message"))) or "no more is known")


def _raw(text: str, opened: bool, room: int) -> list[Line]:
    """The reply as it came; JSON on one line is laid out, once all of it is asked for."""
    if opened and text[:1] in "{[" and "\n" not in text and len(text) > room:
        try:
            return list(pretty_lines(json.loads(text), room))
        except (ValueError, RecursionError):
            pass
    lines = list(wrap([Segment(plain(text) or "(an empty text)", "" if text else "muted")], room))
    if opened or len(lines) <= BRIEF_REPLY:
        return lines
    return [*lines[: BRIEF_REPLY - 1], fold(f"… {len(lines) - BRIEF_REPLY + 1:,} more lines", room)]
