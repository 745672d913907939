"""What the pages of a conversation show, as lines."""

from workbench.model.invocation import content_text
from workbench.rendering.document import Document
from workbench.rendering.error import error_lines
from workbench.rendering.json_text import pretty_lines
from workbench.rendering.lines import Line, Segment, hang, hang_text, heading, safe
from workbench.rendering.log import add_turn, output_lines
from workbench.rendering.panes import Pane
from workbench.rendering.rows import View, remark
from workbench.rendering.trace.pane import add_trace
from workbench.text import plain
from workbench.ui.chat.talk import Talk, TalkTurn


def conversation(talk: Talk, view: View) -> Document:
    """What was said and done, the newest at the end."""
    document = Document()
    for notice in talk.notices:
        document.add(hang_text([Segment(" ! ", "status-not-evaluated")], [safe(notice.message)], view.width - 1, 3))
        if notice.hint:
            document.add(hang_text([Segment(" → ", "hint")], [safe(notice.hint)], view.width - 1, 3))
        document.gap()
    if talk.initial:
        document.add([heading("the session begins with", view.width)])
        document.add(hang([], pretty_lines(talk.initial, view.width - 2), 1))
        document.gap()
    for number, item in enumerate(talk.turns):
        start = len(document.lines)
        document.turns.append(start)
        laid = _turn(number, item, view)
        document.add(laid.lines)
        for name, lines in laid.places.items():
            document.places[name] = range(start + lines.start, start + lines.stop)
    document.add(_ending(talk, view))
    return document


def _turn(number: int, item: TalkTurn, view: View) -> Document:
    """One turn. Those that are over stay as they were laid out: a text that grows below must not cost more with every
    turn above it.
    """
    if item.laid is not None and item.laid[0] == view:
        return item.laid[1]
    document = Document()
    end: Line = (Segment("…", "label"),) if item.going else ()
    document.add([heading(f"turn {number + 1}", view.width, end)])
    add_turn(document, number, item.shown, view)
    if item.error is not None:
        document.add(error_lines(item.error, view, traceback=True))
    document.gap()
    if not item.going:
        item.laid = view, document
    return document


def state(talk: Talk, view: View) -> Document:
    """What the session remembers, and before that, what it began with."""
    document = Document()
    told = talk.state
    document.add([heading("the session's state now", view.width)])
    if told is None:
        document.add(remark("Not known yet.", view))
    elif told.why:
        document.add(remark(plain(told.why), view))
    elif told.state == {}:
        document.add(remark("Empty.", view))
    else:
        document.add(hang([], pretty_lines(told.state, view.width - 2), 1))
    document.gap()
    document.add([heading("before the first message", view.width)])
    if talk.initial:
        document.add(hang([], pretty_lines(talk.initial, view.width - 2), 1))
    else:
        document.add(remark("Empty. e gives it something to begin with.", view))
    return document


def output(talk: Talk, view: View) -> Document:
    """What the agent printed."""
    document = Document()
    for stream, text in talk.output.items():
        if text:
            document.add(output_lines(stream, text, view))
            document.gap()
    if not document.lines:
        document.add(remark("The agent printed nothing so far.", view))
    return document


def trace(talk: Talk, view: View) -> Document:
    """What took how long, what was asked and answered."""
    document = Document()
    if talk.turns:
        add_trace(document, [item.turn for item in talk.turns], None, talk.prices, view, going=talk.turns[-1].going)
    else:
        document.add(remark("Nothing yet: it begins with the first message.", view))
    return document


CONVERSATION = "Conversation"
PAGES: tuple[Pane[Talk], ...] = (
    Pane(CONVERSATION, conversation),
    Pane("State", state),
    Pane("Output", output),
    Pane("Trace", trace, aside="always"),
)


def _ending(talk: Talk, view: View) -> list[Line]:
    waits = [
        line
        for content in talk.waiting
        for line in hang_text([Segment(" waits", "label")], [safe(content_text(content), "muted")], view.width - 1, 10)
    ]
    if talk.doing == "starting":
        return waits or list(remark("A message can be typed already.", view))
    if talk.over:
        words = "The conversation is over: r begins a new one." if talk.turns else "r tries again."
        told_already = bool(talk.turns) and talk.turns[-1].error is talk.error
        error = None if told_already else talk.error
        told = [] if error is None else list(error_lines(error, view, traceback=view.full or not error.hint))
        return [*told, *remark(words, view)]
    if not talk.turns and not talk.waiting:
        words = "Nothing has been said yet: type a message below. The session's state can be given before: esc, then e."
        return list(remark(words, view))
    return waits
